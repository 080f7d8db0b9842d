#pragma once
// A model file that was read, checked and converted to the words of the contract.
//
// Source  docs/reference/models.md (graph, keys, tensor names); GGUF is read by gguf/,
//         the bytes of weights by formats/.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "formats/reading.hpp"
#include "gguf/file_judge.hpp"
#include "model/shape/shape.hpp"
#include "model/shape/weights.hpp"
#include "tokenizer/tokenizer.hpp"

namespace bitnet::model {

// How many activations share a scale before ternary weights read them.
enum class activations : uint8_t {
  automatic,  // a row's unless scales of groups say that the model was trained on floats
  row,
  group32,
  group64,
  group128,
  floats  // none: ternary weights become dense ones of the same values
};

struct load_options {
  bool vocabulary_only = false;
  uint32_t i2s_layout = 0;  // BITNET_I2S_LAYOUT_*
  formats::tl1_tiles tl1_tiles = formats::tl1_tiles::generated;
  std::optional<activation> gate;
  model::activations activations = model::activations::automatic;
  gguf::file_judge* judge = nullptr;  // of all files, while they are opened; nullptr: none
};

class model {
 public:
  // BITNET_NOT_FOUND, BITNET_BAD_DATA or BITNET_UNSUPPORTED when the file is at fault.
  static result<model> load(const std::filesystem::path& file, const load_options& options);
  model(model&&) noexcept;
  model& operator=(model&&) noexcept;
  ~model();

  [[nodiscard]] const hyperparameters& shape() const;
  [[nodiscard]] const tokenizer::tokenizer& tokens() const;
  [[nodiscard]] std::span<const weight> weights() const;  // empty with vocabulary_only
  [[nodiscard]] std::span<const layer> layers() const;
  [[nodiscard]] uint32_t token_embedding() const;
  // What its rows go through when they are looked up: factors last.
  [[nodiscard]] transform embedding_transform() const;
  [[nodiscard]] uint32_t output_norm() const;
  [[nodiscard]] uint32_t output() const;  // == token_embedding() when tied
  // Keys of one rotation make no sense under another: it stays for the life of a sequence.
  [[nodiscard]] rotation rotation_of(uint32_t n_context) const;
  // Of layers with a window.
  [[nodiscard]] rotation local_rotation() const;

  // Scales of groups are a ninth of a model's bytes, and a backend that copied them does not read
  // them again. They are in memory from load() until the last hold ends; a later hold reads them
  // again. BITNET_BAD_DATA if the file is no longer what it was. Any thread.
  using scales_hold = std::shared_ptr<const void>;
  [[nodiscard]] result<scales_hold> hold_scales() const;

  // The tensors of the file that are no part of its graph, and why; "": none.
  [[nodiscard]] std::string ignored() const;
  // Of a checkpoint: what its folder has beside tensors and is not used, each with why.
  [[nodiscard]] std::vector<std::string> left_out() const;

  // Names the bytes of weight `index` in its file: changes when they do. Holds the file's identity
  // and a hash of samples. "" for a model that is not on disk.
  [[nodiscard]] std::string weight_identity(uint32_t index) const;

  // Names what the model computes: a hash of all bytes of its files, and of how they are read.
  // Equal for copies of a file. Reads the files whole, once; any thread. BITNET_BAD_DATA if they
  // cannot be read any more.
  [[nodiscard]] result<std::string> fingerprint() const;

  // The files that it was read from, in their order: of a checkpoint, those with tensors. The
  // descriptors stay the model's. Empty for a model that is not on disk.
  struct source_file {
    std::filesystem::path path;
    int descriptor = -1;
    uint64_t bytes = 0;
    std::string identity;  // changes with whatever changes the file
  };
  [[nodiscard]] std::vector<source_file> files() const;
  // All that the file says of its tokenizer, piece by piece: of each key that begins with
  // "tokenizer.", in the order of bytes, its length (u64, little-endian), itself, the length of its
  // value and the value's bytes as GGUF has them.
  void feed_tokenizer(const std::function<void(std::span<const std::byte>)>& to) const;

  // BITNET_BAD_DATA, naming the file, if it lost bytes or changed its size since it was loaded:
  // what was computed from it meanwhile means nothing.
  [[nodiscard]] result<void> check_file() const;
  // The first of the two, which costs no system call: for every token.
  [[nodiscard]] result<void> check_read() const;

  // Feeds the bytes of weight `index`, in its `format`, to sink in order and in pieces of at most
  // 4 MiB; stops at the first failure that sink returns. Thread-safe.
  using sink = std::function<result<void>(uint64_t offset, std::span<const std::byte> bytes)>;
  [[nodiscard]] result<void> stream_weight(uint32_t index, const sink& to) const;

 private:
  struct contents;
  explicit model(std::unique_ptr<contents> c);
  std::unique_ptr<contents> contents_;
};

}  // namespace bitnet::model
