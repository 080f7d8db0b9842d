#pragma once
// Lists of numbers as llama-bench reads them: "512", "1,2,8", "128-512+128", "1-64*2".

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace bitnet::host::measure {

inline constexpr std::size_t most_numbers = 1000;  // of one list

// "first-last+step" and "first-last*factor" run from the first up to the last; "first-last" has
// steps of 1. If the text is not such a list or a number is out of bounds, the error is what was
// found.
[[nodiscard]] std::expected<std::vector<uint32_t>, std::string> number_list(std::string_view text,
                                                                            uint32_t lowest,
                                                                            uint32_t highest);

}  // namespace bitnet::host::measure
