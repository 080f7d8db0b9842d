#include "context.hpp"

namespace bitnet::rocm {
namespace {

struct meaning {
  bitnet_status code;
  const char* advice;
};

meaning meaning_of(hipError_t result) noexcept {
  switch (result) {
    case hipErrorOutOfMemory:
      return {BITNET_OUT_OF_DEVICE_MEMORY,
              "use a smaller model, a shorter context or another device"};
    case hipErrorNoBinaryForGpu:
    case hipErrorInvalidDeviceFunction:
    case hipErrorInvalidImage:
    case hipErrorInvalidKernelFile:
    case hipErrorSharedObjectInitFailed:
      return {BITNET_UNAVAILABLE,
              "see whether HSA_OVERRIDE_GFX_VERSION is set, and update ROCm or build for this "
              "device's target"};
    case hipErrorInsufficientDriver:
    case hipErrorNoDevice:
    case hipErrorInvalidDevice:
      return {BITNET_UNAVAILABLE, "see whether rocminfo lists the device"};
    case hipErrorDeinitialized:
    case hipErrorECCNotCorrectable:
    case hipErrorIllegalAddress:
    case hipErrorLaunchTimeOut:
    case hipErrorContextIsDestroyed:
    case hipErrorAssert:
    case hipErrorLaunchFailure:
    case hipErrorUnknown:
    case hipErrorRuntimeOther:
      return {BITNET_DEVICE_LOST, "open the device again, in a new process if that fails"};
    default:
      return {BITNET_INTERNAL, "report it with the version of ROCm"};
  }
}

}  // namespace

context::~context() {
  if (!transfers) return;
  const current mine(*this);
  hip.hipStreamDestroy(transfers);
}

bitnet_status context::check(hipError_t result, const char* call,
                             const sdk::reporter& report) const {
  if (result == hipSuccess) return BITNET_OK;
  const meaning m = meaning_of(result);
  return report.from("hip", result)
      .fail(m.code, "%s: %s failed with %s; %s", facts.common.name.c_str(), call,
            hip.name_of(result).c_str(), m.advice);
}

bitnet_status context::open(const sdk::reporter& report) {
  const current mine(*this);
  if (bitnet_status s = mine.check(report); sdk::failed(s)) return s;
  const hipError_t made = hip.hipStreamCreateWithFlags(&transfers, hipStreamNonBlocking);
  if (made != hipSuccess) transfers = nullptr;
  return check(made, "hipStreamCreateWithFlags", report);
}

bitnet_status context::finish_transfers(const sdk::reporter& report) const {
  return check(hip.hipStreamSynchronize(transfers), "hipStreamSynchronize", report);
}

}  // namespace bitnet::rocm
