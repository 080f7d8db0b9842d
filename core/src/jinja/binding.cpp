#include "jinja/binding.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bitnet::jinja {

sequence bind(rendering& at, std::string_view function, const arguments& given,
              std::initializer_list<std::string_view> names, std::size_t needed) {
  sequence out(names.size());
  std::vector<bool> set(names.size());
  if (given.positional.size() > names.size()) {
    at.wrong(fmt::format("{} takes {} arguments at most, found {}", function, names.size(),
                         given.positional.size()));
    return out;
  }
  for (std::size_t i = 0; i < given.positional.size(); ++i) {
    out[i] = given.positional[i];
    set[i] = true;
  }
  for (const auto& [name, content] : given.named) {
    const auto found = std::ranges::find(names, name);
    const auto i = static_cast<std::size_t>(found - names.begin());
    if (found == names.end() || set[i]) {
      at.wrong(fmt::format("{} takes no further argument '{}'", function, name.substr(0, 40)));
      return sequence(names.size());
    }
    out[i] = content;
    set[i] = true;
  }
  for (std::size_t i = 0; i < needed; ++i)
    if (!set[i]) {
      at.wrong(fmt::format("{} needs {} arguments", function, needed));
      return sequence(names.size());
    }
  return out;
}

}  // namespace bitnet::jinja
