#pragma once
// Plans as YAML: docs/reference/plan-file.md.

#include <string>
#include <string_view>

#include "basic/result.hpp"
#include "plan/plan.hpp"

namespace bitnet::host::plans {

inline constexpr std::size_t longest_plan = std::size_t{1} << 20;  // bytes
inline constexpr std::size_t longest_word = 128;                   // bytes of a value

[[nodiscard]] std::string write_plan(const plan& of);

// Exit code 2, with line and reason, if the text is not a plan of version 1; messages call the file
// `name`. Safe for any bytes: tests/fuzz/plan/plan_file_fuzz.cpp.
[[nodiscard]] result<plan> read_plan(std::string_view text, std::string_view name);

}  // namespace bitnet::host::plans
