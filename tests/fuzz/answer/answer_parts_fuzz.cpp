// Any bytes as an answer of each dialect: its parts are the same however it is cut, and arguments
// of calls are JSON objects.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "answer/message.hpp"
#include "json/raw.hpp"

namespace {

using namespace bitnet::answer;

constexpr const char* tools_text = R"([{"name": "f", "parameters": {"properties": {
  "a": {"type": "string"}, "n": {"type": ["integer", "null"]}, "o": {}}}}, {"name": "g"}])";

// Parts as they are, with neighbours of text joined.
std::string parts_of(const dialect& form, const tools& known, bool thinks, std::string_view text,
                     std::size_t step) {
  splitter split({.dialect = &form, .known = known, .thinks = thinks, .id_prefix = "c"});
  std::string out;
  message all;
  auto last = part::kind::call_ends;
  const auto add = [&](const std::vector<part>& more) {
    all.add(more);
    for (const part& one : more) {
      if (one.what == part::kind::arguments &&
          (!one.text.starts_with('{') || !bitnet::json::is_whole(one.text)))
        std::abort();
      const bool goes_on =
          one.what == last && (one.what == part::kind::content || one.what == part::kind::thinking);
      if (!goes_on) out += "\n" + std::to_string(static_cast<int>(one.what)) + " " + one.id + " ";
      out += one.name + one.text;
      last = one.what;
    }
  };
  for (std::size_t i = 0; i < text.size(); i += step) add(split.take(text.substr(i, step)));
  add(split.finish());
  return out + "\n" + bitnet::json::written(all.written());
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tools known = parse_tools(tools_text, "tools").value();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const dialect* form : dialects())
    for (const bool thinks : {false, true}) {
      const std::string whole = parts_of(*form, known, thinks, text, size + 1);
      for (const std::size_t step : {1U, 3U, 7U})
        if (parts_of(*form, known, thinks, text, step) != whole) std::abort();
    }
  return 0;
}
