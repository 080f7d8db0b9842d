#pragma once
// The conformance kit's runner, under this folder's names.

#include "host.hpp"
#include "model/runner.hpp"
#include "tiny_model.hpp"

namespace bitnet::parity {

using conformance::call_failed;
using conformance::runner;
using conformance::runner_options;
using conformance::token_in;

// Whether the first device says that pools may be of this type.
inline bool keeps(const bitnet_backend_v0& table, uint32_t dtype) {
  bitnet_device_info info{};
  info.struct_size = sizeof info;
  must([&](bitnet_error* e) { return table.device_info(table.self, 0, &info, e); });
  return (info.kv_dtypes >> dtype & 1) != 0;
}

}  // namespace bitnet::parity
