#pragma once
// The output of a batch: lines that are appended whole, read again by a later run that goes on.
//
// Lock     flock(2): a second process with the same output is refused. It ends with the process.
// Kill     a line that was cut by a kill is the last one, and the next run removes it.
// To disk  once a second while answers come, and at the end: a crash of the system costs at most
//          the answers of that second, which the next run computes again.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "batch/id_set.hpp"
#include "files/descriptor.hpp"
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
  result<void> append(std::string_view line);
  result<void> sync();  // to disk, now

 private:
  output_file(std::string path, files::descriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}
  result<void> read(const shard& part, const std::string& fingerprint, written& already);
  result<void> read_line(std::string_view line, const shard& part, const std::string& fingerprint,
                         written& already) const;
  result<void> remove_rest(std::string_view rest, written& already);
  [[nodiscard]] std::unexpected<failure> broken(int error) const;

  std::string path_;
  files::descriptor file_;
  uint64_t bytes_ = 0;  // of whole lines
  bool is_synced_ = true;
  std::chrono::steady_clock::time_point synced_;
};

}  // namespace bitnet::host::batch
