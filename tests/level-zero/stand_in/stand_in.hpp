#pragma once
// A driver of Level Zero that computes on this processor, for the real loader, to which
// ZE_ENABLE_ALT_DRIVERS
// names its file. It implements the calls that plugins/level-zero makes and is strict about them:
// a handle that is not alive, memory that is not allocated, an event that is signalled twice or
// something left over when its context goes end the process with a sentence. Commands between two
// barriers of a list are run in reverse, since Level Zero promises them no order. Kernels run on
// PoCL, made of the very SPIR-V that a module is given.
//
// BITNET_STAND_IN  key=value[,key=value...]
//   devices 1          how many there are
//   type    1          what they are, ZE_DEVICE_TYPE_*
//   memory  4096       MiB of a device
//   shared  65536      bytes of memory of a work group
//   threads 1024       of a work group, at most
//   spirv   65538      the newest version, 1.2
//   init    0          what zeInit answers
//   compute 1          0: kernels do nothing
//   fail    0          the so many-th call answers
//   with    0          this

#include <level_zero/ze_api.h>

#include <cstdint>

extern "C" {
// For tests in the same process: the so many-th call from now on answers `with`; 0: none.
void bitnet_stand_in_fail(uint64_t nth, uint32_t with);
uint64_t bitnet_stand_in_calls();    // since then
uint64_t bitnet_stand_in_objects();  // that are alive
// The call that was made to fail; "" if none was.
const char* bitnet_stand_in_failed();
}

namespace stand_in {

struct settings {
  uint32_t devices = 1, type = ZE_DEVICE_TYPE_GPU, shared = 65536, threads = 1024, spirv = 65538,
           init = 0, compute = 1, with = 0;
  uint64_t memory = 4096, fail = 0;
};
const settings& wanted();

// At the begin of each call: what it is to answer instead of doing anything.
ze_result_t entered(const char* call);
#define BITNET_STAND_IN_CALL                                                                   \
  if (const ze_result_t injected = stand_in::entered(__func__); injected != ZE_RESULT_SUCCESS) \
  return injected

}  // namespace stand_in
