#include "system/limits.hpp"

#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <system_error>
#include <utility>

namespace bitnet::limits {
namespace {

using resource = decltype(RLIMIT_NOFILE);

struct kind {
  resource of;
  uint64_t unit;  // bytes per unit of `ulimit`; 1 for counts
  const char* counted;
  const char* option;
};

constexpr kind open_files{RLIMIT_NOFILE, 1, "", "-n"};
constexpr kind file_size{RLIMIT_FSIZE, 1024, " KiB", "-f"};
constexpr kind processes{RLIMIT_NPROC, 1, " processes and threads of this user", "-u"};
constexpr kind addresses{RLIMIT_AS, 1024, " KiB of addresses", "-v"};
constexpr kind data{RLIMIT_DATA, 1024, " KiB of data", "-d"};

std::optional<uint64_t> value_of(const kind& k) {
  rlimit limit{};
  if (::getrlimit(k.of, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur / k.unit;
}

// Appends "; the limit is 20 (`ulimit -n`)" if there is such a limit.
template <std::size_t N>
void add(const std::array<kind, N>& kinds, char* out, std::size_t size) {
  std::size_t used = 0;
  while (used < size && out[used] != '\0') ++used;
  for (const kind& k : kinds)
    if (const auto value = value_of(k); value && used < size) {
      const int n =
          std::snprintf(out + used, size - used, "; the limit is %" PRIu64 "%s (`ulimit %s`)",
                        *value, k.counted, k.option);
      if (n > 0) used += static_cast<std::size_t>(n);
    }
}

template <std::size_t N>
std::string with(const std::string& text, const std::array<kind, N>& kinds) {
  std::array<char, 512> more{};
  add(kinds, more.data(), more.size());
  return text + more.data();
}

}  // namespace

std::string reason(int error) {
  std::string text = std::generic_category().message(error);
  switch (error) {
    case EMFILE:
      return with(text, std::array{open_files});
    case EFBIG:
      return with(text, std::array{file_size});
    case ENOMEM:
      return with(text, std::array{addresses, data});
    default:
      return text;
  }
}

std::string shortage(int error) {
  return with(std::generic_category().message(error), std::array{processes, addresses, data});
}

std::string of_memory() {
  return with("", std::array{addresses, data});
}

void out_of_memory(char* out, std::size_t size) {
  std::snprintf(out, size, "out of memory");
  add(std::array{addresses, data}, out, size);
}

std::size_t raise_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t before = std::exchange(limit.rlim_cur, limit.rlim_max);
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
  return limit.rlim_cur == RLIM_INFINITY ? 0 : static_cast<std::size_t>(limit.rlim_cur);
}

}  // namespace bitnet::limits
