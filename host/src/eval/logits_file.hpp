#pragma once
// Logits of a base model, saved for later comparisons: docs/reference/logits-file.md.
//
// Form   little-endian. A header of 32 bytes, the model's name, the tokens, their checksum; then,
//        for each chunk, rows of float32 logits, and a checksum of chunk number and rows.
// Trust  none: a reader checks that the header's sizes give the file's exact size, that token ids
//        are in the vocabulary, that logits are finite, and all checksums.

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bitnet/bitnet.h"
#include "eval/likelihood.hpp"
#include "files/descriptor.hpp"
#include "files/new_file.hpp"

namespace bitnet::host::eval {

inline constexpr uint32_t logits_version = 1;

struct logits_header {
  std::string model;  // shown to people, at most 256 bytes
  uint32_t n_vocab = 0;
  uint32_t n_context = 0;  // tokens per chunk
  uint32_t n_chunks = 0;
  // n_chunks * n_context tokens, as they were evaluated.
  std::vector<bitnet_token> tokens;
};

class logits_writer {
 public:
  static std::expected<logits_writer, std::string> create(const std::string& path,
                                                          const logits_header& header);
  // Appends any number of whole rows, in order.
  std::expected<void, std::string> write(std::span<const float> rows);
  std::expected<void, std::string> end_chunk();
  std::expected<void, std::string> finish();

 private:
  logits_writer(files::new_file file, uint32_t n_vocab)
      : file_(std::move(file)), n_vocab_(n_vocab) {}
  std::expected<void, std::string> put(std::string_view bytes);

  files::new_file file_;
  uint32_t n_vocab_;
  uint64_t hash_ = 0;   // of the current chunk's rows
  uint32_t chunk_ = 0;  // index of the current chunk
};

class logits_reader {
 public:
  // The message has no file name; the caller puts it in front.
  static std::expected<logits_reader, std::string> open(const std::string& path);

  [[nodiscard]] const logits_header& header() const { return header_; }
  // Reads the next rows.size() / n_vocab rows of the chunk.
  std::expected<void, std::string> read(std::span<float> rows);
  // Call it after all rows of a chunk: verifies their checksum.
  std::expected<void, std::string> end_chunk();

 private:
  explicit logits_reader(files::descriptor file) : file_(std::move(file)) {}
  std::expected<void, std::string> read_header(uint64_t file_bytes);
  std::expected<void, std::string> get(std::span<std::byte> bytes);

  files::descriptor file_;
  logits_header header_;
  uint64_t hash_ = 0;
  uint32_t chunk_ = 0;
};

}  // namespace bitnet::host::eval
