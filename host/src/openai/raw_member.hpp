#pragma once
// Finds the raw text of members. The order of members matters in schemas and tools, but
// nlohmann::json sorts them, and nlohmann::ordered_json takes quadratic time in their number.

#include <string_view>
#include <vector>

namespace bitnet::host::openai {

// `object`: text that was parsed as a JSON object. Returns the raw value of its last member of that
// name, which is the one that nlohmann::json keeps; "" if there is none. Takes linear time.
[[nodiscard]] std::string_view raw_member(std::string_view object, std::string_view name);
// `array`: text that was parsed as a JSON array. Returns the raw texts of its elements.
[[nodiscard]] std::vector<std::string_view> raw_elements(std::string_view array);

}  // namespace bitnet::host::openai
