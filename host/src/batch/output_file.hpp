#pragma once
// The output of a batch: lines that are appended whole, read again by a later run that goes on. A
// crash of the system costs at most the answers of a second, which the next run computes again.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "batch/id_set.hpp"
#include "batch/line_file.hpp"
#include "result.hpp"

namespace bitnet::host::batch {

// What an output has when a run begins.
struct written {
  id_set ids;
  std::unordered_set<uint64_t> lines;  // of the input, that have no id that can be read
  uint64_t n = 0;                      // lines
  uint64_t cut_bytes = 0;              // of a cut last line, which was removed
};

class output_file {
 public:
  // Makes the file where there is none; `already` receives what it has. `input`: a descriptor of
  // the input, which must be another file. Exit code 2 for a file that is no output of this batch:
  // of another model (`fingerprint`), of another shard, or something else; nothing of it is
  // changed. 1 where another process has it.
  static result<output_file> open(const std::string& path, int input, const shard& part,
                                  const std::string& fingerprint, written& already);

  // A whole line with its end. After an error the file ends with the last whole line.
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
