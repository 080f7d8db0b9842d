#pragma once
// The receipts of a batch, a line for each answer. Those of a request are written before its line
// of the output, so that a kill leaves no answer without a receipt: it may leave a receipt without
// an answer, which the next run removes, as it computes the answer again.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "batch/id_set.hpp"
#include "batch/line_file.hpp"
#include "result.hpp"

namespace bitnet::host::batch {

class receipts_file {
 public:
  // The custom_id in a receipt; nullopt: it is no receipt of a batch.
  using id_reader = std::function<std::optional<std::string>(std::string_view line)>;

  // Behind the output, which has `answered`. Makes the file where there is none, and removes
  // receipts of other ids; `removed` is how many. Exit code 2 for a file with anything else in it,
  // or that is one of `others`; 1 where another process has it.
  static result<receipts_file> open(const std::string& path, std::span<const other_file> others,
                                    const id_set& answered, const id_reader& id_of,
                                    uint64_t& removed);

  // Lines with their ends, all of one request.
  result<void> append(std::string_view lines) { return lines_.append(lines); }
  result<void> sync() { return lines_.sync(); }

 private:
  explicit receipts_file(line_file lines) : lines_(std::move(lines)) {}
  line_file lines_;
};

}  // namespace bitnet::host::batch
