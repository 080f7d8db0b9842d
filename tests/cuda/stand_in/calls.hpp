#pragma once
// How a call begins: counted, and made to fail if it is its turn.

#include "objects.hpp"
#include "stand_in.hpp"

namespace stand_in {

// CUDA_SUCCESS, or what the call has to answer. A device that is lost answers so ever after.
CUresult begin(const char* call);

// From now on the device is lost: every call that begins answers `with`.
void lose(CUresult with);

// A call that needs a current context of this thread.
CUresult begin_in_context(const char* call);

// Calls that give back or wait do not begin so: they do it even when they fail, as a lost device
// does with its context.
#define STAND_IN_BEGIN() \
  if (const CUresult answer = stand_in::begin(__func__); answer != CUDA_SUCCESS) return answer
#define STAND_IN_BEGIN_IN_CONTEXT()                                                         \
  if (const CUresult answer = stand_in::begin_in_context(__func__); answer != CUDA_SUCCESS) \
  return answer

inline constexpr int device_handle = 1000;  // of the first

}  // namespace stand_in
