#pragma once
// Converts a model to other types of weights, as a new GGUF file.
//
// Linear layers become `type`: ternary ones keep their values exactly, floating-point ones are made
// ternary (formats::ternarise). A layer that is ternary in groups is rejected if `type` has no
// scales for such groups, unless `lossy` permits it for floats. The default is pq2_0 or q2_0 if
// groups of 128 or 64 weights have scales, else i2_s. Norms become F32. Embedding and output head
// keep their type, floats other than F16 become F16 if it can hold them, unless a type is asked
// for: a dense one, or a ternary one with scales of groups.
// Numbers  Each number is checked against its type while it is written: formats::fit. Copied
//          weights and weights that are made ternary must have no NaN and no infinity.
// Memory   Per thread: two ternary tensors in their new form, or two pieces of 4 MiB.
// Atomic   See gguf::file_writer. A regular file is opened again, with its vocabulary, and verified
//          if asked for, before it gets its name.
// Errors   Those of reading; BITNET_INVALID_ARGUMENT for unknown types; BITNET_UNSUPPORTED, naming
//          the tensor, if the type cannot hold it; BITNET_CANCELLED.

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
  bool lossy = false;      // drop scales of groups in floats, see above
  uint32_t n_threads = 0;  // 0: as many as this machine can use
  model::load_options load;
  std::function<bool(uint64_t done, uint64_t total)> progress;  // in bytes; returning false cancels
};

// Returns a JSON report: {file, bytes, tensors[{type, count, bytes}], readings[{as, tensors}],
// kept?[{tensor, type, why}], left_out?[name], left_out_members?[{file, member?, why}], verified?,
// dense_error?}. kept: embedding or head that keep their type, as F16 would not hold them.
// left_out: tensors that predict further tokens or see images, then members as "file: member".
result<std::string> convert(const std::filesystem::path& in, const std::filesystem::path& out,
                            const options& how);

}  // namespace bitnet::convert
