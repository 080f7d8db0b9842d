// Devices, contexts and memory.

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "calls.hpp"
#include "stand_ins/settings_text.hpp"

namespace stand_in {
namespace {

settings read_settings() {
  settings out;
  const std::string text = settings_text(reinterpret_cast<const void*>(wanted), "libcuda.settings");
  std::string_view left = text;
  while (!left.empty()) {
    const std::string_view item = left.substr(0, left.find(','));
    left.remove_prefix(std::min(left.size(), item.size() + 1));
    const std::string_view key = item.substr(0, item.find('='));
    const std::string_view value = item.substr(std::min(item.size(), key.size() + 1));
    if (key == "wrong" || key == "hangs" || key == "loses") {
      (key == "wrong" ? out.wrong : key == "hangs" ? out.hangs : out.loses) = value;
      continue;
    }
    uint64_t number = 0;
    if (std::from_chars(value.data(), value.data() + value.size(), number).ec != std::errc())
      give_up("BITNET_STAND_IN has '%s'", std::string(item).c_str());
    const struct {
      const char* name;
      int* to;
    } names[] = {{"version", &out.version},
                 {"devices", &out.devices},
                 {"arch", &out.arch},
                 {"code", &out.code},
                 {"mode", &out.mode},
                 {"init", &out.init},
                 {"retain", &out.retain},
                 {"with", &out.with},
                 {"beside", &out.beside},
                 {"ready", &out.ready},
                 {"at_once", &out.at_once},
                 {"backwards", &out.backwards},
                 {"processors", &out.processors},
                 {"wrong_groups", &out.wrong_groups},
                 {"wrong_from", &out.wrong_from},
                 {"lost_boxes", &out.lost_boxes},
                 {"launch", &out.launch},
                 {"integrated", &out.integrated},
                 {"cached", &out.cached_mib},
                 {"pinned", &out.pinned}};
    bool known = key == "memory" || key == "fail";
    if (known) (key == "memory" ? out.memory_mib : out.fail) = number;
    for (const auto& n : names)
      if (key == n.name) {
        *n.to = static_cast<int>(number);
        known = true;
      }
    if (!known) give_up("BITNET_STAND_IN has '%s'", std::string(item).c_str());
  }
  return out;
}

std::atomic<uint64_t> calls{0}, failing{wanted().fail};
std::atomic<int> fails_with{wanted().with}, lost{0};
std::atomic<int> retained{0};
std::atomic<const char*> failed{""};
thread_local int entered = 0;  // contexts pushed
int the_context;               // its address is the handle

bool is_for_ever(int result) {
  return result >= CUDA_ERROR_ILLEGAL_ADDRESS && result <= CUDA_ERROR_LAUNCH_FAILED &&
         result != CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

// Contexts are the process's: one that is left means a device that was not closed.
struct at_exit {
  ~at_exit() {
    if (retained != 0) give_up("the process ends and a context is retained");
  }
} const end;

}  // namespace

const settings& wanted() {
  static const settings read = read_settings();
  return read;
}

CUresult begin(const char* call) {
  if (++calls == failing) {
    const int with = fails_with;
    if (is_for_ever(with)) lost = with;
    failed = call;
    return static_cast<CUresult>(with);
  }
  return static_cast<CUresult>(lost.load());
}

void lose(CUresult with) {
  lost = with;
}

CUresult begin_in_context(const char* call) {
  if (entered == 0) give_up("%s: no context is current on this thread", call);
  return begin(call);
}

}  // namespace stand_in

using namespace stand_in;

extern "C" {

void bitnet_stand_in_fail(uint64_t nth, int with) {
  calls = 0;
  lost = 0;
  fails_with = with;
  failing = nth;
  failed = "";
}
const char* bitnet_stand_in_failed() {
  return failed;
}
uint64_t bitnet_stand_in_calls() {
  return calls;
}
uint64_t bitnet_stand_in_objects() {
  return objects().count();
}

CUresult cuInit(unsigned int) {
  STAND_IN_BEGIN();
  return static_cast<CUresult>(wanted().init);
}
CUresult cuDriverGetVersion(int* version) {
  STAND_IN_BEGIN();
  *version = wanted().version;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** name) {
  static thread_local char text[32];
  std::snprintf(text, sizeof text, "STAND_IN_ERROR_%d", static_cast<int>(error));
  *name = text;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  STAND_IN_BEGIN();
  *count = wanted().devices;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  STAND_IN_BEGIN();
  if (ordinal < 0 || ordinal >= wanted().devices) return CUDA_ERROR_INVALID_DEVICE;
  *device = device_handle + ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int bytes, CUdevice) {
  STAND_IN_BEGIN();
  std::snprintf(name, static_cast<size_t>(bytes), "Stand-in (no GPU)");
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute what, CUdevice) {
  STAND_IN_BEGIN();
  switch (what) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = wanted().arch / 10;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = wanted().arch % 10;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
      *value = wanted().mode;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      *value = 48 << 10;
      break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      *value = 1000;  // kHz
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = wanted().processors;
      break;
    case CU_DEVICE_ATTRIBUTE_INTEGRATED:
      *value = wanted().integrated;
      break;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
      *value = 1;
      break;
    default:
      give_up("attribute %d is not known", static_cast<int>(what));
  }
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid* id, CUdevice device) {
  STAND_IN_BEGIN();
  std::memset(id->bytes, 0x5a, sizeof id->bytes);
  id->bytes[15] = static_cast<char>(device - device_handle);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetPCIBusId(char* id, int bytes, CUdevice device) {
  STAND_IN_BEGIN();
  std::snprintf(id, static_cast<size_t>(bytes), "FFFF:%02X:00.0", device - device_handle);
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  STAND_IN_BEGIN();
  *bytes = wanted().memory_mib << 20;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  STAND_IN_BEGIN();
  if (wanted().retain != 0) return static_cast<CUresult>(wanted().retain);
  if (retained++ == 0) objects().add(&the_context, kind::context);
  *context = reinterpret_cast<CUcontext>(&the_context);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  const CUresult answer = begin(__func__);
  if (retained == 0) give_up("%s: it is not retained", __func__);
  if (--retained != 0) return answer;
  jobs().wait_for_all();
  objects().check_empty(__func__);
  objects().remove(&the_context, kind::context, __func__);
  return answer;
}
CUresult cuCtxPushCurrent(CUcontext context) {
  STAND_IN_BEGIN();
  objects().check(context, kind::context, __func__);
  ++entered;
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* context) {
  const CUresult answer = begin(__func__);
  if (entered == 0) give_up("%s: nothing was pushed", __func__);
  --entered;
  *context = reinterpret_cast<CUcontext>(&the_context);
  return answer;
}

CUresult cuMemGetInfo(size_t* free, size_t* total) {
  STAND_IN_BEGIN_IN_CONTEXT();
  *total = wanted().memory_mib << 20;
  *free = *total - objects().bytes();
  *free -= std::min(*free, static_cast<size_t>(wanted().cached_mib) << 20);
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr* at, size_t bytes) {
  STAND_IN_BEGIN_IN_CONTEXT();
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > (wanted().memory_mib << 20) - objects().bytes()) return CUDA_ERROR_OUT_OF_MEMORY;
  void* made = nullptr;
  if (posix_memalign(&made, 256, bytes) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(made, 0xcd, bytes);
  objects().add(made, kind::memory, bytes);
  *at = reinterpret_cast<CUdeviceptr>(made);
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr at) {
  const CUresult answer = begin(__func__);
  jobs().wait_for_all();
  objects().remove(reinterpret_cast<const void*>(at), kind::memory, __func__);
  std::free(reinterpret_cast<void*>(at));
  return answer;
}
CUresult cuMemHostAlloc(void** at, size_t bytes, unsigned int) {
  STAND_IN_BEGIN_IN_CONTEXT();
  if (wanted().pinned != 0) return static_cast<CUresult>(wanted().pinned);
  if (posix_memalign(at, 256, bytes) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(*at, 0xcd, bytes);
  objects().add(*at, kind::pinned, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void* at) {
  const CUresult answer = begin(__func__);
  jobs().wait_for_all();
  objects().remove(at, kind::pinned, __func__);
  std::free(at);
  return answer;
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr* out, void* at, unsigned int) {
  STAND_IN_BEGIN_IN_CONTEXT();
  objects().check(at, kind::pinned, __func__);
  *out = reinterpret_cast<CUdeviceptr>(at);
  return CUDA_SUCCESS;
}

}  // extern "C"
