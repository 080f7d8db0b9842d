#include "gates/peak_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "files/descriptor.hpp"
#include "text/items.hpp"

namespace bitnet::host {

std::optional<uint64_t> peak_memory_in(std::string_view status) {
  constexpr std::string_view key = "VmHWM:";
  while (!status.empty()) {
    const auto end = std::min(status.find('\n'), status.size());
    std::string_view line = status.substr(0, end);
    status.remove_prefix(std::min(end + 1, status.size()));
    if (!line.starts_with(key)) continue;
    line = text::without_blanks_around(line.substr(key.size()));
    uint64_t kib = 0;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), kib);
    const auto unit = line.substr(static_cast<std::size_t>(rest - line.data()));
    if (error != std::errc() || unit != " kB" || kib > UINT64_MAX / 1024) return std::nullopt;
    return kib * 1024;
  }
  return std::nullopt;
}

// Not getrusage()'s ru_maxrss, which includes the process's peak before execve().
std::optional<uint64_t> peak_memory() {
  const files::descriptor file(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  std::string text(16384, '\0');
  std::size_t used = 0;
  for (ssize_t n = 1; file && n > 0 && used < text.size(); used += n > 0 ? std::size_t(n) : 0)
    n = ::read(file.get(), text.data() + used, text.size() - used);
  text.resize(used);
  return peak_memory_in(text);
}

}  // namespace bitnet::host
