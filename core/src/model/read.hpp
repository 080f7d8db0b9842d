#pragma once
// Reads a GGUF file into everything that class model holds, except the tokenizer. Works on bytes in
// memory, too.

#include <algorithm>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "formats/reading.hpp"
#include "gguf/file.hpp"
#include "model/hadamard.hpp"
#include "model/model.hpp"

namespace bitnet::model {

// hyperparameters.cpp
// Reads and checks every key that the graph depends on; the architecture's row reads its own.
// input_norms: whether the file has such tensors.
result<hyperparameters> read_hyperparameters(const gguf::container& metadata, uint64_t n_tokens,
                                             const load_options& options, bool input_norms = false);

// vocabulary.cpp: copies the file's tokens and their data.
result<tokenizer::vocabulary_data> read_vocabulary(const gguf::container& metadata);

// read.cpp; open_file is in model.cpp
struct loaded {
  gguf::file file;
  hyperparameters shape{};
  tokenizer::vocabulary_data vocabulary{};
  std::vector<weight> weights{};
  std::vector<formats::source> sources{};    // one per weight
  std::vector<formats::reading> readings{};  // one per weight; `scales` are moved out
  std::vector<float> scale_factors{};        // one per weight: multiplies its scales
  std::vector<layer> layers{};
  uint32_t token_embedding = no_weight;
  uint32_t output_norm = no_weight;
  uint32_t output = no_weight;
  // Divisors of RoPE's angles, from the file or computed here. From the file: the first for every
  // context, or the first up to the original length and the second beyond it.
  uint32_t rope_divisors = no_weight;
  uint32_t rope_divisors_long = no_weight;
  transform embedding_transform{};
  std::vector<std::vector<float>> made{};  // the data of weights that no file has
  // Vectors of the file from which such weights were computed and that are no weights, by name.
  std::vector<std::pair<std::string, formats::source>> made_of{};
  uint64_t n_skipped = 0;  // tensors of blocks that predict further tokens, not used

  // Whether the weight was computed, not read.
  [[nodiscard]] bool is_made(uint32_t index) const {
    return std::ranges::any_of(made, [&](const std::vector<float>& numbers) {
      return std::as_bytes(std::span(numbers)).data() == sources[index].bytes.data();
    });
  }
};

// Opens a GGUF file with all its shards, or a Hugging Face checkpoint. metadata_only: other shards
// may be missing. `judge`, if set, judges all files that are opened.
result<gguf::file> open_file(const std::filesystem::path& path, gguf::file_judge* judge = nullptr,
                             bool metadata_only = false);

// The layout of type 42 in this file; nullopt: it has no such tensor.
result<std::optional<formats::q2_finding>> find_q2(const gguf::file& file);

// The tensors of the file that its graph does not use, and why; "": none.
std::string ignored_of(const loaded& m);
// The names of those tensors, and "file: member" for each unused member of a checkpoint.
std::vector<std::string> left_out_of(const loaded& m);
// The unused members of a checkpoint as {file, member?, why}.
nlohmann::ordered_json left_out_members(const loaded& m);

result<loaded> read(gguf::file file, const load_options& options);
// Reads the scales of ternary weights again; the result is as after read().
result<void> recall_scales(loaded& m);
result<void> stream(const loaded& from, uint32_t index, const model::sink& to);

}  // namespace bitnet::model
