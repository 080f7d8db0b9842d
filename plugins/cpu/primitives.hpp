#pragma once
// The tables of kernels that the interpreter runs, for one instruction set.

#include <string>

#include "bitnet/sdk/interpreter/kernel.hpp"
#include "kernels/variants.hpp"
#include "ops/top_head.hpp"

namespace bitnet::cpu {

// "name.isa": the instruction set of the function that runs, which is not always that of the form.
std::string kernel_id(const std::string& name, const char* isa);

// Weights that isa_form::ternary or isa_form::grouped multiply.
bool has_row_scales(const sdk::weight& w);
bool has_group_scales(const sdk::weight& w);

void add_primitives(const isa_form& isa, sdk::definition& out);
void add_composites(const isa_form& isa, head_bits bits, sdk::definition& out);
// The kernels of the other forms that this CPU can run, for listings.
void add_others(const isa_form& chosen, head_bits bits, sdk::definition& out);

}  // namespace bitnet::cpu
