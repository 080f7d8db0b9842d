#pragma once
// Bytes of a file, mapped read-only, that end no process when the file loses them: another process
// cuts it short, or its disk fails. What is missing then reads as zeros, and is_lost() says so.
//
// How      the first map installs a handler of SIGBUS for the process. It answers for addresses in
//          such maps and hands every other fault to the handler that was there before. A program
//          that installs its own later has to hand on what it does not know; one that does not, or
//          a thread that blocks SIGBUS, ends as without us (docs/adr/0025-sigbus.md).
// Use      read what you need, then check is_lost() before you use it.
// Threads  the bytes, and is_lost(), from any thread.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace bitnet {

class guarded_map {
 public:
  // The first `size` bytes of an open file, which may be closed afterwards. Nothing, with errno,
  // where it cannot be mapped. No bytes at all are no error.
  static std::optional<guarded_map> open(int fd, std::size_t size);

  [[nodiscard]] std::span<const std::byte> bytes() const;
  // Pages that lie wholly in a part of bytes() need not stay in memory; a later read gets them from
  // the file. A hint to the kernel.
  void give_back(std::span<const std::byte> part) const;
  // Whether bytes were asked for that the file did not have any more.
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
