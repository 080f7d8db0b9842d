#pragma once
// The process that runs the other engine: this program again, by a first word that is no command
// and stands in no help. What it computes goes to its standard output, as stream.hpp has it.

#include <string>
#include <string_view>
#include <vector>

#include "crossval/discovery.hpp"

namespace bitnet::host::crossval {

inline constexpr std::string_view foreign_word = "@foreign-engine";

struct foreign_task {
  std::string library;
  std::vector<std::string> folders;
  std::string model;      // "": the library is loaded and looked at, no more
  int32_t n_threads = 0;  // 0: as the library likes
};
// Its command line, behind the program's name.
[[nodiscard]] std::vector<std::string> foreign_words(const foreign_task& task);

// What that process does: `words` as above. Its exit status.
[[nodiscard]] int run_foreign(const std::vector<std::string>& words);

}  // namespace bitnet::host::crossval
