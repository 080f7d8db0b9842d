// Any bytes as a saved conversation: rejected in words, or messages that are written and read back
// the same.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "session/saved_chat.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bitnet::host;
  const auto read = read_saved_chat(std::string(reinterpret_cast<const char*>(data), size));
  if (!read) {
    if (read.error().message.empty() || read.error().exit_code != exit_code::usage) std::abort();
    return 0;
  }
  const auto again = read_saved_chat(write_saved_chat(*read));
  if (!again || again->size() != read->size()) std::abort();
  for (std::size_t i = 0; i < read->size(); ++i)
    if ((*again)[i].role != (*read)[i].role || (*again)[i].content != (*read)[i].content)
      std::abort();
  return 0;
}
