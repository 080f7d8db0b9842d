#pragma once
// --shadow as text, and what came of it in a line.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "result.hpp"

namespace bitnet::host {

struct shadow_wish {
  std::string device;     // "cuda", "cuda:1", "auto"
  float share = 0.1F;     // of the rows, above 0 and at most 1
  uint32_t waiting = 16;  // rows that wait to be compared
  float tolerance = 0;    // of the first op that differs: how far its elements may be apart
};

inline constexpr uint32_t most_waiting_rows = 4096;

// NAME[,share=S][,waiting=N][,tolerance=T]. Exit code 2 with what was expected.
[[nodiscard]] result<shadow_wish> read_shadow(std::string_view text);

// Of bitnet_shadow_report: "shadow vulkan:0: 12 of 118 rows compared, 12 with the same top token,
// ..."
[[nodiscard]] std::string shadow_line(const nlohmann::json& report);

// Rows that were offered and are neither compared nor dropped yet.
[[nodiscard]] uint64_t rows_left(const nlohmann::json& report);
// Whether a compared row had other bytes.
[[nodiscard]] bool has_differed(const nlohmann::json& report);

}  // namespace bitnet::host
