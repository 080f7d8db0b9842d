// Any bytes as a JSON schema, and as a text: rejected in words within bounds, or the text is
// followed.
//
// Input  the schema up to the first NUL, the text behind it.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "grammar/automaton.hpp"
#include "schema/compile.hpp"

namespace {

void must(bool truth) {
  if (!truth) std::abort();
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bitnet;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::string_view schema = all.substr(0, all.find('\0'));
  const std::string_view text =
      all.size() > schema.size() ? all.substr(schema.size() + 1) : std::string_view();
  auto rules = schema::compile(schema);
  if (!rules) {
    must(rules.error().message.find("the JSON schema") == 0);
    return 0;
  }
  constexpr grammar::bounds small{.work = 1U << 14U, .bytes = 4U << 20U};
  grammar::automaton states(*std::move(rules), small);
  must(states.trouble() || states.start() != grammar::automaton::dead);
  auto at = states.start();
  for (const char byte : text.substr(0, 256)) {
    states.begin_work();
    at = states.next(at, static_cast<unsigned char>(byte));
  }
  return 0;
}
