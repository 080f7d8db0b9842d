// Any bytes as the run path of a plugin: each item is followed because it is absolute and no other
// user can fill it, or there is a printable word about it.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "plugin/inspection/run_path.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // As in a string table: up to the first zero byte.
  std::string_view list(reinterpret_cast<const char*>(data), size);
  list = list.substr(0, list.find('\0'));
  bitnet::plugin::inspection plugin;
  bitnet::plugin::split_run_path(list, plugin.run_path);
  std::string joined;
  for (const std::string& item : plugin.run_path) {
    if (item.find(':') != std::string::npos) std::abort();
    joined += item + ":";
  }
  if (joined != std::string(list) + ":") std::abort();
  bitnet::plugin::findings found;
  examine_run_path(plugin, found);
  if (found.all().size() != plugin.run_path.size()) std::abort();
  for (std::size_t i = 0; i < plugin.run_path.size(); ++i) {
    const auto& one = found.all()[i];
    if (one.level == bitnet::plugin::finding::level_type::ok &&
        !plugin.run_path[i].starts_with('/'))
      std::abort();
    if (one.what.reason.empty()) std::abort();
    for (const char c : one.what.reason)
      if (static_cast<unsigned char>(c) < 0x20) std::abort();
  }
  return 0;
}
