#pragma once
// The tables of kernels that the interpreter runs, for one instruction set.

#include <string>

#include "bitnet/sdk/interpreter/kernel.hpp"
#include "kernels/variants.hpp"
#include "ops/top_head.hpp"

namespace bitnet::cpu {

// "name.isa": the instruction set of the function that runs, which may differ from the form's.
std::string kernel_id(const std::string& name, const char* isa);

// "name.isa+isa", for forms that name both: first the set that multiplies few tokens, then that of
// panels, which multiply many.
std::string kernel_id_of_both(const std::string& name, const char* few, const isa_form& form);

// True for weights that isa_form::ternary or isa_form::grouped multiplies.
bool has_row_scales(const sdk::weight& w);
bool has_group_scales(const sdk::weight& w);

void add_primitives(const isa_form& isa, sdk::definition& out);
void add_composites(const isa_form& isa, top_head_bits bits, sdk::definition& out);
// For a form that names both: keeps its kernels in the list, which is compared with a probe's, but
// lets none be chosen. The kernels of its other instruction set follow.
void withhold_panels(const isa_form& form, sdk::definition& out);
// Lists the kernels of the other forms that this CPU can run.
void add_others(const isa_form& chosen, top_head_bits (*bits)(const isa_form&),
                sdk::definition& out);

}  // namespace bitnet::cpu
