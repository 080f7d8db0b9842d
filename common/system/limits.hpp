#pragma once
// The limits that the system sets for a process (getrlimit(2)), in the words of messages: when one
// is reached, the message names it and its size.

#include <cstddef>
#include <string>

namespace bitnet::limits {

// What errno `error` means, with the limit of this process that it may come from:
// "Too many open files; the limit is 20 (`ulimit -n`)".
[[nodiscard]] std::string reason(int error);

// Of a thread or process that could not be started: all limits that are set for those.
[[nodiscard]] std::string shortage(int error);

// Of memory: "; the limit is 102400 KiB of addresses (`ulimit -v`)", or "" where none is set.
[[nodiscard]] std::string of_memory();

// "out of memory", with the limits on it that are set. Allocates nothing, for those who have caught
// std::bad_alloc; `out` has room for `size` bytes and is terminated.
void out_of_memory(char* out, std::size_t size);

// Lets this process open as many files as the system permits it. How many that are; 0: no limit.
[[nodiscard]] std::size_t raise_open_files();

}  // namespace bitnet::limits
