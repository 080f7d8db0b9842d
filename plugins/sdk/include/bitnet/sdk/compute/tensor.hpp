// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Tensors as the core describes them, checked.

#include <cstdint>
#include <string>
#include <vector>

#include "bitnet/abi/tensor.h"
#include "bitnet/sdk/compute/weight.hpp"
#include "bitnet/sdk/formats.hpp"
#include "bitnet/sdk/guard.hpp"
#include "bitnet/sdk/handle.hpp"
#include "bitnet/sdk/received.hpp"

namespace bitnet::sdk {

// Sums of this width fit int32: 127 * k, and 3 * 128 * k if bytes break the format.
inline constexpr int64_t max_ternary_width = int64_t{1} << 22;
inline constexpr int64_t max_extent = int64_t{1} << 31;

// A described tensor and, until it is sealed, its bytes.
struct tensor {
  bitnet_tensor_desc desc{};  // scales and name point to the members below
  std::string name;
  std::vector<float> scales;
  const format* described = nullptr;
  uint64_t row_bytes = 0;
  memory own;
  uint64_t written = 0;

  bool widened() const noexcept { return desc.rank == 1 && desc.format != BITNET_FORMAT_F32; }
};

// Whether a description has its scales; a plan is made before they exist.
enum class scales_are : uint8_t { given, to_come };

// Checks a description; on success `out` knows its format and row size.
inline bitnet_status describe(const bitnet_tensor_desc* given, tensor& out, scales_are scales_now,
                              const reporter& report) {
  bitnet_tensor_desc known{};
  if (bitnet_status s = receive(given, sizeof known, known, "tensor description", report);
      failed(s))
    return s;
  const bitnet_tensor_desc* desc = &known;
  if (desc->reserved_0 != 0)
    return report.fail(BITNET_UNSUPPORTED,
                       "reserved_0 of a tensor description is not 0; update the backend");
  out.name.assign(desc->name.data ? desc->name.data : "", desc->name.data ? desc->name.size : 0);
  const char* name = out.name.c_str();
  out.described = find_format(desc->format);
  if (!out.described)
    return report.fail(BITNET_UNSUPPORTED, "tensor %s: unknown weight format %u", name,
                       desc->format);
  if (desc->rank > 2)
    return report.fail(BITNET_UNSUPPORTED, "tensor %s has rank %u; expected a vector or a matrix",
                       name, desc->rank);
  const int64_t k = desc->ne[0], m = desc->ne[1];
  if (desc->rank < 1 || k < 1 || m < 1 || k > max_extent || m > max_extent || desc->ne[2] != 1 ||
      desc->ne[3] != 1 || (desc->rank == 1 && m != 1))
    return report.fail(BITNET_INVALID_ARGUMENT,
                       "tensor %s: rank %u with shape %lld x %lld is no vector or matrix", name,
                       desc->rank, static_cast<long long>(k), static_cast<long long>(m));
  const bool ternary = desc->format == BITNET_FORMAT_TERNARY2;
  if (ternary && (desc->rank != 2 || k > max_ternary_width))
    return report.fail(BITNET_UNSUPPORTED,
                       "tensor %s: a ternary weight is a matrix of at most %lld columns", name,
                       static_cast<long long>(max_ternary_width));
  out.row_bytes = row_bytes(*out.described, static_cast<uint64_t>(k));
  if (out.row_bytes == 0)
    return report.fail(BITNET_INVALID_ARGUMENT, "tensor %s: %lld columns are not a multiple of %u",
                       name, static_cast<long long>(k), out.described->block);
  unsigned long long needed = 0;
  if (__builtin_mul_overflow(out.row_bytes, static_cast<uint64_t>(m), &needed) ||
      desc->data_bytes != needed)
    return report.fail(BITNET_INVALID_ARGUMENT, "tensor %s: %llu bytes described, %llu needed",
                       name, static_cast<unsigned long long>(desc->data_bytes), needed);
  uint64_t scales = 0;
  if (ternary) {
    const uint64_t group = desc->scale_group;
    if (group != 0 && static_cast<uint64_t>(k) % group != 0)
      return report.fail(BITNET_INVALID_ARGUMENT,
                         "tensor %s: scale groups of %llu do not divide %lld columns", name,
                         static_cast<unsigned long long>(group), static_cast<long long>(k));
    scales = group == 0 ? 1 : static_cast<uint64_t>(m) * (static_cast<uint64_t>(k) / group);
  }
  const bool absent = scales_now == scales_are::given && !desc->scales;
  if (ternary && (desc->n_scales != scales || absent))
    return report.fail(BITNET_INVALID_ARGUMENT, "tensor %s: %llu scales given, %llu needed", name,
                       static_cast<unsigned long long>(absent ? 0 : desc->n_scales),
                       static_cast<unsigned long long>(scales));
  out.desc = *desc;
  return BITNET_OK;
}

// The tensors of several sets, numbered across the sets.
template <class Set>
class weight_list {
 public:
  void add(const Set& set) {
    for (uint64_t i = 0; i < set.size(); ++i) tensors_.push_back(&set.at(i));
  }
  uint64_t size() const noexcept { return tensors_.size(); }
  const auto& at(uint64_t index) const noexcept { return *tensors_[index]; }

 private:
  std::vector<const typename Set::tensor_type*> tensors_;
};

}  // namespace bitnet::sdk
