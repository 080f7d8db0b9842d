#pragma once
// Where a stand-in finds its settings.

#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace stand_in {

// BITNET_STAND_IN, or, where it is not set, the first line of `file` beside the library that has
// `symbol`, for processes that get no variables.
inline std::string settings_text(const void* symbol, const char* file) {
  if (const char* text = std::getenv("BITNET_STAND_IN")) return text;
  Dl_info me{};
  dladdr(symbol, &me);
  const std::string path = me.dli_fname ? me.dli_fname : "";
  std::string out;
  std::ifstream in(path.substr(0, path.rfind('/') + 1) + file);
  std::getline(in, out);
  return out;
}

}  // namespace stand_in
