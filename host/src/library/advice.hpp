#pragma once
// What the library says of its options, in the words of the command line.

#include <string>
#include <string_view>

namespace bitnet::host {

// `message` with the flag in place of each option of bitnet.h that it names: "use a larger
// n_context" becomes "use a larger --ctx-size". Only where a space or nothing is before the name:
// paths and keys of JSON stay as they are.
[[nodiscard]] std::string in_flags(std::string_view message);

}  // namespace bitnet::host
