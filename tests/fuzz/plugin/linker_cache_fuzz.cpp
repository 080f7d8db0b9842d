// Any bytes as the list of ldconfig: files with absolute paths, of the name that was asked for.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "plugin/inspection/linker_cache.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::unique_ptr<std::byte[]> copy(new std::byte[size]);
  if (size != 0) std::memcpy(copy.get(), data, size);
  for (const char* name : {"libz.so.1", ""})
    for (const auto& one : bitnet::plugin::find_in_linker_cache({copy.get(), size}, name))
      if (!one.file.is_absolute()) std::abort();
  return 0;
}
