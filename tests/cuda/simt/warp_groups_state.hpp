#pragma once
// What the scheduler (simt.cpp) and the emulation of sm_90's own words (warp_groups.cpp) need of
// each other.

#include <cstddef>

namespace simt {

constexpr size_t shared_alignment = 1024;  // what is in front of a group's memory is aligned to it

// The scheduler's.
unsigned int running();  // number of the thread
[[noreturn]] void refuse(const char* what);
void see_use(const char* what);  // ends the process if the thread had to wait for grids before
// The thread goes on when phase_is_over().
void wait_for_phases(int line);

// The emulation's.
void forget_warp_groups(unsigned int threads);  // a group begins
const char* left_of_warp_groups();              // what a group may not leave behind, or nullptr
bool phase_is_over(unsigned int thread);        // that it waits for
// Nobody can go on: copies are made whose phases are waited for. False if there are none.
bool make_box_copies();

}  // namespace simt
