// Devices and memory.

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "objects.hpp"
#include "stand_in.hpp"
#include "stand_ins/settings_text.hpp"

namespace stand_in {
namespace {

// Between names stands '/': features end in '+' or '-'.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> out;
  for (;;) {
    const size_t end = std::min(text.find('/'), text.size());
    if (end != 0) out.emplace_back(text.substr(0, end));
    if (end == text.size()) return out;
    text.remove_prefix(end + 1);
  }
}

void read_setting(std::string_view key, std::string_view value, settings& out) {
  if (key == "targets") {
    out.targets = split(value);
    return;
  }
  if (key == "wrong" || key == "hangs" || key == "loses") {
    (key == "wrong" ? out.wrong : key == "hangs" ? out.hangs : out.loses) = value;
    return;
  }
  uint64_t number = 0;
  if (std::from_chars(value.data(), value.data() + value.size(), number).ec != std::errc())
    give_up("BITNET_STAND_IN has '%s'", std::string(key).c_str());
  const struct {
    const char* name;
    int* to;
  } names[] = {{"init", &out.init},       {"count", &out.count},
               {"pinned", &out.pinned},   {"properties", &out.properties},
               {"at_once", &out.at_once}, {"with", &out.with}};
  for (const auto& n : names)
    if (key == n.name) {
      *n.to = static_cast<int>(number);
      return;
    }
  if (key != "memory" && key != "fail")
    give_up("BITNET_STAND_IN has '%s'", std::string(key).c_str());
  (key == "memory" ? out.memory_mib : out.fail) = number;
}

settings read_settings() {
  settings out;
  const std::string text =
      settings_text(reinterpret_cast<const void*>(wanted), "libamdhip64.settings");
  std::string_view left = text;
  while (!left.empty()) {
    const std::string_view item = left.substr(0, left.find(','));
    left.remove_prefix(std::min(left.size(), item.size() + 1));
    const size_t equals = std::min(item.find('='), item.size());
    read_setting(item.substr(0, equals), item.substr(std::min(equals + 1, item.size())), out);
  }
  return out;
}

std::atomic<uint64_t> calls{0}, failing{wanted().fail};
std::atomic<int> fails_with{wanted().with}, lost{0};
std::atomic<const char*> failed{""};
thread_local int device_of_thread = 0;

bool is_for_ever(int result) {
  return result == hipErrorIllegalAddress || result == hipErrorLaunchFailure ||
         result == hipErrorUnknown;
}
bool is_device(int device) {
  return device >= 0 && static_cast<size_t>(device) < wanted().targets.size();
}
// Waves have 32 lanes from gfx10 on, whose names have four digits.
int lanes_of(int device) {
  return wanted().targets[static_cast<size_t>(device)].substr(0, 4) == "gfx1" ? 32 : 64;
}

}  // namespace

const settings& wanted() {
  static const settings read = read_settings();
  return read;
}
int current_device() {
  return device_of_thread;
}

hipError_t begin(const char* call) {
  if (++calls == failing) {
    const int with = fails_with;
    if (is_for_ever(with)) lost = with;
    failed = call;
    return with;
  }
  return lost.load();
}

void lose(hipError_t with) {
  lost = with;
}

}  // namespace stand_in

using namespace stand_in;

// NOLINTBEGIN(readability-identifier-naming): HIP's names
extern "C" {

void bitnet_stand_in_fail(uint64_t nth, int with) {
  calls = 0;
  lost = 0;
  fails_with = with;
  failing = nth;
  failed = "";
}
uint64_t bitnet_stand_in_calls() {
  return calls;
}
uint64_t bitnet_stand_in_objects() {
  return objects().count();
}
const char* bitnet_stand_in_failed() {
  return failed;
}

hipError_t hipInit(unsigned int) {
  STAND_IN_BEGIN();
  return wanted().init;
}
hipError_t hipDriverGetVersion(int* version) {
  STAND_IN_BEGIN();
  *version = 70012345;
  return hipSuccess;
}
const char* hipGetErrorName(hipError_t error) {
  static thread_local char text[32];
  std::snprintf(text, sizeof text, "STAND_IN_ERROR_%d", error);
  return text;
}
hipError_t hipGetDeviceCount(int* count) {
  STAND_IN_BEGIN();
  *count = static_cast<int>(wanted().targets.size());
  if (wanted().count != 0) return wanted().count;
  return *count == 0 ? hipErrorNoDevice : hipSuccess;
}
hipError_t hipGetDevice(int* device) {
  STAND_IN_BEGIN();
  *device = device_of_thread;
  return hipSuccess;
}
// Giving a thread its device back is no work of the device, and always done.
hipError_t hipSetDevice(int device) {
  const hipError_t answer = begin(__func__);
  if (!is_device(device)) return hipErrorInvalidDevice;
  device_of_thread = device;
  return answer;
}
hipError_t hipDeviceGetName(char* name, int bytes, int device) {
  STAND_IN_BEGIN();
  if (!is_device(device)) return hipErrorInvalidDevice;
  std::snprintf(name, static_cast<size_t>(bytes), "Stand-in %d (no GPU)", device);
  return hipSuccess;
}
hipError_t hipDeviceGetAttribute(int* value, int what, int device) {
  STAND_IN_BEGIN();
  if (!is_device(device)) return hipErrorInvalidDevice;
  switch (what) {
    case hipDeviceAttributeMultiprocessorCount:
      *value = 2;
      return hipSuccess;
    case hipDeviceAttributeMaxSharedMemoryPerBlock:
      *value = 64 << 10;
      return hipSuccess;
    case hipDeviceAttributeWarpSize:
      *value = lanes_of(device);
      return hipSuccess;
    default:
      give_up("attribute %d is not known", what);
  }
}
hipError_t hipDeviceGetUuid(hipUUID* id, int device) {
  STAND_IN_BEGIN();
  std::memcpy(id->bytes, "0123456789abcdef", sizeof id->bytes);
  id->bytes[0] = static_cast<char>('0' + device);
  return hipSuccess;
}
hipError_t hipDeviceGetPCIBusId(char* id, int bytes, int device) {
  STAND_IN_BEGIN();
  std::snprintf(id, static_cast<size_t>(bytes), "FFFF:%02X:00.0", device);
  return hipSuccess;
}
hipError_t hipDeviceTotalMem(size_t* bytes, int) {
  STAND_IN_BEGIN();
  *bytes = wanted().memory_mib << 20;
  return hipSuccess;
}
// As hipDeviceProp_tR0600 has it: 256 bytes of the device's name, and that of the architecture in
// 256 bytes from byte 1160 on.
hipError_t hipGetDevicePropertiesR0600(void* out, int device) {
  STAND_IN_BEGIN();
  if (!is_device(device)) return hipErrorInvalidDevice;
  auto* bytes = static_cast<char*>(out);
  std::memset(bytes, 0, 1472);
  std::snprintf(bytes, 256, "gfx that is no architecture");
  if (wanted().properties == 0)
    std::snprintf(bytes + 1160, 256, "%s", wanted().targets[static_cast<size_t>(device)].c_str());
  return hipSuccess;
}

hipError_t hipMemGetInfo(size_t* free, size_t* total) {
  STAND_IN_BEGIN();
  *total = wanted().memory_mib << 20;
  *free = *total - objects().bytes(current_device());
  return hipSuccess;
}
hipError_t hipMalloc(void** at, size_t bytes) {
  STAND_IN_BEGIN();
  if (bytes == 0) return hipErrorInvalidValue;
  if (bytes > (wanted().memory_mib << 20) - objects().bytes(current_device()) ||
      posix_memalign(at, 256, bytes) != 0)
    return hipErrorOutOfMemory;
  std::memset(*at, 0xcd, bytes);
  objects().add(*at, kind::memory, bytes);
  return hipSuccess;
}
hipError_t hipFree(void* at) {
  const hipError_t answer = begin(__func__);
  jobs().wait_for_all();
  objects().remove(at, kind::memory, __func__);
  std::free(at);
  return answer;
}
hipError_t hipHostMalloc(void** at, size_t bytes, unsigned int) {
  STAND_IN_BEGIN();
  if (wanted().pinned != 0) return wanted().pinned;
  if (posix_memalign(at, 256, bytes) != 0) return hipErrorOutOfMemory;
  std::memset(*at, 0xcd, bytes);
  objects().add(*at, kind::pinned, bytes);
  return hipSuccess;
}
hipError_t hipHostFree(void* at) {
  const hipError_t answer = begin(__func__);
  jobs().wait_for_all();
  objects().remove(at, kind::pinned, __func__);
  std::free(at);
  return answer;
}
hipError_t hipHostGetDevicePointer(void** out, void* at, unsigned int) {
  STAND_IN_BEGIN();
  objects().check(at, kind::pinned, __func__);
  *out = at;
  return hipSuccess;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
