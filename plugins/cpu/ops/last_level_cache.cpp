#include "last_level_cache.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <string>
#include <string_view>

namespace bitnet::cpu {
namespace {

// The first word of a file, "" if there is none.
std::string word_in(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// "36608K", "96M"; 0 for anything else.
uint64_t bytes_of(std::string_view text) {
  uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  constexpr uint64_t most = uint64_t{1} << 32;  // of any unit; rejects absurd numbers
  if (error != std::errc() || n > most) return 0;
  return unit == "K"    ? n << 10
         : unit == "M"  ? n << 20
         : unit == "G"  ? n << 30
         : unit.empty() ? n
                        : 0;
}

}  // namespace

uint64_t last_level_cache_bytes(const char* cpus) {
  std::set<std::string> counted;  // the CPUs that share a cache
  uint64_t total = 0;
  int last = 0;
  DIR* folder = opendir(cpus);
  while (const dirent* entry = folder ? readdir(folder) : nullptr) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with("cpu") || name.size() < 4 || name[3] < '0' || name[3] > '9') continue;
    for (int index = 0;; ++index) {
      const std::string cache = std::string(cpus) + "/" + std::string(name) + "/cache/index" +
                                std::to_string(index) + "/";
      const std::string level_text = word_in(cache + "level");
      if (level_text.empty()) break;
      const int level = level_text.size() == 1 ? level_text[0] - '0' : 0;
      if (level < last || word_in(cache + "type") == "Instruction") continue;
      if (level > last) {
        last = level;
        total = 0;
        counted.clear();
      }
      if (counted.insert(word_in(cache + "shared_cpu_list")).second)
        total += bytes_of(word_in(cache + "size"));
    }
  }
  if (folder) closedir(folder);
  if (total != 0) return total;
  const long third = sysconf(_SC_LEVEL3_CACHE_SIZE), second = sysconf(_SC_LEVEL2_CACHE_SIZE);
  const long bytes = std::max(third, second);
  // 32 MiB where the system reports no size. A value that is too large costs memory and time of a
  // measurement; with one that is too small, cached bytes would be measured.
  return bytes > 0 ? static_cast<uint64_t>(bytes) : uint64_t{32} << 20;
}

}  // namespace bitnet::cpu
