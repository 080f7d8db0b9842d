#pragma once
// Second forms of weights (bitnet/abi/packed.h), kept on disk between runs.
//
// A form is a file named by the hash of its key: which bytes of which model file, and the layout.
// The file is mapped, not read: processes share its pages.
// Folder   it and all above it belong to root or the user and no other user may write to them, by
//          the rules for plugins; files are opened from its handle and never through links.
// Checks   owner and mode, header, key and a checksum of every chunk, before anything is used; a
//          file that fails is reported, removed and made again.
// Limits   the files together stay below max_bytes; the least recently used ones are removed.
// Errors   none: a cache that does not work is a note and a slower start.
// Threads  one process writes a file under another name first; any number may read.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "bitnet/abi/host.h"
#include "gguf/mapping.hpp"

namespace bitnet::engine {

struct pack_cache_options {
  std::filesystem::path folder;
  uint64_t max_bytes = uint64_t{8} << 30;
  uint64_t least_bytes = uint64_t{8} << 20;  // smaller forms are made faster than found
  std::function<void(uint32_t level, const std::string&)> note{};  // BITNET_LOG_*
};

// Returns the form inside a file's bytes, or why they are not a whole file for this key.
result<std::span<const std::byte>> read_packed(std::span<const std::byte> file,
                                               const std::string& key);

class pack_cache {
 public:
  explicit pack_cache(pack_cache_options options) : options_(std::move(options)) {}

  // Owns the mapping.
  struct found {
    gguf::mapping file;
    std::span<const std::byte> form;
  };
  [[nodiscard]] std::optional<found> find(const std::string& key) const;
  void keep(const std::string& key, std::span<const std::byte> form) const;

  [[nodiscard]] uint64_t least_bytes() const { return options_.least_bytes; }
  [[nodiscard]] std::filesystem::path file_of(const std::string& key) const;
  void note(const std::string& text, uint32_t level = BITNET_LOG_WARN) const {
    if (options_.note) options_.note(level, text);
  }

 private:
  void make_room(int folder) const;

  pack_cache_options options_;
};

}  // namespace bitnet::engine
