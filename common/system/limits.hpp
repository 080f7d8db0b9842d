#pragma once
// The limits that the system sets for a process (getrlimit(2)), in the words of messages: when one
// is reached, the message names it and its size.

#include <cstddef>
#include <string>

namespace bitnet::limits {

// The text of errno `error`, with the limit of this process that can cause it: "Too many open
// files; the limit is 20 (`ulimit -n`)".
[[nodiscard]] std::string reason(int error);

// The same if a thread or process could not be started: names all limits that can cause it.
[[nodiscard]] std::string shortage(int error);

// The limit on memory: "; the limit is 102400 KiB of addresses (`ulimit -v`)"; "" if none is set.
[[nodiscard]] std::string of_memory();

// Writes "out of memory" and the limits on memory to `out`, which has `size` bytes, and terminates
// it. Allocates nothing, so it can be called after std::bad_alloc.
void out_of_memory(char* out, std::size_t size);

// Raises this process's limit of open files to the hard limit. Returns it; 0: unlimited.
[[nodiscard]] std::size_t raise_open_files();

}  // namespace bitnet::limits
