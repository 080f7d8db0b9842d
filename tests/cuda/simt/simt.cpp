#include "simt.hpp"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "fiber.hpp"
#include "warp_groups_state.hpp"

namespace simt {

place here;
void* shared = nullptr;
int architecture = 90;

namespace {

constexpr unsigned int lanes = 32;
constexpr size_t stack_bytes = size_t{128} << 10;

struct thread {
  fiber context;
  bool done = false, waited = false;  // for the grids before this one
  meeting waits = meeting::none;
  int line = 0;
  unsigned int meetings = 0;  // of the warp
  index3 index{0, 0, 0};
  std::vector<std::pair<void*, const void*>> copies;  // of 16 bytes, not made yet
};

}  // namespace

// A grid that runs, or has begun.
struct state {
  bool used = false, begins = false;
  kernel function = nullptr;
  const void* argument = nullptr;
  grid how;
  void* memory = nullptr;  // of the group
  std::vector<char*> stacks;
  std::vector<thread> threads;
  std::vector<uint64_t> given;  // two turns of every warp's lanes: one may be a turn ahead
  fiber scheduler;
  unsigned int running = 0;
};

namespace {

state states[2];
state* now = &states[0];

[[noreturn]] void give_up(const char* what, unsigned int first, unsigned int count) {
  std::fprintf(stderr, "simt: %s in group (%u, %u) of %s:", what, here.group.x, here.group.y,
               now->how.name);
  for (unsigned int i = first; i < first + count; ++i) {
    const thread& t = now->threads[i];
    constexpr const char* words[] = {"runs",    "barrier", "shuffle", "vote",
                                     "product", "grids",   "phase"};
    std::fprintf(stderr, " [%u] %s:%d", i, t.done ? "left" : words[static_cast<int>(t.waits)],
                 t.line);
  }
  std::fprintf(stderr, "\n");
  std::abort();
}

// On to the next lane of the warp that can run, or to the scheduler.
void leave() {
  thread& mine = now->threads[now->running];
  for (unsigned int next = now->running + 1; next % lanes != 0; ++next) {
    thread& t = now->threads[next];
    if (t.done || t.waits != meeting::none) continue;
    now->running = next;
    here.thread = t.index;
    switch_fiber(mine.context, t.context, mine.done);
    return;
  }
  switch_fiber(mine.context, now->scheduler, mine.done);
}

// The running thread does something that it may not before it has waited.
void see_wait(const char* what) {
  if (!now->how.waits || now->threads[now->running].waited) return;
  const std::string text = std::string("threads ") + what + " that did not wait for grids before";
  give_up(text.c_str(), now->running, 1);
}

void enter() {
  entered_fiber();
  now->function(now->argument);
  see_wait("leave");
  now->threads[now->running].done = true;
  leave();
}

// True if some lane of the warp goes on.
bool release_warp(unsigned int first) {
  const thread& leader = now->threads[first];
  bool some = false, all = true;
  for (unsigned int i = first; i < first + lanes; ++i) {
    const thread& t = now->threads[i];
    if (t.waits == meeting::phase) return false;  // it may still come
    const bool here_too = !t.done && t.waits != meeting::none && t.waits != meeting::barrier &&
                          t.waits != meeting::grids;
    some |= here_too;
    all &= here_too && t.waits == leader.waits && t.line == leader.line;
  }
  if (!some) return false;
  if (!all) give_up("lanes of a warp meet at different places", first, lanes);
  for (unsigned int i = first; i < first + lanes; ++i) now->threads[i].waits = meeting::none;
  return true;
}

void run_warp(unsigned int first) {
  do {
    unsigned int next = first;
    while (next < first + lanes &&
           (now->threads[next].done || now->threads[next].waits != meeting::none))
      ++next;
    if (next == first + lanes) continue;
    now->running = next;
    here.thread = now->threads[next].index;
    switch_fiber(now->scheduler, now->threads[next].context, false);
  } while (release_warp(first));
}

// False when all threads are through.
bool release_group() {
  const auto count = static_cast<unsigned int>(now->threads.size());
  const thread& leader = now->threads[0];
  bool some = false, all = true;
  for (const thread& t : now->threads) {
    some |= !t.done;
    all &= !t.done && t.waits == meeting::barrier && t.line == leader.line;
  }
  if (!some) return false;
  if (!all) give_up("threads of a group meet at different barriers, or left", 0, count);
  for (thread& t : now->threads) t.waits = meeting::none;
  return true;
}

void begin_group(unsigned int x, unsigned int y) {
  here.group = {x, y, 0};
  std::memset(shared, 0xa5, now->how.shared_bytes);
  for (thread& t : now->threads) {
    t.done = t.waited = false;
    t.waits = meeting::none;
    t.line = 0;
    t.meetings = 0;
    t.copies.clear();
    prepare_fiber(t.context, enter);
  }
}
void run_warps() {
  for (unsigned int w = 0; w < now->threads.size(); w += lanes) run_warp(w);
}
// True if some thread goes on whose phase is over.
bool release_phases() {
  bool some = false;
  for (unsigned int i = 0; i < now->threads.size(); ++i) {
    thread& t = now->threads[i];
    if (t.waits != meeting::phase || !phase_is_over(i)) continue;
    t.waits = meeting::none;
    some = true;
  }
  return some;
}
void run_group() {
  forget_warp_groups(static_cast<unsigned int>(now->threads.size()));
  do {
    do run_warps();
    while (release_phases() || (make_box_copies() && release_phases()));
  } while (release_group());
  if (const char* left = left_of_warp_groups()) give_up(left, 0, 1);
}

// Memory of a group begins where it is aligned to 16 bytes and no more, as on a device.
constexpr size_t shared_begins = 48;
void* allocate_shared(size_t bytes) {
  void* out = nullptr;
  if (posix_memalign(&out, shared_alignment, shared_begins + bytes) != 0) std::abort();
  return static_cast<char*>(out) + shared_begins;
}
void free_shared(void* memory) {
  std::free(static_cast<char*>(memory) - shared_begins);
}

// Stacks are kept: a grid has as many groups as it likes, and they run one after the other.
void make_threads(unsigned int count) {
  if (count == 0 || count % lanes != 0) {
    std::fprintf(stderr, "simt: groups of %u threads; a multiple of %u is needed\n", count, lanes);
    std::abort();
  }
  while (now->stacks.size() < count) {
    void* made =
        mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) std::abort();
    mprotect(made, 4096, PROT_NONE);  // what runs over it is seen
    now->stacks.push_back(static_cast<char*>(made));
  }
  now->threads.assign(count, {});
  now->given.assign(size_t{2} * count, 0);
  for (unsigned int i = 0; i < count; ++i) {
    now->threads[i].index = {i, 0, 0};
    now->threads[i].context.stack = now->stacks[i];
    now->threads[i].context.bytes = stack_bytes;
  }
}

void enter_grid(state& mine) {
  now = &mine;
  here.groups = mine.how.groups;
  here.group = {0, 0, 0};
  shared = mine.memory;
}
state& begin_grid(kernel function, const void* argument, const grid& how) {
  state& mine = states[states[0].used ? 1 : 0];
  if (mine.used) {
    std::fprintf(stderr, "simt: a third grid begins\n");
    std::abort();
  }
  mine.used = true;
  mine.function = function;
  mine.argument = argument;
  mine.how = how;
  // Exactly as large, so that what lies behind it is seen by sanitizers; what is in it is not
  // zeros.
  mine.memory = allocate_shared((how.shared_bytes + 31) / 16 * 16);
  enter_grid(mine);
  make_threads(how.threads);
  begin_group(0, 0);
  return mine;
}
void finish_grid(state& mine) {
  const index3 groups = mine.how.groups;
  for (unsigned int y = 0; y < groups.y; ++y)
    for (unsigned int x = 0; x < groups.x; ++x) {
      if (x != 0 || y != 0) begin_group(x, y);
      run_group();
    }
  shared = nullptr;
  free_shared(mine.memory);
  mine.used = false;
}

}  // namespace

unsigned int running() {
  return now->running;
}
void refuse(const char* what) {
  give_up(what, now->running, 1);
}
void see_use(const char* what) {
  see_wait(what);
}
void wait_for_phases(int line) {
  thread& t = now->threads[now->running];
  t.waits = meeting::phase;
  t.line = line;
  leave();
}

void wait_for_grids() {
  thread& t = now->threads[now->running];
  if (now->begins) {
    t.waits = meeting::grids;
    leave();
  }
  t.waited = true;
}

void let_grids_begin() {
  see_wait("let others begin");
}

void meet_group(int line) {
  see_wait("meet");
  thread& t = now->threads[now->running];
  t.waits = meeting::barrier;
  t.line = line;
  leave();
}

const uint64_t* meet_warp(meeting what, unsigned int mask, uint64_t mine, int line) {
  see_wait("meet");
  thread& t = now->threads[now->running];
  const unsigned int first = now->running / lanes * lanes;
  if (mask != 0xffffffffu) give_up("a mask that is not all lanes", first, lanes);
  uint64_t* turn = &now->given[2 * first + t.meetings % 2 * lanes];
  ++t.meetings;
  turn[now->running % lanes] = mine;
  t.waits = what;
  t.line = line;
  leave();
  return turn;
}

void copy_later(void* to, const void* from) {
  see_wait("copy");
  now->threads[now->running].copies.emplace_back(to, from);
}

void make_copies() {
  auto& copies = now->threads[now->running].copies;
  for (const auto& [to, from] : copies) std::memcpy(to, from, 16);
  copies.clear();
}

void run(kernel function, const void* argument, const grid& how) {
  finish_grid(begin_grid(function, argument, how));
}

early::early(kernel function, const void* argument, const grid& how)
    : mine_(&begin_grid(function, argument, how)) {
  mine_->begins = true;
  run_warps();
  mine_->begins = false;
}

void early::finish() {
  enter_grid(*mine_);
  for (thread& t : now->threads) t.waits = meeting::none;
  finish_grid(*mine_);
}

}  // namespace simt
