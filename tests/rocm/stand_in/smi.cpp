// A librocm_smi64 with two devices, of which the second is partitioned and has no sensor at its
// edge, as MI200 and newer ones.

#include <cstdint>

// NOLINTBEGIN(readability-identifier-naming): names of the library's
extern "C" {

int rsmi_init(uint64_t) {
  return 0;
}
int rsmi_shut_down() {
  return 0;
}
int rsmi_num_monitor_devices(uint32_t* count) {
  *count = 2;
  return 0;
}
int rsmi_dev_pci_id_get(uint32_t device, uint64_t* address) {
  *address = device == 0 ? 0x0500 : uint64_t{3} << 28 | 0xc100;
  return device < 2 ? 0 : 1;
}
int rsmi_dev_busy_percent_get(uint32_t device, uint32_t* percent) {
  *percent = device == 1 ? 37 : 99;
  return 0;
}
int rsmi_dev_temp_metric_get(uint32_t device, uint32_t sensor, uint32_t metric,
                             int64_t* millidegrees) {
  *millidegrees = 64000;
  return device == 1 && sensor == 1 && metric == 0 ? 0 : 2;  // RSMI_STATUS_NOT_SUPPORTED
}
int rsmi_dev_power_ave_get(uint32_t device, uint32_t sensor, uint64_t* microwatts) {
  *microwatts = 123456789;
  return device == 1 && sensor == 0 ? 0 : 1;
}
struct rsmi_error_count {
  uint64_t correctable, uncorrectable;
};
int rsmi_dev_ecc_count_get(uint32_t device, uint32_t block, rsmi_error_count* counts) {
  *counts = {5, 1};
  return device == 1 && block == 1 ? 0 : 2;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
