#pragma once
// A model in other types of weights, as a new GGUF file.
//
// Linear layers become `type`: ternary ones keep their values exactly, floating-point ones are made
// ternary (formats::ternarise). Those that are ternary already in groups for which the type has no
// scales are refused, as ternary ones are, unless they may be lossy. Unasked the type is pq2_0 or
// q2_0 where groups of 128 or 64 weights have scales, else i2_s. Norms become F32. Embedding and
// output head are kept in what they are, floats other than F16 as F16 where that holds them, unless
// a type is asked for: a dense one, or a ternary one with scales of groups.
// Numbers  each is checked against its type while it is written: formats::fit. What is copied, and
//          what is made ternary, has no NaN and no infinity.
// Memory   of each thread two ternary tensors in their new form, or as many pieces of 4 MiB.
// Atomic   see gguf::file_writer. A regular file is opened, its vocabulary too, and verified if
//          asked for, before it has its name.
// Errors   those of reading; BITNET_INVALID_ARGUMENT for types that do not exist;
//          BITNET_UNSUPPORTED, naming the tensor, where the type cannot hold it; BITNET_CANCELLED.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "model/model.hpp"

namespace bitnet::convert {

struct options {
  std::optional<std::string> type;  // of linear layers; see above
  std::string embedding_type;       // "": see above
  std::string output_type;
  bool overwrite = false;
  bool verify = false;     // read the file back and compare
  bool lossy = false;      // floats may lose scales of groups, see above
  uint32_t n_threads = 0;  // 0: as many as are of use
  model::load_options load;
  std::function<bool(uint64_t done, uint64_t total)> progress;  // bytes; false stops
};

// Answers a report in JSON: {file, bytes, tensors[{type, count, bytes}], readings[{as, tensors}],
// kept?[{tensor, type, why}], left_out?[name], left_out_members?[{file, member?, why}], verified?,
// dense_error?}. Kept are an embedding or a head in their own type, as F16 would not hold them.
// What is left out are tensors that predict further tokens or see images, then members as "file:
// member".
result<std::string> convert(const std::filesystem::path& in, const std::filesystem::path& out,
                            const options& how);

}  // namespace bitnet::convert
