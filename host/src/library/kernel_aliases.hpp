#pragma once
// Names of kernels in BitNet-rs, for users who come from there. Weights of its formats I2_S, TL1
// and TL2 reach a backend as ternary2, so that several of its names are one kernel here.

#include <string>
#include <string_view>
#include <vector>

namespace bitnet::host {

struct kernel_alias {
  std::string_view name;
  std::string_view stem;     // of ids: what stands before the instruction set or API
  std::string_view ends;     // beginnings of that, with blanks between
  std::string_view how;      // what has a machine take such a kernel
  std::string_view instead;  // where no kernel of ours is meant: what is true; else empty
};

// Whatever the case of the name; nullptr: it is no such name.
const kernel_alias* find_kernel_alias(std::string_view name);
// Whether a kernel of this id is what the alias means.
bool names(const kernel_alias& alias, std::string_view kernel_id);
// All names that mean a kernel of this id.
std::vector<std::string> aliases_of(std::string_view kernel_id);

}  // namespace bitnet::host
