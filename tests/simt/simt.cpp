#include "simt.hpp"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "fiber.hpp"
#include "group.hpp"

namespace simt {

place here;
void* shared = nullptr;
int architecture = 90;

namespace {

constexpr size_t stack_bytes = size_t{128} << 10;

state states[2];

}  // namespace

state* now = &states[0];

void give_up(const char* what, unsigned int first, unsigned int count) {
  std::fprintf(stderr, "simt: %s in group (%u, %u) of %s:", what, here.group.x, here.group.y,
               now->how.name);
  for (unsigned int i = first; i < first + count; ++i) {
    const thread& t = now->threads[i];
    constexpr const char* words[] = {"runs",    "barrier", "shuffle", "vote",
                                     "product", "grids",   "batches", "phase"};
    std::fprintf(stderr, " [%u] %s:%d", i, t.done ? "left" : words[static_cast<int>(t.waits)],
                 t.line);
  }
  std::fprintf(stderr, "\n");
  std::abort();
}

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

void see_wait(const char* what) {
  if (!now->how.waits || now->threads[now->running].waited) return;
  const std::string text = std::string("threads ") + what + " that did not wait for grids before";
  give_up(text.c_str(), now->running, 1);
}

namespace {

void enter() {
  entered_fiber();
  now->function(now->argument);
  see_wait("leave");
  see_thread_end();
  now->threads[now->running].done = true;
  leave();
}

bool meets_warp(const thread& t) {
  return !t.done && (t.waits == meeting::shuffle || t.waits == meeting::vote ||
                     t.waits == meeting::product || t.waits == meeting::batches);
}

// True if some lane of the warp goes on. Products are made when no other thread can go on, so that
// an operand that is overwritten too early shows.
bool release_warp(unsigned int first, bool products) {
  if (release_phases(first)) return true;
  const thread& leader = now->threads[first];
  bool some = false, all = true, later = false;
  for (unsigned int i = first; i < first + lanes; ++i) {
    const thread& t = now->threads[i];
    const bool here_too = meets_warp(t);
    some |= here_too;
    all &= here_too && t.waits == leader.waits && t.line == leader.line;
    later |= !t.done && t.waits == meeting::phase;  // lanes wait for phases one by one
  }
  if (!some || later) return false;
  if (!all) give_up("lanes of a warp meet at different places", first, lanes);
  if (leader.waits == meeting::batches && !products) return false;
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
  } while (release_warp(first, false));
}

// No thread runs now. False when all threads have ended.
bool release_group() {
  const auto count = static_cast<unsigned int>(now->threads.size());
  const thread& leader = now->threads[0];
  bool some = false, all = true, phases = false;
  for (const thread& t : now->threads) {
    some |= !t.done;
    all &= !t.done && t.line == leader.line;
    phases |= !t.done && t.waits == meeting::phase;
  }
  if (!some) return false;
  if (phases && give_phases_up()) return true;
  if (phases) give_up("no thread can go on", 0, count);
  if (!all) give_up("threads of a group meet at different barriers, or left", 0, count);
  meet_all_phases();
  for (thread& t : now->threads) t.waits = meeting::none;
  return true;
}

// True if some thread goes on that no other of its warp held.
bool release_warps(bool products) {
  for (unsigned int w = 0; w < now->threads.size(); w += lanes)
    if (release_warp(w, products)) return true;
  return false;
}

// The group that is the turn of (x, y).
index3 group_at(unsigned int x, unsigned int y) {
  const index3 all = now->how.groups;
  return now->how.backwards ? index3{all.x - 1 - x, all.y - 1 - y, 0} : index3{x, y, 0};
}

void begin_group(unsigned int x, unsigned int y) {
  here.group = group_at(x, y);
  std::memset(shared, 0xa5, now->how.shared_bytes);
  begin_warp_groups();
  for (thread& t : now->threads) {
    t.done = t.waited = false;
    t.waits = meeting::none;
    t.line = 0;
    t.meetings = 0;
    t.copies.clear();
    t.requested.clear();
    t.multiplies = {};
    t.phases.clear();
    prepare_fiber(t.context, enter);
  }
}
void run_warps() {
  for (unsigned int w = 0; w < now->threads.size(); w += lanes) run_warp(w);
}
void run_group() {
  do run_warps();
  while (release_warps(false) || release_warps(true) || release_group());
  see_group_end();
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
  here.group = group_at(0, 0);
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
  // Exactly as large, so that what lies around it is seen by sanitizers; what is in it is not
  // zeros.
  constexpr size_t before = first_address % 1024;
  if (posix_memalign(&mine.allocated, 1024, before + (how.shared_bytes + 31) / 16 * 16) != 0)
    std::abort();
  mine.memory = static_cast<char*>(mine.allocated) + before;
#ifdef BITNET_SIMT_ASAN
  __asan_poison_memory_region(mine.allocated, before);
#endif
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
  std::free(mine.allocated);
  mine.used = false;
}

// Nearly always another one if a word differs. All of the memory is read, so that sanitizers check
// its end.
uint64_t sum_of(const void* from, uint32_t bytes) {
  uint64_t sum = bytes;
  for (uint32_t i = 0; i < bytes; i += 4) {
    uint32_t word;
    std::memcpy(&word, static_cast<const char*>(from) + i, sizeof word);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
  }
  return sum;
}

}  // namespace

void wait_for_grids() {
  thread& t = now->threads[now->running];
  if (now->begins) {
    t.waits = meeting::grids;
    leave();
  }
  t.waited = true;
  for (const ahead& one : t.requested)
    if (sum_of(one.from, one.bytes) != one.sum)
      give_up("memory that was requested before a wait is written", now->running, 1);
}

void see_ahead(const void* from, uint32_t bytes) {
  thread& t = now->threads[now->running];
  if (t.waited) give_up("memory is requested behind a wait", now->running, 1);
  t.requested.push_back({from, bytes, sum_of(from, bytes)});
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
