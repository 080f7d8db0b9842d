#pragma once
// Static probes of the library (USDT, provider "bitnet"), for gdb, bpftrace, perf and SystemTap.
// docs/reference/trace.md#static-probes lists them with their arguments.
//
// Cost  a nop if nothing is attached. Arguments are values at hand, no calls.
// Built  if sys/sdt.h was found (core/CMakeLists.txt); otherwise the macros are empty.

#ifdef BITNET_STATIC_PROBES
#include <sys/sdt.h>
#define BITNET_PROBE_3(name, a, b, c) STAP_PROBE3(bitnet, name, a, b, c)
#else
#define BITNET_PROBE_3(name, a, b, c) \
  (static_cast<void>(a), static_cast<void>(b), static_cast<void>(c))
#endif
