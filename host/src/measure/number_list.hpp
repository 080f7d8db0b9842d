#pragma once
// Lists of numbers as llama-bench reads them: "512", "1,2,8", "128-512+128", "1-64*2".

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace bitnet::host::measure {

inline constexpr std::size_t most_numbers = 1000;  // of one list

// "first-last+step" and "first-last*factor" go from the first to the last at most; "first-last" is
// by steps of 1. Where the text is no such list, or a number is outside of the bounds, what was
// found instead, as text.
[[nodiscard]] std::expected<std::vector<uint32_t>, std::string> number_list(std::string_view text,
                                                                            uint32_t lowest,
                                                                            uint32_t highest);

}  // namespace bitnet::host::measure
