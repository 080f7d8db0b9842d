#pragma once
// Plans the conversion: the new type of each weight.

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

// At most one of `ternary` and `dense` is set; none: the source's bytes are copied.
struct job {
  uint32_t index = 0;  // of loaded::weights; no_weight: a vector of loaded::made_of
  const formats::ternary_target* ternary = nullptr;
  const formats::dense_target* dense = nullptr;
  bool keeps_groups = true;          // for floats that are ternary in groups
  std::optional<uint64_t> found;     // elements of such a group; 0: none; nullopt: not searched
  formats::source source;            // from which `reading` reads
  formats::reading reading;          // of source
  formats::ternary_weights weights;  // for ternary, and dense from ternary; refers to this job
  gguf::planned_tensor written;
  std::string kept;  // why it keeps another type; "": it does not
};

struct plan {
  std::string source;  // the model's name in messages
  std::vector<std::unique_ptr<job>> jobs;
  gguf::metadata_builder metadata;
  uint64_t bytes = 0;                       // of all tensors
  std::vector<std::string> left_out;        // see model::left_out_of
  nlohmann::ordered_json left_out_members;  // members of the same
};

result<plan> make_plan(const model::loaded& from, const options& how, workers& by);

// Reads elements [first, first + out.size()) of a row as floats; whole blocks of the source.
void read_row(const job& j, uint64_t row, uint64_t first, std::span<float> out);

}  // namespace bitnet::convert
