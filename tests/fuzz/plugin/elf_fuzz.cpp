// Any bytes as a plugin file: identity, exports and linkage, or a complaint, without reading beside
// them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "plugin/inspection/elf_image.hpp"
#include "plugin/inspection/inspect.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, so that the sanitizer sees a read beyond it.
  const std::unique_ptr<std::byte[]> copy(new std::byte[size]);
  if (size != 0) std::memcpy(copy.get(), data, size);
  const auto found = bitnet::plugin::inspect({copy.get(), size});
  if (found && (found->note.name.empty() || found->exports.empty())) abort();
  if (!found && found.error().reason.empty()) abort();
  // As a library that a plugin needs.
  if (const auto image = bitnet::plugin::elf_image::open({copy.get(), size}); image)
    (void)image->defined_versions();
  return 0;
}
