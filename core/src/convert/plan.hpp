#pragma once
// Which weight becomes what.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "convert/convert.hpp"
#include "convert/workers.hpp"
#include "formats/writing.hpp"
#include "gguf/writer.hpp"
#include "model/read.hpp"

namespace bitnet::convert {

// Exactly one of `ternary` and `dense` is set, neither for a copy of the source's bytes.
struct job {
  uint32_t index = 0;  // of loaded::weights; no_weight: a vector of loaded::made_of
  const formats::ternary_target* ternary = nullptr;
  const formats::dense_target* dense = nullptr;
  bool keeps_groups = true;          // of floats that are ternary in groups
  std::optional<uint64_t> found;     // elements of these, 0: none; if they were counted
  formats::source source;            // by which ternary codes are read
  formats::reading reading;          // of source
  formats::ternary_weights weights;  // ternary, or dense from ternary; refers to this job
  gguf::planned_tensor written;
  std::string kept;  // why it is not of the usual type; "": it is, or there is none
};

struct plan {
  std::string source;  // the model's name in messages
  std::vector<std::unique_ptr<job>> jobs;
  gguf::metadata_builder metadata;
  uint64_t bytes = 0;                       // of all tensors
  std::vector<std::string> left_out;        // model::left_out_of
  nlohmann::ordered_json left_out_members;  // and of these
};

result<plan> make_plan(const model::loaded& from, const options& how, workers& by);

// Elements [first, first + out.size()) of a row as numbers; whole blocks of the source.
void read_row(const job& j, uint64_t row, uint64_t first, std::span<float> out);

}  // namespace bitnet::convert
