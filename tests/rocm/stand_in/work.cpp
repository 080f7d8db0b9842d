// Modules, streams, events and launches.

#include <dlfcn.h>
#include <elf.h>

#include <chrono>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "objects.hpp"
#include "plugins/rocm/kernels/launch.hpp"
#include "stand_in.hpp"
#include "waves.hpp"

using namespace stand_in;

namespace {

struct stream {
  uint64_t last = 0;
};
struct event {
  bool timed = false;
  uint64_t ticket = 0;
  uint64_t reached_ns = 0;
};
// The library of kernels for waves of so many lanes.
struct waves {
  void* library = nullptr;
  decltype(&bitnet_waves_run) run = nullptr;
};
struct function {
  std::string name;
  void* run;
  const waves* by;
  int device;
  bool joined;
};
struct module {
  std::string symbols;  // names of what the code object has, with zeros between
  const waves* by;
  const waves* before = nullptr;  // if not nullptr: has some kernels in another form
  std::vector<function*> functions;
};

stream* stream_of(hipStream_t s, const char* call) {
  objects().check(s, kind::stream, call);
  return reinterpret_cast<stream*>(s);
}
event* event_of(hipEvent_t e, const char* call) {
  objects().check(e, kind::event, call);
  return reinterpret_cast<event*>(e);
}

template <class To, class Handle>
hipError_t destroy(Handle handle, kind what, const char* call) {
  const hipError_t answer = begin(call);
  objects().remove(handle, what, call);
  jobs().wait_for_all();
  delete reinterpret_cast<To*>(handle);
  return answer;
}

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                               std::chrono::nanoseconds(1));
}

enum class kind_of_waves : uint8_t { of_32, of_64, doubled, halved };
const waves& waves_of(kind_of_waves kind) {
  static const auto open = [](const char* name) {
    Dl_info me{};
    dladdr(reinterpret_cast<void*>(bitnet_stand_in_fail), &me);
    std::string path = me.dli_fname;
    path = path.substr(0, path.rfind('/') + 1) + name;
    waves out;
    out.library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!out.library) give_up("%s", dlerror());
    out.run = reinterpret_cast<decltype(out.run)>(dlsym(out.library, "bitnet_waves_run"));
    return out;
  };
  static const waves of_32 = open("libbitnet_rocm_waves_32.so");
  static const waves of_64 = open("libbitnet_rocm_waves_64.so");
  static const waves doubled = open("libbitnet_rocm_waves_doubled.so");
  static const waves halved = open("libbitnet_rocm_waves_halved.so");
  switch (kind) {
    case kind_of_waves::of_32:
      return of_32;
    case kind_of_waves::of_64:
      return of_64;
    case kind_of_waves::doubled:
      return doubled;
    case kind_of_waves::halved:
      break;
  }
  return halved;
}

// LLVM, "User Guide for AMDGPU Backend", e_flags: the number of each target's machine.
struct machine {
  const char* target;
  unsigned int number;
};
constexpr machine machines[] = {
    {"gfx803", 0x2a},  {"gfx900", 0x2c},  {"gfx906", 0x2f},  {"gfx908", 0x30},  {"gfx90a", 0x3f},
    {"gfx940", 0x40},  {"gfx1010", 0x33}, {"gfx1030", 0x36}, {"gfx1031", 0x37}, {"gfx1100", 0x41},
    {"gfx1101", 0x46}, {"gfx1102", 0x47}, {"gfx1103", 0x44}, {"gfx1200", 0x48}, {"gfx1201", 0x4e}};

std::string target_of(const std::string& architecture) {
  return architecture.substr(0, architecture.find(':'));
}

// Whether code fits a device with these features. `stated` are two bits of e_flags: 0 the target
// has no such feature, 1 any setting, 2 off, 3 on.
bool fits(uint32_t stated, std::string_view feature, std::string_view architecture) {
  const size_t at = architecture.find(feature);
  if (at == std::string_view::npos) return stated <= 1;
  const bool is_on = architecture.substr(at + feature.size(), 1) == "+";
  return stated == 1 || stated == (is_on ? 3 : 2);
}

// The symbols of a code object that is for a device of this architecture; false if it is none, or
// for another one.
bool read_code(const void* data, const std::string& architecture, std::string& symbols) {
  const std::string target = target_of(architecture);
  Elf64_Ehdr header;
  std::memcpy(&header, data, sizeof header);
  constexpr uint16_t of_amd = 224;  // EM_AMDGPU
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != of_amd) return false;
  bool known = false;
  for (const machine& one : machines)
    known |= target == one.target && (header.e_flags & 0xffu) == one.number;
  known &= fits(header.e_flags >> 8 & 3, ":xnack", architecture) &&
           fits(header.e_flags >> 10 & 3, ":sramecc", architecture);
  const auto* bytes = static_cast<const char*>(data);
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes + header.e_shoff);
  bool named = false;
  for (unsigned int i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr& one = sections[i];
    const std::string_view text(bytes + one.sh_offset, one.sh_type == SHT_NOBITS ? 0 : one.sh_size);
    if (one.sh_type == SHT_STRTAB) symbols.append(text).append(1, '\0');
    if (one.sh_type != SHT_NOTE) continue;
    const size_t at = text.find("amdgcn-amd-amdhsa--");
    named |= at != std::string_view::npos &&
             text.substr(at + 19, target.size()) == std::string_view(target);
  }
  return known && named;
}

// How often each kernel was launched.
std::map<std::string, uint64_t, std::less<>>& launches() {
  static std::map<std::string, uint64_t, std::less<>> all;
  return all;
}
std::mutex launches_lock;

struct launched {
  function of;
  bitnet::kernels::joined_launch value{};
  bitnet_waves_grid how{};
};

// Runs on the thread of the jobs.
void run(const launched& one) {
  const size_t count = one.of.joined ? std::size(one.value.of) : 1;
  for (size_t i = 0; i < count; ++i)
    for (const uint64_t at : one.value.of[i].memory)
      if (at != 0)
        objects().check_memory(reinterpret_cast<const void*>(at), 4, one.of.device,
                               one.of.name.c_str());
  one.of.by->run(one.of.run, &one.value, one.of.joined, &one.how);
  if (one.of.name == wanted().hangs) return jobs().hang();
  if (one.of.name == wanted().loses) return lose(hipErrorIllegalAddress);
  if (one.of.name != wanted().wrong) return;
  uint64_t written = 0;
  for (const uint64_t at : one.value.of[0].memory)
    if (at != 0) written = at;
  *reinterpret_cast<uint32_t*>(written) ^= 1;
}

hipError_t copy(void* to, const void* from, size_t bytes, hipStream_t on, const char* call) {
  stream_of(on, call)->last = jobs().add([=] { std::memcpy(to, from, bytes); });
  return hipSuccess;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): HIP's names
extern "C" {

uint64_t bitnet_stand_in_launches(const char* kernel) {
  const std::scoped_lock held(launches_lock);
  const auto found = launches().find(kernel);
  return found == launches().end() ? 0 : found->second;
}

hipError_t hipModuleLoadData(hipModule_t* out, const void* data) {
  STAND_IN_BEGIN();
  auto* made = new module;
  const std::string& target = wanted().targets[static_cast<size_t>(current_device())];
  if (!read_code(data, target, made->symbols)) {
    delete made;
    return hipErrorNoBinaryForGpu;
  }
  const bool narrow = target.substr(0, 4) == "gfx1";
  made->by = &waves_of(narrow ? kind_of_waves::of_32 : kind_of_waves::of_64);
  // Matrix cores to which a lane brings twice as many elements, or half as many.
  if (target.substr(0, 5) == "gfx94") made->before = &waves_of(kind_of_waves::doubled);
  if (target.substr(0, 5) == "gfx12") made->before = &waves_of(kind_of_waves::halved);
  objects().add(made, kind::module);
  *out = reinterpret_cast<hipModule_t>(made);
  return hipSuccess;
}
hipError_t hipModuleUnload(hipModule_t handle) {
  const hipError_t answer = begin(__func__);
  objects().remove(handle, kind::module, __func__);
  jobs().wait_for_all();
  auto* one = reinterpret_cast<module*>(handle);
  for (function* f : one->functions) {
    objects().remove(f, kind::function, __func__);
    delete f;
  }
  delete one;
  return answer;
}
// Of a kernel the code object has a descriptor, name.kd, as what is launched.
hipError_t hipModuleGetFunction(hipFunction_t* out, hipModule_t handle, const char* name) {
  STAND_IN_BEGIN();
  objects().check(handle, kind::module, __func__);
  auto* from = reinterpret_cast<module*>(handle);
  const std::string descriptor = std::string(1, '\0') + name + ".kd" + std::string(1, '\0');
  if (from->symbols.find(descriptor) == std::string::npos) return hipErrorNotFound;
  const waves* by = from->before;
  void* found = by ? dlsym(by->library, name) : nullptr;
  if (!found) {
    by = from->by;
    found = dlsym(by->library, name);
  }
  if (!found) give_up("%s: the code object has %s, and the stand-in does not", __func__, name);
  auto* made =
      new function{name, found, by, current_device(), std::string_view(name).ends_with("_joined")};
  from->functions.push_back(made);
  objects().add(made, kind::function);
  *out = reinterpret_cast<hipFunction_t>(made);
  return hipSuccess;
}
hipError_t hipModuleLaunchKernel(hipFunction_t handle, unsigned int groups_x, unsigned int groups_y,
                                 unsigned int groups_z, unsigned int threads_x,
                                 unsigned int threads_y, unsigned int threads_z,
                                 unsigned int shared_bytes, hipStream_t on, void** values,
                                 void** extra) {
  STAND_IN_BEGIN();
  objects().check(handle, kind::function, __func__);
  constexpr unsigned int most_y = 65535, most_threads = 1024, most_shared = 64 << 10;
  if (groups_x == 0 || groups_y == 0 || groups_y > most_y || groups_z != 1 || threads_x == 0 ||
      threads_x > most_threads || threads_y != 1 || threads_z != 1 || shared_bytes > most_shared ||
      extra)
    return hipErrorInvalidValue;
  launched one{*reinterpret_cast<function*>(handle), {}, {}};
  {
    const std::scoped_lock held(launches_lock);
    ++launches()[one.of.name];
  }
  std::memcpy(&one.value, values[0], one.of.joined ? sizeof one.value : sizeof one.value.of[0]);
  one.how = {groups_x, groups_y, threads_x, shared_bytes, nullptr};
  stream_of(on, __func__)->last = jobs().add([one]() mutable {
    one.how.name = one.of.name.c_str();
    run(one);
  });
  return hipSuccess;
}

hipError_t hipStreamCreateWithFlags(hipStream_t* out, unsigned int) {
  STAND_IN_BEGIN();
  auto* made = new stream;
  objects().add(made, kind::stream);
  *out = reinterpret_cast<hipStream_t>(made);
  return hipSuccess;
}
hipError_t hipStreamDestroy(hipStream_t handle) {
  return destroy<stream>(handle, kind::stream, __func__);
}
hipError_t hipStreamSynchronize(hipStream_t handle) {
  const hipError_t answer = begin(__func__);
  jobs().wait(stream_of(handle, __func__)->last);
  return answer;
}
hipError_t hipMemsetD32Async(void* at, int value, size_t count, hipStream_t on) {
  STAND_IN_BEGIN();
  objects().check_memory(at, 4 * count, current_device(), __func__);
  stream_of(on, __func__)->last = jobs().add([=] {
    for (size_t i = 0; i < count; ++i)
      std::memcpy(static_cast<char*>(at) + 4 * i, &value, sizeof value);
  });
  return hipSuccess;
}
hipError_t hipMemcpyHtoDAsync(void* to, const void* from, size_t bytes, hipStream_t on) {
  STAND_IN_BEGIN();
  objects().check_memory(to, bytes, current_device(), __func__);
  return copy(to, from, bytes, on, __func__);
}
hipError_t hipMemcpyDtoHAsync(void* to, void* from, size_t bytes, hipStream_t on) {
  STAND_IN_BEGIN();
  objects().check_memory(from, bytes, current_device(), __func__);
  return copy(to, from, bytes, on, __func__);
}
hipError_t hipMemcpyDtoDAsync(void* to, void* from, size_t bytes, hipStream_t on) {
  STAND_IN_BEGIN();
  objects().check_memory(to, bytes, current_device(), __func__);
  objects().check_memory(from, bytes, current_device(), __func__);
  return copy(to, from, bytes, on, __func__);
}

hipError_t hipEventCreateWithFlags(hipEvent_t* out, unsigned int flags) {
  STAND_IN_BEGIN();
  auto* made = new event;
  made->timed = (flags & hipEventDisableTiming) == 0;
  objects().add(made, kind::event);
  *out = reinterpret_cast<hipEvent_t>(made);
  return hipSuccess;
}
hipError_t hipEventDestroy(hipEvent_t handle) {
  return destroy<event>(handle, kind::event, __func__);
}
hipError_t hipEventRecord(hipEvent_t handle, hipStream_t on) {
  STAND_IN_BEGIN();
  event* e = event_of(handle, __func__);
  e->ticket = jobs().add([e] { e->reached_ns = now_ns(); });
  stream_of(on, __func__)->last = e->ticket;
  return hipSuccess;
}
hipError_t hipEventQuery(hipEvent_t handle) {
  STAND_IN_BEGIN();
  return jobs().is_done(event_of(handle, __func__)->ticket) ? hipSuccess : hipErrorNotReady;
}
hipError_t hipEventElapsedTime(float* ms, hipEvent_t from, hipEvent_t to) {
  STAND_IN_BEGIN();
  const event *a = event_of(from, __func__), *b = event_of(to, __func__);
  if (!a->timed || !b->timed) return hipErrorInvalidHandle;
  if (!jobs().is_done(a->ticket) || !jobs().is_done(b->ticket)) return hipErrorNotReady;
  *ms = static_cast<float>(b->reached_ns - a->reached_ns) / 1e6f;
  return hipSuccess;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
