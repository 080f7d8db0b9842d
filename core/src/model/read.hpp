#pragma once
// From a GGUF file to everything that class model holds but the tokenizer; usable on bytes in
// memory.

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
// Every key that the graph depends on, checked; the rest by the architecture's row. input_norms:
// whether the file has such tensors.
result<hyperparameters> read_hyperparameters(const gguf::container& metadata, uint64_t n_tokens,
                                             const load_options& options, bool input_norms = false);

// vocabulary.cpp: copies what the file says about tokens.
result<tokenizer::vocabulary_data> read_vocabulary(const gguf::container& metadata);

// read.cpp; open_file is in model.cpp
struct loaded {
  gguf::file file;
  hyperparameters shape{};
  tokenizer::vocabulary_data vocabulary{};
  std::vector<weight> weights{};
  std::vector<formats::source> sources{};    // of weights, same index
  std::vector<formats::reading> readings{};  // of weights, same index; their scales are moved out
  std::vector<float> scale_factors{};        // of weights, same index: their scales are times this
  std::vector<layer> layers{};
  uint32_t token_embedding = no_weight;
  uint32_t output_norm = no_weight;
  uint32_t output = no_weight;
  // Divisors of angles: of the file (the first for every context, or for one up to the original
  // length and the second beyond it), or made here.
  uint32_t rope_divisors = no_weight;
  uint32_t rope_divisors_long = no_weight;
  transform embedding_transform{};
  std::vector<std::vector<float>> made{};  // sources of weights that are in no file
  // Vectors of the file that only parts of such weights were made of, by name.
  std::vector<std::pair<std::string, formats::source>> made_of{};
  uint64_t n_skipped = 0;  // tensors of blocks that predict further tokens

  // A weight that follows from the metadata.
  [[nodiscard]] bool is_made(uint32_t index) const {
    return std::ranges::any_of(made, [&](const std::vector<float>& numbers) {
      return std::as_bytes(std::span(numbers)).data() == sources[index].bytes.data();
    });
  }
};

// A GGUF file with all its parts, or a Hugging Face checkpoint. metadata_only: further parts of a
// split file need not be there. `judge`, if any, judges all that is opened for it.
result<gguf::file> open_file(const std::filesystem::path& path, gguf::file_judge* judge = nullptr,
                             bool metadata_only = false);

// What type 42 means in this file; nullopt: it has no such tensor.
result<std::optional<formats::q2_finding>> find_q2(const gguf::file& file);

// The tensors of the file that are no part of its graph, and why; "": none.
std::string ignored_of(const loaded& m);
// Their names, and "file: member" of what a checkpoint's folder has beside its tensors.
std::vector<std::string> left_out_of(const loaded& m);
// {file, member?, why} of the latter.
nlohmann::ordered_json left_out_members(const loaded& m);

result<loaded> read(gguf::file file, const load_options& options);
// Reads the scales of ternary weights again, as read() left them.
result<void> recall_scales(loaded& m);
result<void> stream(const loaded& from, uint32_t index, const model::sink& to);

}  // namespace bitnet::model
