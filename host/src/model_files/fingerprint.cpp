#include "model_files/fingerprint.hpp"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

namespace bitnet::host {
namespace {

namespace fs = std::filesystem;

void add_file(XXH3_state_t& hash, const fs::path& file) {
  constexpr uint64_t n_samples = 64;
  constexpr uint64_t sample_bytes = 4096;
  std::error_code error;
  const uint64_t bytes = fs::file_size(file, error);
  if (error) return;
  XXH3_64bits_update(&hash, &bytes, sizeof bytes);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(std::fopen(file.c_str(), "rb"),
                                                           std::fclose);
  if (!in) return;
  std::vector<char> sample(sample_bytes);
  const uint64_t last = bytes - std::min(bytes, sample_bytes);
  for (uint64_t i = 0; i < n_samples; ++i) {
    if (::fseeko(in.get(), static_cast<off_t>(last / (n_samples - 1) * i), SEEK_SET) != 0) return;
    const std::size_t n = std::fread(sample.data(), 1, sample_bytes, in.get());
    XXH3_64bits_update(&hash, sample.data(), n);
    if (bytes <= sample_bytes || n < sample_bytes) break;
  }
}

}  // namespace

std::string fingerprint_of(const std::string& model) {
  std::error_code error;
  std::vector<fs::path> files;
  if (fs::is_directory(model, error)) {
    for (fs::directory_iterator it(model, error), end; !error && it != end; it.increment(error))
      if (it->is_regular_file(error)) files.push_back(it->path());
    std::ranges::sort(files);
  } else {
    files.emplace_back(model);
  }
  XXH3_state_t hash;
  XXH3_64bits_reset(&hash);
  for (const fs::path& file : files) add_file(hash, file);
  return fmt::format("fp_{:016x}", XXH3_64bits_digest(&hash));
}

}  // namespace bitnet::host
