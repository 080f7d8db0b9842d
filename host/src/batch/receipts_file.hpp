#pragma once
// The receipts of a batch, a line per answer. The receipts of a request are written before its
// output line, so a kill may leave a receipt without an answer, but never an answer without a
// receipt. The next run removes such a receipt and computes the answer again.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "basic/result.hpp"
#include "batch/id_set.hpp"
#include "batch/line_file.hpp"

namespace bitnet::host::batch {

class receipts_file {
 public:
  // Returns the custom_id in a receipt; nullopt: the text is not a receipt of a batch.
  using id_reader = std::function<std::optional<std::string>(std::string_view line)>;

  // Call it after the output was read: `answered` has the output's ids. Creates a missing file,
  // removes receipts of other ids, and counts them in `removed`. Exit code 2 for a file with other
  // contents or one of `others`; 1 if another process has locked it.
  static result<receipts_file> open(const std::string& path, std::span<const other_file> others,
                                    const id_set& answered, const id_reader& id_of,
                                    uint64_t& removed);

  // Appends the receipts of one request, lines with newlines.
  result<void> append(std::string_view lines) { return lines_.append(lines); }
  result<void> sync() { return lines_.sync(); }

 private:
  explicit receipts_file(line_file lines) : lines_(std::move(lines)) {}
  line_file lines_;
};

}  // namespace bitnet::host::batch
