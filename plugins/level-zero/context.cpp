#include "context.hpp"

namespace bitnet::level_zero {

context::~context() {
  if (handle) calls.zeContextDestroy(handle);
}

bitnet_status context::open(const sdk::reporter& report) {
  ze_context_desc_t wanted{};
  wanted.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC;
  const ze_result_t made = calls.zeContextCreate(facts.driver, &wanted, &handle);
  if (made == ZE_RESULT_SUCCESS) return BITNET_OK;
  handle = nullptr;
  return fail("zeContextCreate", made, report);
}

bitnet_status context::make_list(bool synchronous, ze_command_list_handle_t& out,
                                 const sdk::reporter& report) const {
  ze_command_queue_desc_t wanted{};
  wanted.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
  wanted.ordinal = facts.compute_ordinal;
  wanted.mode =
      synchronous ? ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS : ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS;
  const ze_result_t made = calls.zeCommandListCreateImmediate(handle, facts.handle, &wanted, &out);
  if (made == ZE_RESULT_SUCCESS) return BITNET_OK;
  out = nullptr;
  return fail("zeCommandListCreateImmediate", made, report);
}

bitnet_status context::fail(const char* call, ze_result_t result,
                            const sdk::reporter& report) const {
  bitnet_status code = BITNET_INTERNAL;
  const char* advice = "report it with the driver's version";
  switch (result) {
    case ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY:
    case ZE_RESULT_ERROR_UNSUPPORTED_SIZE:
      code = BITNET_OUT_OF_DEVICE_MEMORY;
      advice = "use a smaller model, a shorter context or another device";
      break;
    case ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY:
      code = BITNET_OUT_OF_MEMORY;
      advice = "use a smaller model or a shorter context";
      break;
    case ZE_RESULT_ERROR_DEVICE_LOST:
    case ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET:
    case ZE_RESULT_ERROR_DEVICE_IN_LOW_POWER_STATE:
      code = BITNET_DEVICE_LOST;
      advice = "open the device again";
      break;
    case ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS:
    case ZE_RESULT_ERROR_NOT_AVAILABLE:
      code = BITNET_UNAVAILABLE;
      advice = "end what else uses the device, and join the group of /dev/dri/renderD*";
      break;
    default:
      break;
  }
  return report.from("level-zero", result)
      .fail(code, "%s: %s answers %s; %s", facts.about.name.c_str(), call,
            result_name(result).c_str(), advice);
}

}  // namespace bitnet::level_zero
