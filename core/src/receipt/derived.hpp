#pragma once
// Facts computed from a receipt's counters, when it is written and again when it is verified.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "json/value.hpp"

namespace bitnet::receipt {

inline constexpr const char* predicate_type = "urn:bitnet:inference-receipt:v1";
inline constexpr const char* statement_type = "https://in-toto.io/Statement/v1";

// Counts of kernel calls: all, and by what ran them.
struct coverage {
  uint64_t ops_total = 0, ops_on_selected = 0, ops_elsewhere = 0;
  uint64_t fused = 0, optimised = 0, reference = 0, unlisted = 0;
  [[nodiscard]] double fused_percent() const {
    return ops_total == 0 ? 0 : 100 * static_cast<double>(fused) / static_cast<double>(ops_total);
  }
};
// `selected`: the selected device, "cpu:0". Rows have the form in a receipt.
[[nodiscard]] coverage coverage_of(const json::value& kernel_stats, const std::string& selected);
[[nodiscard]] json::value to_json(const coverage& c);

// "real": all kernels ran on real devices. "mock": some device was a fake's, or a kernel calls
// itself one. "none": nothing ran.
[[nodiscard]] std::string compute_path(const json::value& kernel_stats, const json::value& devices);
// Each id once, in the order of the rows.
[[nodiscard]] json::value kernel_ids(const json::value& kernel_stats);

// SHA-256 over the salt's bytes, `what` ("prompt", "output"), a line feed and the ids as 32 bits,
// little-endian.
[[nodiscard]] std::string token_sum(const std::string& salt, const char* what,
                                    std::span<const int32_t> ids);
// The digest of a model with files {name, sha256}, as in OpenSSF's Model Signing: SHA-256 over the
// sums of its files, sorted by name.
[[nodiscard]] std::string model_sum(const json::value& files);
// The subject of a statement: the model with that digest, then each of its files.
[[nodiscard]] json::value subject_of(const json::value& model);

// Tokens per second; 0 for an answer without tokens or without time.
[[nodiscard]] double tokens_per_second(uint64_t tokens, double generate_ms);

// The member if it is a number and not negative, else 0.
[[nodiscard]] uint64_t count_in(const json::value& object, const char* name);
// The member if it is a text, else "".
[[nodiscard]] std::string text_in(const json::value& object, const char* name);

}  // namespace bitnet::receipt
