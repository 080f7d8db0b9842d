#pragma once
// What simt.cpp and warp_groups.cpp know of the grid that runs. Kernels do not see it.

#include <cstdint>
#include <utility>
#include <vector>

#include "fiber.hpp"
#include "simt.hpp"

namespace simt {

inline constexpr unsigned int of_warp_group = 4 * lanes;  // threads

// Sums that products in flight are added to. Where the kernel has them stands something else until
// they are waited for.
struct sums {
  int* at;
  uint32_t count;
  std::vector<int> values;
  unsigned int in_flight;  // products
};
struct product {
  uint32_t columns, a[4];
  uint64_t b;  // descriptor
  int* c;
  bool adds;  // to what c has
  int line;
  std::vector<int8_t> seen;  // column after column of b when it began; only of a warp's first lane
};
// Of one thread: what it multiplies.
struct multiplying {
  bool begun = false;             // a batch
  unsigned int open = 0;          // products in no batch yet
  std::vector<product> products;  // in flight
  std::vector<unsigned int> batches;
  std::vector<simt::sums> sums;
};

// One that has not arrived in memory of the group.
struct box {
  box_map map;
  uint32_t to;  // byte of that memory
  int32_t x, y;
};
struct barrier {
  uint32_t at;         // byte of the group's memory
  unsigned int maker;  // thread
  uint32_t arrivals, left;
  uint64_t bytes = 0;  // expected, of this phase
  uint64_t phase = 0;  // how many have ended
  bool shown = false, known = false;
  std::vector<box> boxes;
};
// Where a box lies, or will when the phase ends.
struct landing {
  uint32_t begin, end;
  unsigned int barrier;
  uint64_t phase;
};
// What a warp multiplied, in order: the others of its warp group have to do the same.
struct said {
  uint32_t columns;
  uint64_t b;
  bool adds;
  int line;
};

// Memory that was requested ahead of the wait for other grids.
struct ahead {
  const void* from;
  uint32_t bytes;
  uint64_t sum;  // of what was there
};

struct thread {
  fiber context;
  bool done = false, waited = false;  // for the grids before this one
  meeting waits = meeting::none;
  int line = 0;
  unsigned int meetings = 0;  // of the warp
  index3 index{0, 0, 0};
  std::vector<std::pair<void*, const void*>> copies;  // of 16 bytes, not made yet
  std::vector<ahead> requested;
  multiplying multiplies;
  unsigned int barrier = 0;  // that it waits for, until this many phases have ended
  uint64_t phase = 0;
  bool gives_up = false, gave_up = false;  // where no thread can go on
  std::vector<uint64_t> phases;            // of every barrier: how many it saw end
};

// A grid that runs, or has begun.
struct state {
  bool used = false, begins = false;
  kernel function = nullptr;
  const void* argument = nullptr;
  grid how;
  void* allocated = nullptr;
  void* memory = nullptr;  // of the group
  std::vector<char*> stacks;
  std::vector<thread> threads;
  std::vector<uint64_t> given;  // two turns of every warp's lanes: one may be a turn ahead
  fiber scheduler;
  unsigned int running = 0;
  std::vector<barrier> barriers;
  std::vector<landing> landings;
  std::vector<std::vector<said>> sequences;  // of each warp group
  std::vector<size_t> positions;             // of each warp in it
};
extern state* now;

[[noreturn]] void give_up(const char* what, unsigned int first, unsigned int count);
// On to the next lane of the warp that can run, or to the scheduler.
void leave();
// The running thread does something that it may not before it has waited.
void see_wait(const char* what);

// Of warp_groups.cpp, for the scheduler.
void begin_warp_groups();                 // of a group that begins
bool release_phases(unsigned int first);  // true if some lane of the warp goes on
bool give_phases_up();                    // true if some thread goes on that may give up
void meet_all_phases();                   // all threads are at a barrier of the group
void see_thread_end();
void see_group_end();

}  // namespace simt
