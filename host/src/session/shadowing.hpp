#pragma once
// Parses --shadow, and formats its results as a line.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "basic/result.hpp"

namespace bitnet::host {

struct shadow_wish {
  std::string device;     // "cuda", "cuda:1", "auto"
  float share = 0.1F;     // of the rows, above 0 and at most 1
  uint32_t waiting = 16;  // queue of rows to compare
  float tolerance = 0;    // allowed difference of elements when looking for the first differing op
};

inline constexpr uint32_t most_waiting_rows = 4096;

// Parses NAME[,share=S][,waiting=N][,tolerance=T]. Exit code 2 with the expected form.
[[nodiscard]] result<shadow_wish> read_shadow(std::string_view text);

// Summarises a bitnet_shadow_report: "shadow vulkan:0: 12 of 118 rows compared, 12 with the same
// top token, ..."
[[nodiscard]] std::string shadow_line(const nlohmann::json& report);

// Rows that were offered and neither compared nor dropped so far.
[[nodiscard]] uint64_t rows_left(const nlohmann::json& report);
// Whether a compared row differed in any byte.
[[nodiscard]] bool has_differed(const nlohmann::json& report);

}  // namespace bitnet::host
