#include "plugin/inspection/system_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "plugin/trust/trust.hpp"

namespace bitnet::plugin {

std::optional<system_file> system_file::open(const std::filesystem::path& path) {
  const file_descriptor fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat s{};
  if (fd.get() < 0 || ::fstat(fd.get(), &s) != 0 || !S_ISREG(s.st_mode)) return std::nullopt;
  auto map = file_map::open(fd.get(), static_cast<uint64_t>(s.st_size));
  if (!map) return std::nullopt;
  auto image = elf_image::open(map->bytes());
  if (!image) return std::nullopt;
  return system_file(std::move(*map), std::move(*image));
}

}  // namespace bitnet::plugin
