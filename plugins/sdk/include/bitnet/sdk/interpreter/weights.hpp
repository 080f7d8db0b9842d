// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Weights in host memory: streamed in, or the caller's own memory used in place.
//
// Rank-2 tensors are kept as they are described, or as a kernel's packing says. Rank-1 tensors
// (norms, rope factors) become f32, so that kernels see one form of them.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bitnet/abi/packed.h"
#include "bitnet/abi/tensor.h"
#include "bitnet/sdk/compute/tensor.hpp"
#include "bitnet/sdk/guard.hpp"
#include "bitnet/sdk/handle.hpp"
#include "bitnet/sdk/host.hpp"
#include "bitnet/sdk/interpreter/kernel.hpp"
#include "bitnet/sdk/received.hpp"

namespace bitnet::sdk {

// A tensor that stays in host memory.
struct host_tensor : tensor {
  const uint8_t* alias = nullptr;
  bool sealed = false;
  weight view{};
  std::unique_ptr<packed_form> packed;
  std::unique_ptr<row_copy> copy;
};

// The view of a tensor for kernels, without its bytes.
inline weight seen_by_kernels(const tensor& t) noexcept {
  weight out{};
  out.k = static_cast<uint64_t>(t.desc.ne[0]);
  out.m = static_cast<uint64_t>(t.desc.ne[1]);
  out.format = t.widened() ? uint32_t{BITNET_FORMAT_F32} : t.desc.format;
  out.row_bytes = t.widened() ? 4 * out.k : t.row_bytes;
  out.scale_group = t.desc.scale_group;
  return out;
}

// The packing that the author's kernels want for a tensor; nullptr: rows.
inline const packing* find_packing(const definition& author, const tensor& t) noexcept {
  if (t.desc.rank != 2) return nullptr;
  const weight w = seen_by_kernels(t);
  const bool ternary = w.format == BITNET_FORMAT_TERNARY2;
  const auto wants = [&](const auto& row) {
    // If the rows are dropped, the product itself needs a kernel for this packing.
    const bool product = is_product(row.op);
    return row.packing.bytes && (product || !row.packing.drops_rows) &&
           (row.format == BITNET_FORMAT_NONE || row.format == w.format) &&
           (!product || ternary == (row.op != BITNET_OP_LINEAR_DENSE)) &&
           (!row.fits || row.fits(w)) && row.packing.bytes(w) != 0;
  };
  for (const primitive& p : author.primitives)
    if (wants(p)) return &p.packing;
  for (const composite& c : author.composites)
    if (wants(c)) return &c.packing;
  return author.packing.bytes && author.packing.bytes(w) != 0 ? &author.packing : nullptr;
}

inline void plan(const definition& author, const tensor& t, bitnet_weight_plan& out) noexcept {
  if (const packing* own = find_packing(author, t); own && own->drops_rows) {
    out.accepts_alias = 0;
    out.packed_bytes = own->bytes(seen_by_kernels(t));
    out.alignment_bytes = 1;
    std::snprintf(out.layout_id, sizeof out.layout_id, "%s", own->layout_id.c_str());
    return;
  }
  out.accepts_alias = t.widened() ? 0 : 1;
  out.packed_bytes = t.widened() ? 4 * static_cast<uint64_t>(t.desc.ne[0]) : t.desc.data_bytes;
  out.alignment_bytes = t.widened() ? 1 : t.described->alignment;
  const char* form = t.widened() ? "f32" : t.described->name;
  std::snprintf(out.layout_id, sizeof out.layout_id, "host/%s-rows/1", form);
}

// Makes the author's form unless it exists.
inline bitnet_status make_packed(const definition& author, const host& services, const weight& w,
                                 const reporter& report) {
  packed_form& form = *w.packed;
  if (form.data.load(std::memory_order_acquire)) return BITNET_OK;
  const std::scoped_lock lock(form.making);
  if (form.data.load(std::memory_order_acquire)) return BITNET_OK;
  memory made(form.bytes, services.lent());
  const packing& how = *form.how;
  const uint64_t grain = std::max<uint64_t>(how.row_grain, 1);
  made.place_rows(w.m, column_grain);
  const auto pack = [&](uint64_t first, uint64_t last) noexcept {
    if (first < last)
      how.pack(w, author.author_data, first * grain, std::min(last * grain, w.m), made.data());
  };
  const bitnet_status s = services.parallel_for((w.m + grain - 1) / grain, pack);
  if (failed(s)) return report.fail(s, "the host could not run the workers that pack a weight");
  form.own = std::move(made);
  form.data.store(form.own.data(), std::memory_order_release);
  return BITNET_OK;
}

// Notes in the view how the tensor will be packed; nothing is packed yet.
inline void promise_packed(const definition& author, host_tensor& t) {
  const packing* how = find_packing(author, t);
  if (!how) return;
  t.packed = std::make_unique<packed_form>();
  t.packed->how = how;
  t.packed->bytes = how->bytes(t.view);
  t.view.packed = t.packed.get();
}

class weight_set {
 public:
  using tensor_type = host_tensor;
  weight_set(const definition& author, const host& services, uint64_t cancel_token = 0)
      : author_(author),
        services_(services),
        cancel_token_(cancel_token),
        copies_(services.lent(), author.copies_rows) {}

  // scales_are::to_come: graphs can be checked at once.
  bitnet_status create(const bitnet_tensor_desc* descs, uint32_t desc_size, uint32_t n,
                       scales_are scales_now, const reporter& report) {
    if (n != 0 && (!descs || desc_size < sizeof(bitnet_tensor_desc)))
      return report.fail(
          BITNET_INVALID_ARGUMENT,
          "expected tensor descriptions of at least %zu bytes; found %u bytes, or NULL",
          sizeof(bitnet_tensor_desc), desc_size);
    tensors_.resize(n);
    const auto* at = reinterpret_cast<const uint8_t*>(descs);
    for (host_tensor& t : tensors_) {
      const auto* desc = reinterpret_cast<const bitnet_tensor_desc*>(at);
      if (desc->struct_size > desc_size)
        return report.fail(BITNET_INVALID_ARGUMENT,
                           "a tensor description of %u bytes in a list of descriptions of %u",
                           desc->struct_size, desc_size);
      if (bitnet_status s = describe(desc, t, scales_now, report); failed(s)) return s;
      if (scales_now == scales_are::to_come) {
        t.view = seen_by_kernels(t);
        promise_packed(author_, t);
        t.sealed = true;
      } else if (t.desc.format == BITNET_FORMAT_TERNARY2) {
        t.scales.assign(t.desc.scales, t.desc.scales + t.desc.n_scales);
      }
      t.desc.scales = nullptr;
      t.desc.name = {};
      at += desc_size;
    }
    return BITNET_OK;
  }

  // Bytes in the device's own layout, without those that can stay in the caller's memory.
  uint64_t planned_bytes() const {
    uint64_t sum = 0;
    for (const host_tensor& t : tensors_) {
      bitnet_weight_plan planned{};
      plan(author_, t, planned);
      if (!planned.accepts_alias) sum += planned.packed_bytes;
      if (t.packed && !t.view.rows_dropped()) sum += t.packed->bytes;
    }
    return sum;
  }

  bitnet_status write(uint32_t index, uint64_t offset, const void* data, uint64_t bytes,
                      const reporter& report) {
    host_tensor* t = nullptr;
    if (bitnet_status s = unsealed(index, t, report); failed(s)) return s;
    if (t->alias)
      return report.fail(BITNET_INVALID_ARGUMENT, "tensor %s is aliased, so it cannot be written",
                         t->name.c_str());
    if (offset != t->written || bytes > t->desc.data_bytes - t->written || (bytes && !data))
      return report.fail(BITNET_INVALID_ARGUMENT,
                         "tensor %s: a write of %llu bytes at %llu; expected data that begins at "
                         "%llu and ends by %llu%s",
                         t->name.c_str(), static_cast<unsigned long long>(bytes),
                         static_cast<unsigned long long>(offset),
                         static_cast<unsigned long long>(t->written),
                         static_cast<unsigned long long>(t->desc.data_bytes),
                         bytes && !data ? ", but data is NULL" : "");
    if (!t->own.data()) {
      t->own = memory(t->desc.data_bytes, services_.lent());
      if (t->desc.rank == 2) t->own.place_rows(static_cast<uint64_t>(t->desc.ne[1]), column_grain);
    }
    if (bytes) std::memcpy(t->own.data() + offset, data, bytes);
    t->written += bytes;
    return BITNET_OK;
  }

  bitnet_status alias(uint32_t index, const void* data, uint64_t bytes, const reporter& report) {
    host_tensor* t = nullptr;
    if (bitnet_status s = unsealed(index, t, report); failed(s)) return s;
    bitnet_weight_plan planned{};
    plan(author_, *t, planned);
    if (!planned.accepts_alias || t->written != 0 || t->alias)
      return report.fail(BITNET_INVALID_ARGUMENT,
                         "tensor %s cannot be aliased: its plan rejects aliases, or it has data",
                         t->name.c_str());
    if (!data || bytes != t->desc.data_bytes ||
        reinterpret_cast<uintptr_t>(data) % planned.alignment_bytes != 0)
      return report.fail(BITNET_INVALID_ARGUMENT,
                         "tensor %s: aliased memory must be %llu bytes, aligned to %llu",
                         t->name.c_str(), static_cast<unsigned long long>(t->desc.data_bytes),
                         static_cast<unsigned long long>(planned.alignment_bytes));
    t->alias = static_cast<const uint8_t*>(data);
    return BITNET_OK;
  }

  bitnet_status seal(uint32_t index, const reporter& report) {
    host_tensor* t = nullptr;
    if (bitnet_status s = unsealed(index, t, report); failed(s)) return s;
    if (services_.cancelled(cancel_token_))
      return report.fail(BITNET_CANCELLED, "the caller cancelled preparing the weights");
    if (!t->alias && t->written != t->desc.data_bytes)
      return report.fail(BITNET_INVALID_ARGUMENT, "tensor %s: %llu of %llu bytes were written",
                         t->name.c_str(), static_cast<unsigned long long>(t->written),
                         static_cast<unsigned long long>(t->desc.data_bytes));
    if (t->widened()) {
      const auto k = static_cast<uint64_t>(t->desc.ne[0]);
      memory wide(4 * k, services_.lent());
      decode(t->desc.format, t->own.data(), 0, k, reinterpret_cast<float*>(wide.data()));
      t->own = std::move(wide);
    }
    t->view = seen_by_kernels(*t);
    t->view.data = t->alias ? t->alias : t->own.data();
    t->view.scales = t->scales.data();
    promise_packed(author_, *t);
    if (copies_.wanted() && t->desc.rank == 2 && t->view.format == BITNET_FORMAT_TERNARY2)
      promise_copy(*t);
    if (t->view.rows_dropped()) {
      if (bitnet_status s = make_packed(author_, services_, t->view, report); failed(s)) return s;
      t->own = memory();
      t->view.data = nullptr;
      if (t->packed->how->holds_scales) {
        std::vector<float>().swap(t->scales);  // assigning {} would keep the capacity
        t->view.scales = nullptr;
      }
    }
    t->sealed = true;
    return BITNET_OK;
  }

  // bitnet/abi/packed.h
  bitnet_status describe_packed(uint32_t index, bitnet_packed_info& out,
                                const reporter& report) const {
    if (bitnet_status s = check_sealed(index, report); failed(s)) return s;
    const packed_form* form = tensors_[index].packed.get();
    if (!form || form->how->drops_rows) return BITNET_OK;  // no second form
    out.bytes = form->bytes;
    out.alignment_bytes = memory::alignment;
    std::snprintf(out.layout_id, sizeof out.layout_id, "%s", form->how->layout_id.c_str());
    return BITNET_OK;
  }
  bitnet_status pack(uint32_t index, const void** out, const reporter& report) const {
    if (bitnet_status s = check_packed(index, report); failed(s)) return s;
    if (services_.cancelled(cancel_token_))
      return report.fail(BITNET_CANCELLED, "the caller cancelled packing the weights");
    const host_tensor& t = tensors_[index];
    if (bitnet_status s = make_packed(author_, services_, t.view, report); failed(s)) return s;
    *out = t.packed->data.load(std::memory_order_acquire);
    return BITNET_OK;
  }
  bitnet_status adopt_packed(uint32_t index, const void* data, uint64_t bytes,
                             const reporter& report) {
    if (bitnet_status s = check_packed(index, report); failed(s)) return s;
    packed_form& form = *tensors_[index].packed;
    if (!data || bytes != form.bytes || reinterpret_cast<uintptr_t>(data) % memory::alignment != 0)
      return report.fail(BITNET_INVALID_ARGUMENT,
                         "tensor %u: a packed form must be %llu bytes, aligned to %llu", index,
                         static_cast<unsigned long long>(form.bytes),
                         static_cast<unsigned long long>(memory::alignment));
    const std::scoped_lock lock(form.making);
    if (form.data.load(std::memory_order_acquire))
      return report.fail(BITNET_INVALID_ARGUMENT, "tensor %u has its packed form already", index);
    const weight& w = tensors_[index].view;
    if (copies_.wanted() && form.how->row_bytes)
      form.copy = std::make_unique<row_copy>(copies_, w.m, form.how->row_bytes(w));
    form.data.store(static_cast<const uint8_t*>(data), std::memory_order_release);
    return BITNET_OK;
  }

  uint64_t size() const noexcept { return tensors_.size(); }
  const host_tensor& at(uint64_t index) const noexcept { return tensors_[index]; }

 private:
  bitnet_status unsealed(uint32_t index, host_tensor*& out, const reporter& report) {
    if (index >= tensors_.size())
      return report.fail(BITNET_INVALID_ARGUMENT,
                         "tensor %u does not exist; the request described %zu", index,
                         tensors_.size());
    out = &tensors_[index];
    if (out->sealed)
      return report.fail(BITNET_INVALID_ARGUMENT, "tensor %s is sealed", out->name.c_str());
    return BITNET_OK;
  }

  // Makes a copy of rows in their own code only for rows of the host (`alias`): rows that the SDK
  // allocated already lie in large pages, so for them only a copy in another code is faster.
  void promise_copy(host_tensor& t) {
    const copy_code& code = author_.copies_code;
    if (!t.view.rows_dropped() && code.row_bytes && code.row_bytes(t.view) != 0)
      t.copy = std::make_unique<row_copy>(copies_, t.view, code, author_.author_data);
    else if (t.alias)
      t.copy = std::make_unique<row_copy>(copies_, t.view.m, t.view.row_bytes);
    t.view.copy = t.copy.get();
  }

  bitnet_status check_sealed(uint32_t index, const reporter& report) const {
    if (index >= tensors_.size())
      return report.fail(BITNET_INVALID_ARGUMENT,
                         "tensor %u does not exist; the request described %zu", index,
                         tensors_.size());
    if (!tensors_[index].sealed)
      return report.fail(BITNET_INVALID_ARGUMENT, "tensor %s is not sealed",
                         tensors_[index].name.c_str());
    return BITNET_OK;
  }
  bitnet_status check_packed(uint32_t index, const reporter& report) const {
    if (bitnet_status s = check_sealed(index, report); failed(s)) return s;
    if (!tensors_[index].packed || tensors_[index].view.rows_dropped())
      return report.fail(BITNET_UNSUPPORTED, "tensor %s has no second form",
                         tensors_[index].name.c_str());
    return BITNET_OK;
  }

  const definition& author_;
  const host& services_;
  const uint64_t cancel_token_;
  copy_room copies_;
  std::vector<host_tensor> tensors_;
};

}  // namespace bitnet::sdk
