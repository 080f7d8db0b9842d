#pragma once
// The text of a member, as it was written. nlohmann::json sorts the members of objects, and
// nlohmann::ordered_json takes the square of their number; the order counts in schemas and tools.

#include <string_view>
#include <vector>

namespace bitnet::host::openai {

// `object`: text that was parsed as a JSON object. The value of its last member of that name, as
// nlohmann::json has it; "" without one. Time is linear in the text.
[[nodiscard]] std::string_view raw_member(std::string_view object, std::string_view name);
// `array`: text that was parsed as a JSON array. Its elements, in order.
[[nodiscard]] std::vector<std::string_view> raw_elements(std::string_view array);

}  // namespace bitnet::host::openai
