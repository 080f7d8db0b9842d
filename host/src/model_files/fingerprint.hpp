#pragma once
// Names the model that answered, so that another model does not continue its output file.

#include <string>

namespace bitnet::host {

// "fp_" and 16 hexadecimal digits, made of the size and of samples of the model's file or files; at
// most 256 KiB of a file are read. It guards against mistakes: models that were trained or
// converted separately differ in all weights, so samples tell them apart. Unreadable files are left
// out, since opening the model reports them.
[[nodiscard]] std::string fingerprint_of(const std::string& model);

}  // namespace bitnet::host
