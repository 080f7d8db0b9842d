// Any bytes as a grammar, and as a text: rejected in words, or the text is followed; masks, one
// byte after the other and what was forgotten agree, within bounds.
//
// Input  the grammar up to the first NUL, the text behind it.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "grammar/gbnf.hpp"
#include "grammar/guide.hpp"

namespace {

void must(bool truth) {
  if (!truth) std::abort();
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bitnet::grammar;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::string_view grammar = all.substr(0, all.find('\0'));
  const std::string text(all.size() > grammar.size() ? all.substr(grammar.size() + 1) : "");
  auto rules = parse_gbnf(grammar);
  if (!rules) {
    must(rules.error().message.find("the grammar") == 0);
    return 0;
  }
  // Every byte is a token, and the text is one.
  const auto tree = std::make_shared<const prefix_tree>(257, [&](int32_t id) {
    return id < 256 ? std::string(1, static_cast<char>(id)) : text.substr(0, 4096);
  });
  constexpr bounds small{.work = 1U << 14U, .bytes = 4U << 20U};
  automaton states(*rules, small);
  guide g(*std::move(rules), tree, small);
  g.begin({});
  auto at = states.start();
  for (std::size_t i = 0; i < text.size() && i < 256; ++i) {
    states.begin_work();
    const auto mask = g.allowed();
    if (!mask || states.trouble()) return 0;
    const auto byte = static_cast<unsigned char>(text[i]);
    at = states.next(at, byte);
    if (states.trouble()) return 0;
    must(((*mask)[byte / 64] >> (byte % 64) & 1) == (at != automaton::dead ? 1 : 0));
    if (at == automaton::dead) break;
    if (!g.accept(text.substr(i, 1))) return 0;
    must(g.is_complete() == states.is_complete(at));
    if (i % 7 == 0) at = states.forget_others(at);
  }
  return 0;
}
