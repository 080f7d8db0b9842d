#include "base/processor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <string_view>

#include "files/descriptor.hpp"

namespace bitnet {
namespace {

// Enough for the first processor; the list of a large machine is very long.
constexpr std::size_t read_bytes = 4096;

}  // namespace

std::string processor_name(const std::filesystem::path& root) {
  const files::descriptor file(
      ::open((root / "proc/cpuinfo").c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  std::string text(read_bytes, '\0');
  const ssize_t n = file.get() < 0 ? 0 : ::read(file.get(), text.data(), text.size());
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  constexpr std::string_view key = "model name";
  const std::size_t at = text.find(key);
  const std::size_t end = at == std::string::npos ? at : text.find('\n', at);
  const std::size_t colon = at == std::string::npos ? at : text.find(':', at);
  if (end == std::string::npos || colon > end) return "";
  const std::size_t first = text.find_first_not_of(" \t", colon + 1);
  return first >= end ? "" : text.substr(first, end - first);
}

}  // namespace bitnet
