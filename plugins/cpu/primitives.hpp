#pragma once
// The tables of kernels that the interpreter runs, for one instruction set.

#include <string>

#include "bitnet/sdk/interpreter/kernel.hpp"
#include "kernels/variants.hpp"
#include "ops/top_head.hpp"

namespace bitnet::cpu {

// "name.isa": the instruction set of the function that runs, which is not always that of the form.
std::string kernel_id(const std::string& name, const char* isa);

// "name.isa+isa", of forms that name both: first the one that multiplies few tokens, then that of
// panels, which multiply many.
std::string kernel_id_of_both(const std::string& name, const char* few, const isa_form& form);

// Weights that isa_form::ternary or isa_form::grouped multiply.
bool has_row_scales(const sdk::weight& w);
bool has_group_scales(const sdk::weight& w);

void add_primitives(const isa_form& isa, sdk::definition& out);
void add_composites(const isa_form& isa, head_bits bits, sdk::definition& out);
// Leaves the kernels of a form that names both in the list, which is compared with what a probe has
// seen, and lets none of them be chosen: those of its other instruction set follow.
void withhold_panels(const isa_form& form, sdk::definition& out);
// The kernels of the other forms that this CPU can run, for listings.
void add_others(const isa_form& chosen, head_bits (*bits)(const isa_form&), sdk::definition& out);

}  // namespace bitnet::cpu
