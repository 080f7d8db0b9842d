// Any bytes as the kernel's list of mappings: what is found lies inside them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "plugin/loading/mapped_files.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& file : bitnet::plugin::parse_maps(text))
    if (file.identity.inode == 0 || text.find(file.path) == std::string_view::npos) abort();
  return 0;
}
