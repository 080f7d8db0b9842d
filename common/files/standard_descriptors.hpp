#pragma once
// Standard input, output and error, however the program was started.

namespace bitnet::files {

// To be called before anything is opened: what the program opens else takes the number of a closed
// one, and gets what was meant for it. A closed standard input is at its end, writing to a closed
// standard output fails with EBADF, and what goes to a closed standard error is gone. False if that
// cannot be had.
[[nodiscard]] bool open_standard_descriptors();

}  // namespace bitnet::files
