#pragma once
// Opens the standard descriptors 0, 1 and 2 if the program was started without them.

namespace bitnet::files {

// Call it before anything is opened: otherwise the next open file gets the number of a closed
// standard descriptor, and its data. Afterwards a closed standard input is at its end, writing to a
// closed standard output fails with EBADF, and a closed standard error discards. Returns false on
// failure.
[[nodiscard]] bool open_standard_descriptors();

}  // namespace bitnet::files
