#pragma once
// Names of kernels in BitNet-rs, for users who come from there. Weights of its formats I2_S, TL1
// and TL2 reach a backend as ternary2, so that several of its names are one kernel here.

#include <string>
#include <string_view>
#include <vector>

namespace bitnet::host {

struct kernel_alias {
  std::string_view name;
  std::string_view stem;     // the ids' part before the instruction set or API
  std::string_view ends;     // possible beginnings of the rest, separated by blanks
  std::string_view how;      // how a machine can be made to use such a kernel
  std::string_view instead;  // an explanation, if no kernel of ours is meant; else empty
};

// Ignores case; nullptr: it is not such a name.
const kernel_alias* find_kernel_alias(std::string_view name);
// Whether the alias means the kernel with this id.
bool names(const kernel_alias& alias, std::string_view kernel_id);
// All names that mean a kernel of this id.
std::vector<std::string> aliases_of(std::string_view kernel_id);

}  // namespace bitnet::host
