// A libnvidia-ml.so.1 with one device, which reports everything but ECC errors. With
// BITNET_STAND_IN_INSTANCES=n in the environment it is cut into that many instances.

#include <cstdio>
#include <cstdlib>
#include <cstring>

// NOLINTBEGIN(readability-identifier-naming): names of the library's
extern "C" {

int nvmlInit_v2() {
  return 0;
}
int nvmlShutdown() {
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
  static int the_device;
  *device = &the_device;
  return std::strcmp(address, "ffff:00:00.0") == 0 ? 0 : 6;  // NVML_ERROR_NOT_FOUND
}
int nvmlDeviceGetUtilizationRates(void*, unsigned int* gpu_and_memory) {
  gpu_and_memory[0] = 37;
  gpu_and_memory[1] = 12;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int sensor, unsigned int* celsius) {
  *celsius = 64;
  return sensor == 0 ? 0 : 2;  // NVML_ERROR_INVALID_ARGUMENT
}
int nvmlDeviceGetPowerUsage(void*, unsigned int* milliwatts) {
  *milliwatts = 123456;
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int which, unsigned int* mhz) {
  *mhz = which == 1 ? 1500 : 2600;
  return which == 1 || which == 2 ? 0 : 2;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = 0x1 | 0x20;  // nothing to do, and heat by software
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = 1;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  static int the_device;
  *device = &the_device;
  return index == 0 ? 0 : 2;
}
int nvmlDeviceGetName(void*, char* name, unsigned int bytes) {
  std::snprintf(name, bytes, "Stand-in (no GPU)");
  return 0;
}
int nvmlDeviceGetMigMode(void*, unsigned int* now, unsigned int* later) {
  *now = *later = std::getenv("BITNET_STAND_IN_INSTANCES") ? 1 : 0;
  return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned int* count) {
  *count = 7;
  return 0;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned int index, void** instance) {
  const char* instances = std::getenv("BITNET_STAND_IN_INSTANCES");
  *instance = device;
  return instances && index < std::strtoul(instances, nullptr, 10) ? 0 : 6;
}
int nvmlDeviceGetTotalEccErrors(void*, int, int, unsigned long long*) {
  return 3;  // NVML_ERROR_NOT_SUPPORTED
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
