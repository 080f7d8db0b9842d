// Any bytes as a shared object: what we let pass the dynamic linker reads as we do. It is asked in
// a child, which code of the file may end.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "linker_reading.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::unique_ptr<std::byte[]> copy(new std::byte[size]);
  if (size != 0) std::memcpy(copy.get(), data, size);
  const auto both = bitnet::test::compare_readings({copy.get(), size});
  if (both.difference.empty()) return 0;
  std::fprintf(stderr, "read in two ways: %s\n", both.difference.c_str());
  std::abort();
}
