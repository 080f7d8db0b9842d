#include "smi.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <type_traits>
#include <utility>

namespace bitnet::rocm {
namespace {

// rocm_smi.h: rsmi_status_t is 0 for success; a device is its number.
using answer = int;
constexpr uint32_t sensor_edge = 0, sensor_junction = 1;  // RSMI_TEMP_TYPE_*
constexpr uint32_t metric_current = 0;                    // RSMI_TEMP_CURRENT
constexpr uint32_t block_memory = 1;                      // RSMI_GPU_BLOCK_UMC
struct error_counts {                                     // rsmi_error_count_t
  uint64_t correctable, uncorrectable;
};

// RSMI's number of a PCI address: domain, bus, device and function. False if the text is none.
bool number_of(const std::string& pci_address, uint64_t& out) {
  unsigned int domain = 0, bus = 0, device = 0, function = 0;
  if (std::sscanf(pci_address.c_str(), "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
    return false;
  out = uint64_t{domain} << 32 | (bus & 0xffu) << 8 | (device & 0x1fu) << 3 | (function & 7u);
  return true;
}

}  // namespace

struct smi::calls {
  answer (*init)(uint64_t) = nullptr;
  answer (*shut_down)() = nullptr;
  answer (*count)(uint32_t*) = nullptr;
  answer (*address)(uint32_t, uint64_t*) = nullptr;
  answer (*busy)(uint32_t, uint32_t*) = nullptr;                            // percent
  answer (*temperature)(uint32_t, uint32_t, uint32_t, int64_t*) = nullptr;  // millidegrees
  answer (*power)(uint32_t, uint32_t, uint64_t*) = nullptr;                 // microwatts
  answer (*power_now)(uint32_t, uint64_t*, int*) = nullptr;                 // since ROCm 6
  answer (*errors)(uint32_t, uint32_t, error_counts*) = nullptr;
};

smi::smi() = default;

std::unique_ptr<smi> smi::open(const std::string& pci_address) {
  for (const char* file : usual_smi)
    if (std::unique_ptr<smi> out = open(file, pci_address)) return out;
  return nullptr;
}

std::unique_ptr<smi> smi::open(const char* file, const std::string& pci_address) {
  uint64_t wanted = 0;
  void* opened = number_of(pci_address, wanted) ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!opened) return nullptr;
  auto found = std::make_unique<calls>();
  const auto find = [opened](auto& to, const char* name) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(opened, name));
  };
  find(found->init, "rsmi_init");
  find(found->shut_down, "rsmi_shut_down");
  find(found->count, "rsmi_num_monitor_devices");
  find(found->address, "rsmi_dev_pci_id_get");
  find(found->busy, "rsmi_dev_busy_percent_get");
  find(found->temperature, "rsmi_dev_temp_metric_get");
  find(found->power, "rsmi_dev_power_ave_get");
  find(found->power_now, "rsmi_dev_power_get");
  find(found->errors, "rsmi_dev_ecc_count_get");
  if (!found->init || !found->shut_down || !found->count || !found->address || found->init(0) != 0)
    return nullptr;
  // From here on its end is this object's.
  std::unique_ptr<smi> out(new smi);
  out->calls_ = std::move(found);
  uint32_t count = 0;
  if (out->calls_->count(&count) != 0) return nullptr;
  constexpr uint32_t most = 1024;
  for (uint32_t i = 0; i < std::min(count, most); ++i) {
    uint64_t address = 0;
    if (out->calls_->address(i, &address) != 0) continue;
    // Newer releases put the number of a partition above the function.
    constexpr uint64_t of_partition = uint64_t{0xf} << 28;
    if ((address & ~of_partition) != wanted) continue;
    out->device_ = i;
    return out;
  }
  return nullptr;
}

smi::~smi() {
  if (calls_) calls_->shut_down();
}

void smi::add(bitnet_device_status& out) const {
  const calls& c = *calls_;
  uint32_t busy = 0;
  if (c.busy && c.busy(device_, &busy) == 0 && busy <= 100) {
    out.known |= BITNET_STATUS_UTILISATION;
    out.utilisation_percent = busy;
  }
  int64_t heat = 0;
  constexpr int64_t coldest = -273'150, hottest = 2'000'000;
  const auto feels = [&](uint32_t sensor) {
    return c.temperature && c.temperature(device_, sensor, metric_current, &heat) == 0 &&
           heat > coldest && heat < hottest;
  };
  if (feels(sensor_edge) || feels(sensor_junction)) {
    out.known |= BITNET_STATUS_TEMPERATURE;
    out.temperature_millicelsius = static_cast<int32_t>(heat);
  }
  uint64_t power = 0;
  int kind = 0;
  constexpr uint64_t most_power = 1'000'000'000'000;
  if (((c.power_now && c.power_now(device_, &power, &kind) == 0) ||
       (c.power && c.power(device_, 0, &power) == 0)) &&
      power < most_power) {
    out.known |= BITNET_STATUS_POWER;
    out.power_milliwatts = static_cast<decltype(out.power_milliwatts)>(power / 1000);
  }
  error_counts errors{};
  if (c.errors && c.errors(device_, block_memory, &errors) == 0) {
    out.known |= BITNET_STATUS_ECC;
    out.ecc_corrected = errors.correctable;
    out.ecc_uncorrected = errors.uncorrectable;
  }
}

}  // namespace bitnet::rocm
