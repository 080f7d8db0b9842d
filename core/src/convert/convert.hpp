#pragma once
// A model in other types of weights, as a new GGUF file.
//
// Linear layers become `type`: ternary ones keep their values exactly, floating-point ones are made
// ternary (formats::ternarise). Norms become F32. Embedding and output head are kept in what they
// are, floats other than F16 as F16, unless a type is asked for: a dense one, or a ternary one with
// scales of groups.
// Memory   of each thread two ternary tensors in their new form, or as many pieces of 4 MiB.
// Atomic   see gguf::file_writer. Verification comes before the file has its name.
// Errors   those of reading; BITNET_INVALID_ARGUMENT for types that do not exist;
//          BITNET_UNSUPPORTED, naming the tensor, where the type cannot hold it; BITNET_CANCELLED.

#include <filesystem>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "model/model.hpp"

namespace bitnet::convert {

struct options {
  std::string type = "i2_s";
  std::string embedding_type;  // "": see above
  std::string output_type;
  bool overwrite = false;
  bool verify = false;     // read the file back and compare
  uint32_t n_threads = 0;  // 0: as many as are of use
  model::load_options load;
  std::function<bool(uint64_t done, uint64_t total)> progress;  // bytes; false stops
};

// Answers a report in JSON: {file, bytes, tensors[{type, count, bytes}], readings[{as, tensors}],
// left_out?[name], verified?, dense_error?}: left_out are tensors that predict further tokens.
result<std::string> convert(const std::filesystem::path& in, const std::filesystem::path& out,
                            const options& how);

}  // namespace bitnet::convert
