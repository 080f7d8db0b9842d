// Any bytes as an answer: the pieces together are the answer, but for white space before a <think>,
// however it is cut, and the message is JSON.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "library/answer_parts.hpp"
#include "library/json.hpp"

namespace {

using namespace bitnet::host;

struct joined {
  std::string text;   // with the tags
  std::string parts;  // with a letter for each byte: which part it is of
};

void add(joined& to, const std::vector<answer_piece>& pieces) {
  for (const answer_piece& one : pieces) {
    const bool thinks = one.of == part::reasoning;
    std::string_view text = one.text;
    if (one.what == answer_piece::kind::begins) text = thinks ? thinking_begins : call_begins;
    if (one.what == answer_piece::kind::ends) text = thinks ? thinking_ends : call_ends;
    to.text += text;
    to.parts.append(text.size(), "crt"[static_cast<int>(one.of)]);
  }
}

joined all_of(std::string_view text, std::size_t step) {
  joined out;
  answer_splitter splitter;
  for (std::size_t i = 0; i < text.size(); i += step) add(out, splitter.take(text.substr(i, step)));
  add(out, splitter.finish());
  return out;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const joined whole = all_of(text, size + 1);
  if (!text.ends_with(whole.text)) std::abort();
  if (text.find_first_not_of(" \t\r\n") < size - whole.text.size()) std::abort();
  for (const std::size_t step : {1U, 3U, 7U}) {
    const joined cut = all_of(text, step);
    if (cut.text != whole.text || cut.parts != whole.parts) std::abort();
  }
  if (json_line(message_json(split_answer(text))).empty()) std::abort();
  return 0;
}
