#pragma once
// The output of a batch. Lines are appended complete, and a later run reads them and continues. A
// system crash loses the answers of one second at most; the next run computes them again.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "basic/result.hpp"
#include "batch/id_set.hpp"
#include "batch/line_file.hpp"

namespace bitnet::host::batch {

// What the output file contains when a run begins.
struct written {
  id_set ids;
  std::unordered_set<uint64_t> lines;  // numbers of input lines without a readable id
  uint64_t n = 0;                      // lines
  uint64_t cut_bytes = 0;              // length of a cut last line, which was removed
};

class output_file {
 public:
  // Creates a missing file; `already` receives the contents of an existing one. `input` is a
  // descriptor of the input, which must be another file. Exit code 2, with the file unchanged, if
  // it is not an output of this batch, model (`fingerprint`) and shard; 1 if another process has
  // locked it.
  static result<output_file> open(const std::string& path, int input, const shard& part,
                                  const std::string& fingerprint, written& already);

  // Appends a complete line with its newline. After an error the file ends with the last complete
  // line.
  result<void> append(std::string_view line) { return lines_.append(line); }
  result<void> sync() { return lines_.sync(); }  // to disk, now
  [[nodiscard]] bool is_due() const { return lines_.is_due(); }
  [[nodiscard]] int descriptor() const { return lines_.descriptor(); }

 private:
  explicit output_file(line_file lines) : lines_(std::move(lines)) {}
  result<void> read_line(std::string_view line, const shard& part, const std::string& fingerprint,
                         written& already) const;
  result<void> remove_rest(std::string_view rest, written& already);

  line_file lines_;
};

}  // namespace bitnet::host::batch
