// Config files are untrusted: no text may crash the parser, and what it
// takes must hold values of the options' types.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <variant>

#include "settings/config_file.hpp"

namespace {

bool has_the_type(const bitnet::host::config_setting& one) {
  using bitnet::host::kind;
  switch (one.row->type) {
    case kind::flag:
      return std::holds_alternative<bool>(one.content);
    case kind::integer:
      return std::holds_alternative<int64_t>(one.content);
    case kind::real:
      return std::holds_alternative<double>(one.content);
    case kind::text:
    case kind::choice:
      return std::holds_alternative<std::string>(one.content);
    case kind::list:
      return std::holds_alternative<std::vector<std::string>>(one.content);
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto contents = bitnet::host::parse_config(text, "fuzz.yaml");
  if (!contents) {
    if (contents.error().message.find("fuzz.yaml:") != 0) std::abort();
    return 0;
  }
  for (const auto& one : contents->settings) {
    if (one.line < 1 || !has_the_type(one)) std::abort();
  }
  return 0;
}
