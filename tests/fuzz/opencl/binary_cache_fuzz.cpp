// Any bytes as a file of compiled kernels: not used, or the data lies inside the bytes.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "binary_cache.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const auto kept = bitnet::opencl::read_kept(file, "key");
  if (!kept) return 0;
  const bool inside =
      kept->data() >= file.data() && kept->data() + kept->size() == file.data() + file.size();
  if (!inside) std::abort();
  if (bitnet::opencl::read_kept(file, "kex")) std::abort();
  return 0;
}
