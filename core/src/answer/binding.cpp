#include "answer/binding.hpp"

#include <fmt/format.h>

#include "grammar/gbnf_text.hpp"
#include "schema/compile.hpp"

namespace bitnet::answer {
namespace {

// The rest is for other rules of the grammar, such as those of unbound tools.
constexpr std::size_t most_bytes = grammar::longest_grammar / 2;
constexpr std::size_t most_parts = grammar::most_elements / 2;

// The numbers of json_rules(), which all JSON readers can represent.
constexpr std::string_view numbers = R"(-?\d{1,19}(\.\d{1,18})?([eE][-+]?\d{1,2})?)";

struct spent {
  uint64_t work = 0;
  std::size_t bytes = 0, parts = 0;
};

result<std::string> rules_of(const dialect& d, const tool& one, std::size_t number, spent& so_far) {
  schema::notation how = d.arguments(one);
  how.numbers = numbers;
  const auto rules = schema::compile_arguments(one.schema, how, so_far.work);
  if (!rules) return std::unexpected(rules.error());
  auto text = grammar::as_gbnf(*rules, fmt::format("arguments-{}", number));
  if (!text) return text;
  const std::size_t parts = rules->elements.size() + rules->rules.size();
  if (so_far.bytes + text->size() > most_bytes || so_far.parts + parts > most_parts)
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format("#: the grammar of all tools would have more than {} bytes or {} parts; "
                    "give fewer tools, or name the one to call",
                    most_bytes, most_parts));
  so_far.bytes += text->size();
  so_far.parts += parts;
  return text;
}

// Replaces "the JSON schema, at #/properties/a: ..." by the tool's path and that place.
std::string placed(const tool& one, std::string_view message) {
  constexpr std::string_view begin = "the JSON schema, at ";
  if (message.starts_with(begin)) message.remove_prefix(begin.size());
  return one.schema_path + (message.starts_with('#') ? "" : ": ") + std::string(message);
}

}  // namespace

result<bound_calls> bind_arguments(const dialect& d, const call_choice& which) {
  bound_calls out;
  out.rules.resize(which.all->size());
  if (d.arguments == nullptr) return out;
  spent so_far;
  for (std::size_t i = 0; i < which.all->size(); ++i) {
    const tool& one = (*which.all)[i];
    if (one.schema.empty() || (!which.only.empty() && one.name != which.only)) continue;
    auto rules = rules_of(d, one, i, so_far);
    if (rules) {
      out.rules[i] = *std::move(rules);
      continue;
    }
    const std::string why = placed(one, rules.error().message);
    if (one.strict) return fail(rules.error().status, why);
    out.unbound += fmt::format("{}: {}\n", one.name, why);
  }
  return out;
}

}  // namespace bitnet::answer
