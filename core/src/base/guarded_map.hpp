#pragma once
// Maps a file read-only. If the file loses bytes, because another process truncates it or its disk
// fails, the process survives: the missing bytes read as zeros, and is_lost() returns true.
//
// How      The first map installs a handler of SIGBUS for the process. It handles addresses in
//          these maps and passes other faults to the previous handler. A handler that a program
//          installs later must pass on faults that it does not know; otherwise, or if a thread
//          blocks SIGBUS, the process ends as it would without this class
//          (docs/adr/0025-sigbus.md).
// Use      Read the bytes, then check is_lost(), then use what you read.
// Threads  Any thread may read the bytes and call is_lost().

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace bitnet {

class guarded_map {
 public:
  // Maps the first `size` bytes of an open file, which may be closed afterwards. nullopt and errno
  // if that fails. A size of 0 is no error.
  static std::optional<guarded_map> open(int fd, std::size_t size);

  [[nodiscard]] std::span<const std::byte> bytes() const;
  // Lets the kernel drop pages that lie wholly in `part` of bytes(); a later read gets them from
  // the file.
  void give_back(std::span<const std::byte> part) const;
  // Whether the file lacked bytes that were read.
  [[nodiscard]] bool is_lost() const;

  // A row of the table that the handler reads. Rows are used again, never freed.
  struct row {
    std::atomic<uintptr_t> begin{0};
    std::atomic<std::size_t> size{0};
    std::atomic<bool> lost{false};
    std::atomic<bool> taken{false};
    row* next = nullptr;
  };

 private:
  struct unmapper {
    void operator()(row* r) const;
  };
  std::unique_ptr<row, unmapper> row_;  // none: no bytes
};

}  // namespace bitnet
