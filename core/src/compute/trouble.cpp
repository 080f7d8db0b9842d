#include "compute/trouble.hpp"

#include <cstdint>
#include <mutex>
#include <set>
#include <utility>

#include "base/wording.hpp"
#include "system/limits.hpp"

namespace bitnet::compute {
namespace {

struct table {
  std::mutex mutex;                                         // guards what follows
  std::set<std::pair<std::uintptr_t, std::uintptr_t>> out;  // object and its destroy slot
};

// Never destroyed: handles may be destroyed while the process ends.
table& all() {
  static table& one = *new table;
  return one;
}

std::pair<std::uintptr_t, std::uintptr_t> entry_of(const void* object, void (*destroy)()) {
  return {reinterpret_cast<std::uintptr_t>(object), reinterpret_cast<std::uintptr_t>(destroy)};
}

}  // namespace

bool given_out::add(const void* object, void (*destroy)()) {
  const std::lock_guard lock(all().mutex);
  return all().out.insert(entry_of(object, destroy)).second;
}

void given_out::remove(const void* object, void (*destroy)()) noexcept {
  const std::lock_guard lock(all().mutex);
  all().out.erase(entry_of(object, destroy));
}

failure in_words(trouble t, const std::string& doing) {
  // A plugin does not know which limit caused it.
  if (t.status == BITNET_OUT_OF_MEMORY && t.reason.find("ulimit") == std::string::npos)
    t.reason += limits::of_memory();
  if (t.status != BITNET_OK)
    return failure{t.status, std::move(t.reason), std::move(t.from)}.within(doing);
  return failure{BITNET_REJECTED,
                 fmt::format("{}() {}: the backend breaks its contract; {}, and report it to the "
                             "backend's author",
                             t.slot, t.reason, say(word::request_another))}
      .within(doing);
}

}  // namespace bitnet::compute
