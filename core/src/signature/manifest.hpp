#pragma once
// The signed statement: the files of a model and their digests.
//
// Source  https://github.com/ossf/model-signing-spec; in-toto Statement v1.
// Errors  BITNET_REJECTED, beginning with the path of the field.
// Hostile any bytes are safe to read: tests/fuzz/signature/bundle_fuzz.cpp.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bitnet::signature {

enum class hash_kind : uint8_t { sha256, blake2b };

// A range of a file's bytes and its expected digest.
struct piece {
  uint64_t begin = 0, end = 0;  // end == to_the_end: the whole file
  std::string digest;           // hexadecimal, lower case
  std::size_t resource = 0;     // index in predicate.resources
};
inline constexpr uint64_t to_the_end = UINT64_MAX;

struct manifest {
  std::string name;    // the model's, informative
  std::string digest;  // hexadecimal, SHA-256 over all resources' digests in order
  hash_kind hash = hash_kind::sha256;
  // By path relative to the model's folder, with '/'; "." alone: the model is one file. The pieces
  // of a file begin at 0 and are contiguous.
  std::map<std::string, std::vector<piece>> files;

  [[nodiscard]] bool is_one_file() const { return files.contains("."); }
};

[[nodiscard]] result<manifest> read_manifest(std::string_view payload);

}  // namespace bitnet::signature
