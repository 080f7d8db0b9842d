// Splits what the judge asks for: a line of JSON {"pre", "texts"} in, lists of pieces out.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "tokenizer/pre_tokenizer.hpp"

int main() {
  using nlohmann::json;
  namespace tok = bitnet::tokenizer;
  std::string line;
  while (std::getline(std::cin, line)) {
    const json asked = json::parse(line);
    const auto rule = tok::pre_rule_for(asked["pre"].get<std::string>(), "llama");
    const auto splitter = tok::pre_tokenizer::make(rule.split);
    if (!splitter) return 1;
    json out = json::array();
    for (const json& text : asked["texts"]) {
      const auto pieces = splitter->split(text.get_ref<const std::string&>());
      if (!pieces) return 1;
      out.push_back(*pieces);
    }
    std::cout << out.dump() << '\n';
  }
  return 0;
}
