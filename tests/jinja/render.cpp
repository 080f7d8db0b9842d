// Renders what the judge asks for: a line of JSON {"template", "variables"} in, one
// {"text", "of_messages": ranges of bytes} or {"error"} out.
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "jinja/template.hpp"

namespace {

using bitnet::jinja::marked_text;
using bitnet::jinja::origin;
using bitnet::jinja::value;
using json = nlohmann::ordered_json;

value from_json(const json& j) {
  if (j.is_null()) return value::none();
  if (j.is_boolean()) return j.get<bool>();
  if (j.is_number_integer()) return j.get<int64_t>();
  if (j.is_number()) return j.get<double>();
  if (j.is_string()) return j.get<std::string>();
  if (j.is_array()) {
    bitnet::jinja::sequence items;
    for (const json& one : j) items.push_back(from_json(one));
    return value::list(std::move(items));
  }
  bitnet::jinja::dict entries;
  for (const auto& [key, content] : j.items()) {
    // As core/src/chat gives them: known roles, and tokens of the vocabulary.
    const bool own = key == "role" || key == "bos_token" || key == "eos_token";
    entries.set(value(key), own && content.is_string()
                                ? value(marked_text(content.get<std::string>(), origin::own))
                                : from_json(content));
  }
  return entries;
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const json asked = json::parse(line);
    json answer;
    const value variables = from_json(asked["variables"]);
    auto parsed =
        bitnet::jinja::chat_template::parse(asked["template"].get_ref<const std::string&>());
    if (!parsed) {
      answer["error"] = parsed.error().message;
    } else if (auto text = parsed->render(variables.entries(), std::time(nullptr))) {
      answer["text"] = text->bytes();
      answer["of_messages"] = json::array();
      for (const auto& range : text->message_ranges())
        answer["of_messages"].push_back({range.begin, range.end});
    } else {
      answer["error"] = text.error().message;
    }
    std::cout << answer.dump(-1, ' ', true, json::error_handler_t::replace) << '\n';
  }
  return 0;
}
