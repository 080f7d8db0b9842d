#pragma once
// Which model answered, so that an output is not gone on with by another one.

#include <string>

namespace bitnet::host::batch {

// "fp_" and 16 hexadecimal digits, of the size and of samples of the file, or of those of a
// folder: a guard against mistakes. It distinguishes models that differ in weights everywhere, as
// any two that were trained or converted apart do, and reads at most 256 KiB of a file. What
// cannot be read is left out: opening the model says why.
[[nodiscard]] std::string fingerprint_of(const std::string& model);

}  // namespace bitnet::host::batch
