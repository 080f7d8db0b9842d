// Words of a command line may come from a script that took them from anywhere: none may crash the
// parser or leave it by an exception, and what it reads belongs to the command.
//
// The first byte chooses the command; zero bytes separate words.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "settings/arguments.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bitnet::host;
  if (size == 0) return 0;
  const command& about = all_commands()[data[0] % all_commands().size()];
  std::vector<std::string> words(1);
  for (size_t i = 1; i < size; ++i) {
    if (data[i] == 0)
      words.emplace_back();
    else
      words.back() += static_cast<char>(data[i]);
  }
  const auto got = parse_arguments(about, words);
  if (!got) {
    if (got.error().message.empty() || got.error().exit_code != exit_code::usage) std::abort();
    return 0;
  }
  if (got->flags.size() + got->positionals.size() > words.size()) std::abort();
  for (const flag_use& use : got->flags)
    if (use.row == nullptr || (use.row->commands & about.bit) == 0) std::abort();
  return 0;
}
