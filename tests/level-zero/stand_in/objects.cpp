#include "objects.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>

namespace stand_in {
namespace {

settings read_settings() {
  settings out;
  const char* const given = std::getenv("BITNET_STAND_IN");
  std::string text = given ? given : "";
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string pair = text.substr(begin, end - begin);
    const size_t equals = pair.find('=');
    if (equals == std::string::npos) complain("BITNET_STAND_IN has '" + pair + "'");
    const std::string key = pair.substr(0, equals);
    const uint64_t value = std::strtoull(pair.c_str() + equals + 1, nullptr, 0);
    const auto small = static_cast<uint32_t>(value);
    if (key == "devices")
      out.devices = small;
    else if (key == "type")
      out.type = small;
    else if (key == "memory")
      out.memory = value;
    else if (key == "shared")
      out.shared = small;
    else if (key == "threads")
      out.threads = small;
    else if (key == "spirv")
      out.spirv = small;
    else if (key == "init")
      out.init = small;
    else if (key == "compute")
      out.compute = small;
    else if (key == "fail")
      out.fail = value;
    else if (key == "with")
      out.with = small;
    else
      complain("BITNET_STAND_IN has no key '" + key + "'");
    begin = end + 1;
  }
  return out;
}

struct counts {
  uint64_t calls = 0, fails_at = wanted().fail;
  uint32_t with = wanted().with;
  std::string failed;
};
counts& so_far() {
  static auto* const all = new counts;
  return *all;
}

std::unordered_map<const void*, const char*>& living() {
  static auto* const all = new std::unordered_map<const void*, const char*>;
  return *all;
}

}  // namespace

const settings& wanted() {
  static const auto* const all = new settings(read_settings());
  return *all;
}

void complain(const std::string& sentence) {
  std::fprintf(stderr, "stand-in of Level Zero: %s\n", sentence.c_str());
  std::abort();
}

std::recursive_mutex& everything() {
  static auto* const lock = new std::recursive_mutex;
  return *lock;
}

ze_result_t entered(const char* call) {
  const std::scoped_lock held(everything());
  counts& all = so_far();
  if (++all.calls != all.fails_at) return ZE_RESULT_SUCCESS;
  all.failed = call;
  return static_cast<ze_result_t>(all.with);
}

void born(const void* object, const char* kind) {
  const std::scoped_lock held(everything());
  living()[object] = kind;
}

void alive(const void* object, const char* kind) {
  const std::scoped_lock held(everything());
  const auto found = living().find(object);
  if (found == living().end()) complain(std::string("a ") + kind + " is not alive");
  if (std::string(found->second) != kind)
    complain(std::string("a ") + found->second + " is used as a " + kind);
}

void dies(const void* object, const char* kind) {
  const std::scoped_lock held(everything());
  alive(object, kind);
  living().erase(object);
}

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

void signal(event* e, uint64_t begin_ns, uint64_t end_ns) {
  if (!e) return;
  if (e->signalled) complain("an event is signalled twice without a reset");
  e->signalled = true;
  e->begin_ns = begin_ns;
  e->end_ns = end_ns;
}

bool allocated(const context& in, const void* at, size_t bytes) {
  auto* const begin = static_cast<uint8_t*>(const_cast<void*>(at));
  auto it = in.memory.upper_bound(begin);
  if (it == in.memory.begin()) return false;
  --it;
  return begin + bytes <= it->first + it->second;
}

}  // namespace stand_in

void bitnet_stand_in_fail(uint64_t nth, uint32_t with) {
  const std::scoped_lock held(stand_in::everything());
  stand_in::so_far().calls = 0;
  stand_in::so_far().fails_at = nth;
  stand_in::so_far().with = with;
  stand_in::so_far().failed.clear();
}
uint64_t bitnet_stand_in_calls() {
  const std::scoped_lock held(stand_in::everything());
  return stand_in::so_far().calls;
}
uint64_t bitnet_stand_in_objects() {
  const std::scoped_lock held(stand_in::everything());
  return stand_in::living().size();
}
const char* bitnet_stand_in_failed() {
  const std::scoped_lock held(stand_in::everything());
  return stand_in::so_far().failed.c_str();
}
