#pragma once
// What follows from the counters of a receipt. It is computed when a receipt is written, and again
// when one is verified: nothing here is stated.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "json/value.hpp"

namespace bitnet::receipt {

inline constexpr const char* predicate_type = "urn:bitnet:inference-receipt:v1";
inline constexpr const char* statement_type = "https://in-toto.io/Statement/v1";

// Calls of kernels: all of them, and by what ran them.
struct coverage {
  uint64_t ops_total = 0, ops_on_selected = 0, ops_elsewhere = 0;
  uint64_t fused = 0, optimised = 0, reference = 0, unlisted = 0;
  [[nodiscard]] double fused_percent() const {
    return ops_total == 0 ? 0 : 100 * static_cast<double>(fused) / static_cast<double>(ops_total);
  }
};
// `selected`: the device that was selected, "cpu:0". Of rows of the form of a receipt's.
[[nodiscard]] coverage coverage_of(const json::value& kernel_stats, const std::string& selected);
[[nodiscard]] json::value to_json(const coverage& c);

// "real": all that ran, ran on devices that are there. "mock": some device was a fake's, or a
// kernel calls itself one. "none": nothing ran.
[[nodiscard]] std::string compute_path(const json::value& kernel_stats, const json::value& devices);
// Each id once, in the order of the rows.
[[nodiscard]] json::value kernel_ids(const json::value& kernel_stats);

// SHA-256 over the salt's bytes, `what` ("prompt", "output"), a line feed and the ids as 32 bits,
// the lowest byte first.
[[nodiscard]] std::string token_sum(const std::string& salt, const char* what,
                                    std::span<const int32_t> ids);
// Of files {name, sha256} of a model: what OpenSSF's Model Signing has as the digest of the whole,
// SHA-256 over the sums of its files, in the order of their names.
[[nodiscard]] std::string model_sum(const json::value& files);
// The subject of a statement: the model by that digest, then each of its files.
[[nodiscard]] json::value subject_of(const json::value& model);

// Tokens a second, of answers of at least one token that took time; else 0.
[[nodiscard]] double tokens_per_second(uint64_t tokens, double generate_ms);

// A member that is a number that is not negative, else 0.
[[nodiscard]] uint64_t count_in(const json::value& object, const char* name);
// A member that is a text, else "".
[[nodiscard]] std::string text_in(const json::value& object, const char* name);

}  // namespace bitnet::receipt
