// Any bytes as a line of questions: an item that can be scored, or a message.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "eval/choices.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace eval = bitnet::host::eval;
  const auto item = eval::read_choice_item({reinterpret_cast<const char*>(data), size});
  if (!item) return item.error().empty() ? std::abort(), 0 : 0;
  if (item->context.empty() || item->endings.size() < 2 || item->label >= item->endings.size())
    std::abort();
  for (std::size_t i = 0; i < item->endings.size(); ++i)
    if (!eval::joined(*item, i).ends_with(item->endings[i])) std::abort();
  return 0;
}
