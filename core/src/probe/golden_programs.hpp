#pragma once
// The golden programs of each file, in the order in which they run: a program comes after those
// that judge the kernels it needs, but for quantisers, whose codes only products show.

#include <vector>

#include "probe/golden.hpp"

namespace bitnet::probe::golden {

void add_quantisers_and_groups(std::vector<golden_program>& out);
void add_formats_with_blocks(std::vector<golden_program>& out);
void add_layers_with_states(std::vector<golden_program>& out);
void add_ops_of_rows(std::vector<golden_program>& out);

}  // namespace bitnet::probe::golden
