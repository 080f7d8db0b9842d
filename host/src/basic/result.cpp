#include "basic/result.hpp"

namespace bitnet::host {

int exit_code_of(bitnet_status status, stage doing) {
  switch (status) {
    case BITNET_OK:
      return exit_code::ok;
    case BITNET_INVALID_ARGUMENT:
      return exit_code::usage;
    case BITNET_UNAVAILABLE:
      return exit_code::unavailable;
    case BITNET_OUT_OF_MEMORY:
    case BITNET_OUT_OF_DEVICE_MEMORY:
      return exit_code::out_of_memory;
    case BITNET_REJECTED:
      return exit_code::rejected;
    case BITNET_FORBIDDEN:
      return exit_code::fake;
    case BITNET_CANCELLED:
      return exit_code::interrupted;
    case BITNET_BAD_DATA:
    case BITNET_UNSUPPORTED:
    case BITNET_NOT_FOUND:
    case BITNET_INCOMPATIBLE:
      if (doing == stage::model) return exit_code::model;
      return doing == stage::text ? exit_code::usage : exit_code::failure;
    default:
      return exit_code::failure;
  }
}

}  // namespace bitnet::host
