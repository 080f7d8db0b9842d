#include <algorithm>
#include <array>

#include "answer/dialect.hpp"

namespace bitnet::answer {

extern const dialect hermes, tagged, llama3, minicpm, gemma, none, none_minicpm;

namespace {

// In the order in which they are tried on a rendered call.
constexpr std::array every_dialect = {&tagged, &hermes, &minicpm,     &gemma,
                                      &llama3, &none,   &none_minicpm};

}  // namespace

std::span<const dialect* const> dialects() {
  return every_dialect;
}

const dialect* find_dialect(std::string_view name) {
  const auto found =
      std::ranges::find(every_dialect, name, [](const dialect* one) { return one->name; });
  return found == every_dialect.end() ? nullptr : *found;
}

std::string dialect_names() {
  std::string out;
  for (const dialect* one : every_dialect) out.append(out.empty() ? "" : ", ").append(one->name);
  return out;
}

const dialect& plain_dialect() {
  return none;
}

const dialect& without_calls(const dialect& d) {
  const auto found = std::ranges::find_if(every_dialect, [&](const dialect* one) {
    return one->frames.empty() && one->thinking_begins == d.thinking_begins;
  });
  return found == every_dialect.end() ? none : **found;
}

std::vector<std::string_view> answer_tags() {
  std::vector<std::string_view> out;
  const auto add = [&](std::string_view tag) {
    const bool is_tag = tag.size() > 2 && tag.front() == '<' && tag.back() == '>';
    if (is_tag && std::ranges::find(out, tag) == out.end()) out.push_back(tag);
  };
  for (const dialect* one : every_dialect) {
    add(one->thinking_begins);
    add(one->thinking_ends);
    for (const frame& f : one->frames) {
      add(f.begin);
      add(f.end);
    }
  }
  return out;
}

}  // namespace bitnet::answer
