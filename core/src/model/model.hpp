#pragma once
// A model file that was read, checked and converted to the ABI's terms.
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

// How many activations share a scale when ternary weights read them.
enum class activations : uint8_t {
  automatic,  // per row, unless scales of groups show that the model was trained on floats
  row,
  group32,
  group64,
  group128,
  floats  // none: ternary weights become dense ones with the same values
};

struct load_options {
  bool vocabulary_only = false;
  uint32_t i2s_layout = 0;  // BITNET_I2S_LAYOUT_*
  formats::tl1_tiles tl1_tiles = formats::tl1_tiles::generated;
  std::optional<activation> gate;
  model::activations activations = model::activations::automatic;
  gguf::file_judge* judge = nullptr;  // of all files while they are opened; nullptr: none
};

class model {
 public:
  // Errors: BITNET_NOT_FOUND, BITNET_BAD_DATA or BITNET_UNSUPPORTED with the file's fault.
  static result<model> load(const std::filesystem::path& file, const load_options& options);
  model(model&&) noexcept;
  model& operator=(model&&) noexcept;
  ~model();

  [[nodiscard]] const hyperparameters& shape() const;
  [[nodiscard]] const tokenizer::tokenizer& tokens() const;
  [[nodiscard]] std::span<const weight> weights() const;  // empty with vocabulary_only
  [[nodiscard]] std::span<const layer> layers() const;
  [[nodiscard]] uint32_t token_embedding() const;
  // The transform of rows that are looked up; factors are applied last.
  [[nodiscard]] transform embedding_transform() const;
  [[nodiscard]] uint32_t output_norm() const;
  [[nodiscard]] uint32_t output() const;  // == token_embedding() when tied
  // Keys rotated in one way cannot be used with another: a sequence keeps its rotation.
  [[nodiscard]] rotation rotation_of(uint32_t n_context) const;
  // The rotation of layers with a window.
  [[nodiscard]] rotation local_rotation() const;

  // Holds the scales of groups in memory. They are a ninth of a model's bytes, and a backend that
  // has copied them does not read them again. They are in memory from load() until the last hold
  // ends; a later hold reads them again. BITNET_BAD_DATA if the file has changed. Any thread.
  using scales_hold = std::shared_ptr<const void>;
  [[nodiscard]] result<scales_hold> hold_scales() const;

  // The tensors of the file that its graph does not use, and why; "": none.
  [[nodiscard]] std::string ignored() const;
  // Files and members of a checkpoint's folder that the model does not use, each with the reason.
  [[nodiscard]] std::vector<std::string> left_out() const;

  // Identifies the bytes of weight `index`: file identity and a hash of samples, so it changes with
  // them. "" for a model that is not on disk.
  [[nodiscard]] std::string weight_identity(uint32_t index) const;

  // Identifies what the model computes: a hash of all bytes of its files and of how they are read.
  // Equal for copies of a file. Reads the files whole, once; any thread. BITNET_BAD_DATA if they
  // cannot be read any more.
  [[nodiscard]] result<std::string> fingerprint() const;

  // The files of the model in order; of a checkpoint, those with tensors. The model owns the
  // descriptors. Empty for a model that is not on disk.
  struct source_file {
    std::filesystem::path path;
    int descriptor = -1;
    uint64_t bytes = 0;
    std::string identity;  // changes if the file changes
  };
  [[nodiscard]] std::vector<source_file> files() const;
  // Feeds all keys that begin with "tokenizer.", sorted by bytes: for each the length of the key
  // (u64, little-endian), the key, the length of its value and the value's bytes as in GGUF.
  void feed_tokenizer(const std::function<void(std::span<const std::byte>)>& to) const;

  // BITNET_BAD_DATA, naming the file, if it lost bytes or changed its size since it was loaded:
  // results computed from it meanwhile are invalid.
  [[nodiscard]] result<void> check_file() const;
  // Only the check for lost bytes. It needs no system call, so it can run for every token.
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
