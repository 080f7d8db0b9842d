#pragma once
// What the tests of the entry, the facts and graph_query share.

#include "harness/plugin.hpp"

namespace bitnet::conformance {

inline uint32_t device_count(const bitnet_backend_v0& t) {
  uint32_t n = 0;
  const outcome o = attempt([&](bitnet_error* e) { return t.device_count(t.self, &n, e); });
  if (o.status != BITNET_OK && o.status != BITNET_UNAVAILABLE) throw call_failed(o);
  return o.status == BITNET_OK ? n : 0;
}

}  // namespace bitnet::conformance
