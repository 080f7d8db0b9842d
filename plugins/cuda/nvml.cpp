#include "nvml.hpp"

#include <dlfcn.h>

#include <algorithm>

namespace bitnet::cuda {
namespace {

// From nvml.h: nvmlReturn_t is 0 for success, and a device handle is a pointer.
using answer = int;
using device_handle = void*;
constexpr int temperature_gpu = 0;             // NVML_TEMPERATURE_GPU
constexpr int clock_sm = 1, clock_memory = 2;  // NVML_CLOCK_*
constexpr int corrected = 0, uncorrected = 1;  // NVML_MEMORY_ERROR_TYPE_*
constexpr int since_driver = 0;                // NVML_VOLATILE_ECC
constexpr unsigned long long reason_idle = 0x1, reason_settings = 0x2;
constexpr unsigned long long reasons_power = 0x4 | 0x80;  // cap, brake
constexpr unsigned long long reasons_heat = 0x20 | 0x40;  // by software, by hardware

}  // namespace

struct nvml::calls {
  answer (*init)() = nullptr;
  answer (*shutdown)() = nullptr;
  answer (*find)(const char*, device_handle*) = nullptr;
  answer (*utilisation)(device_handle, unsigned int*) = nullptr;  // percent: of the GPU, of memory
  answer (*temperature)(device_handle, int, unsigned int*) = nullptr;
  answer (*power)(device_handle, unsigned int*) = nullptr;
  answer (*clock)(device_handle, int, unsigned int*) = nullptr;
  answer (*throttled)(device_handle, unsigned long long*) = nullptr;
  answer (*ecc)(device_handle, int, int, unsigned long long*) = nullptr;
};

namespace {

template <class Function>
void find_call(void* library, Function& to, const char* name) {
  to = reinterpret_cast<Function>(dlsym(library, name));
}

// Calls about GPUs that are divided into instances (MIG mode).
struct instance_calls {
  answer (*count)(unsigned int*) = nullptr;
  answer (*at)(unsigned int, device_handle*) = nullptr;
  answer (*name)(device_handle, char*, unsigned int) = nullptr;
  answer (*mode)(device_handle, unsigned int* now, unsigned int* later) = nullptr;
  answer (*most)(device_handle, unsigned int*) = nullptr;
  answer (*instance)(device_handle, unsigned int, device_handle*) = nullptr;

  bool find(void* library) {
    find_call(library, count, "nvmlDeviceGetCount_v2");
    find_call(library, at, "nvmlDeviceGetHandleByIndex_v2");
    find_call(library, name, "nvmlDeviceGetName");
    find_call(library, mode, "nvmlDeviceGetMigMode");
    find_call(library, most, "nvmlDeviceGetMaxMigDeviceCount");
    find_call(library, instance, "nvmlDeviceGetMigDeviceHandleByIndex");
    return count && at && name && mode && most && instance;
  }
  // Returns "" for a GPU that is not in MIG mode.
  std::string advice_on(unsigned int index) const {
    device_handle device = nullptr;
    unsigned int now = 0, later = 0, places = 0, instances = 0;
    if (at(index, &device) != 0 || mode(device, &now, &later) != 0 || now == 0) return "";
    if (most(device, &places) != 0) return "";
    constexpr unsigned int most_places = 64;  // GPUs so far have at most 7
    for (unsigned int i = 0; i < std::min(places, most_places); ++i) {
      device_handle one = nullptr;
      if (instance(device, i, &one) == 0) ++instances;
    }
    char called[96] = {};  // NVML_DEVICE_NAME_V2_BUFFER_SIZE
    const bool known = name(device, called, sizeof called - 1) == 0 && *called;
    const std::string gpu = std::to_string(index);
    return "GPU " + gpu + (known ? std::string(" (") + called + ")" : "") + " is in MIG mode and " +
           (instances == 0
                ? "has no instance: make one with nvidia-smi mig -i " + gpu +
                      " -cgi PROFILE -C, or end the mode with nvidia-smi -i " + gpu + " -mig 0"
                : "shows none of its " + std::to_string(instances) +
                      " instances: name one of nvidia-smi -L in CUDA_VISIBLE_DEVICES");
  }
};

}  // namespace

std::string advice_on_instances(const char* file) {
  void* opened = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!opened) return "";
  answer (*init)() = nullptr;
  answer (*shutdown)() = nullptr;
  find_call(opened, init, "nvmlInit_v2");
  find_call(opened, shutdown, "nvmlShutdown");
  instance_calls calls;
  if (!init || !shutdown || !calls.find(opened) || init() != 0) return "";
  std::string out;
  unsigned int count = 0;
  constexpr unsigned int most = 64;
  if (calls.count(&count) == 0)
    for (unsigned int i = 0; i < std::min(count, most); ++i) {
      const std::string advice = calls.advice_on(i);
      if (!advice.empty()) out += (out.empty() ? "" : ". ") + advice;
    }
  shutdown();
  return out;
}

std::unique_ptr<nvml> nvml::open(const char* file, const std::string& pci_address) {
  void* opened = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!opened) return nullptr;
  auto found = std::make_unique<calls>();
  const auto find = [&](auto& to, const char* name) { find_call(opened, to, name); };
  find(found->init, "nvmlInit_v2");
  find(found->shutdown, "nvmlShutdown");
  find(found->find, "nvmlDeviceGetHandleByPciBusId_v2");
  find(found->utilisation, "nvmlDeviceGetUtilizationRates");
  find(found->temperature, "nvmlDeviceGetTemperature");
  find(found->power, "nvmlDeviceGetPowerUsage");
  find(found->clock, "nvmlDeviceGetClockInfo");
  find(found->throttled, "nvmlDeviceGetCurrentClocksThrottleReasons");
  find(found->ecc, "nvmlDeviceGetTotalEccErrors");
  if (!found->init || !found->shutdown || !found->find || found->init() != 0) return nullptr;
  // From here on the destructor calls nvmlShutdown.
  std::unique_ptr<nvml> out(new nvml);
  out->calls_ = std::move(found);
  if (out->calls_->find(pci_address.c_str(), &out->device_) != 0) return nullptr;
  return out;
}

nvml::~nvml() {
  if (calls_) calls_->shutdown();
}

void nvml::add(bitnet_device_status& out) const {
  const calls& c = *calls_;
  unsigned int used[2] = {};
  if (c.utilisation && c.utilisation(device_, used) == 0 && used[0] <= 100) {
    out.known |= BITNET_STATUS_UTILISATION;
    out.utilisation_percent = used[0];
  }
  constexpr unsigned int most = 2'000'000;  // of degrees, milliwatts and MHz: what fits as milli-
  unsigned int value = 0;
  if (c.temperature && c.temperature(device_, temperature_gpu, &value) == 0 && value < most) {
    out.known |= BITNET_STATUS_TEMPERATURE;
    out.temperature_millicelsius = static_cast<int32_t>(value * 1000);
  }
  if (c.power && c.power(device_, &value) == 0) {
    out.known |= BITNET_STATUS_POWER;
    out.power_milliwatts = value;
  }
  if (c.clock && c.clock(device_, clock_sm, &value) == 0 && value < most) {
    out.known |= BITNET_STATUS_CLOCK;
    out.clock_khz = value * 1000;
  }
  if (c.clock && c.clock(device_, clock_memory, &value) == 0 && value < most) {
    out.known |= BITNET_STATUS_MEMORY_CLOCK;
    out.memory_clock_khz = value * 1000;
  }
  unsigned long long reasons = 0;
  if (c.throttled && c.throttled(device_, &reasons) == 0) {
    out.known |= BITNET_STATUS_THROTTLED;
    out.throttled = (reasons & reasons_power ? BITNET_THROTTLED_POWER : 0) |
                    (reasons & reasons_heat ? BITNET_THROTTLED_HEAT : 0);
    constexpr unsigned long long none = reason_idle | reason_settings;
    if (reasons & ~(reasons_power | reasons_heat | none)) out.throttled |= BITNET_THROTTLED_OTHER;
  }
  unsigned long long fixed = 0, lasting = 0;
  if (c.ecc && c.ecc(device_, corrected, since_driver, &fixed) == 0 &&
      c.ecc(device_, uncorrected, since_driver, &lasting) == 0) {
    out.known |= BITNET_STATUS_ECC;
    out.ecc_corrected = fixed;
    out.ecc_uncorrected = lasting;
  }
}

}  // namespace bitnet::cuda
