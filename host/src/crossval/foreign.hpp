#pragma once
// The process that runs the other engine: this program, started with a first word that is neither a
// command nor in the help. It writes its results to standard output in stream.hpp's form.

#include <string>
#include <string_view>
#include <vector>

#include "crossval/discovery.hpp"

namespace bitnet::host::crossval {

inline constexpr std::string_view foreign_word = "@foreign-engine";

struct foreign_task {
  std::string library;
  std::vector<std::string> folders;
  std::string model;      // "": only load and inspect the library
  int32_t n_threads = 0;  // 0: the library's default
};
// Returns the child's arguments, without the program's name.
[[nodiscard]] std::vector<std::string> foreign_words(const foreign_task& task);

// The main function of the child; `words` as above. Returns its exit status.
[[nodiscard]] int run_foreign(const std::vector<std::string>& words);

}  // namespace bitnet::host::crossval
