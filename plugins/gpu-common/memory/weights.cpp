#include "weights.hpp"

#include <algorithm>
#include <cstring>

#include "layout.hpp"

namespace bitnet::gpu {
namespace {

using sdk::failed;

// The format of a tensor on the device: vectors become f32.
uint32_t kept_format(const sdk::tensor& t) noexcept {
  return t.desc.rank == 1 ? uint32_t{BITNET_FORMAT_F32} : t.desc.format;
}
uint64_t kept_words(const sdk::tensor& t) noexcept {
  return row_words(kept_format(t), static_cast<uint64_t>(t.desc.ne[0]));
}

bitnet_status fits(const opened& device, const sdk::tensor& t, const sdk::reporter& report) {
  if (t.desc.scale_group % 4 != 0)
    return report.fail(BITNET_UNSUPPORTED,
                       "tensor %s: scale groups of %llu elements, multiples of 4 are needed; use "
                       "the cpu backend",
                       t.name.c_str(), static_cast<unsigned long long>(t.desc.scale_group));
  const limit most = binding_limit(device.capabilities());
  const uint64_t row = 4 * kept_words(t), scales = 4 * t.desc.n_scales;
  if (device.align(row) > most.bytes || device.align(scales) > most.bytes)
    return report.fail(BITNET_UNSUPPORTED,
                       "tensor %s: a row of %llu bytes or its scales of %llu are more than the %s "
                       "that a kernel sees at once on %s",
                       t.name.c_str(), static_cast<unsigned long long>(row),
                       static_cast<unsigned long long>(scales), most.text().c_str(),
                       device.about().name.c_str());
  return BITNET_OK;
}

}  // namespace

bitnet_status weight_set::plan(const opened& device, const bitnet_tensor_desc* desc,
                               bitnet_weight_plan& out, const sdk::reporter& report) {
  sdk::tensor t;
  if (bitnet_status s = sdk::describe(desc, t, sdk::scales_are::to_come, report); failed(s))
    return s;
  if (bitnet_status s = fits(device, t, report); failed(s)) return s;
  out.accepts_alias = 0;
  out.packed_bytes = 4 * (kept_words(t) * static_cast<uint64_t>(t.desc.ne[1]) + t.desc.n_scales);
  out.alignment_bytes = 1;
  std::snprintf(out.layout_id, sizeof out.layout_id, "gpu/%s-words/1",
                sdk::find_format(kept_format(t))->name);
  return BITNET_OK;
}

bitnet_status weight_set::create(const bitnet_tensor_desc* descs, uint32_t desc_size, uint32_t n,
                                 sdk::scales_are scales_now, const sdk::reporter& report) {
  if (n != 0 && (!descs || desc_size < sizeof(bitnet_tensor_desc)))
    return report.fail(
        BITNET_INVALID_ARGUMENT,
        "expected tensor descriptions of at least %zu bytes; found %u bytes, or NULL",
        sizeof(bitnet_tensor_desc), desc_size);
  tensors_.resize(n);
  const auto* at = reinterpret_cast<const uint8_t*>(descs);
  const bool planned = scales_now == sdk::scales_are::to_come;
  for (device_weight& w : tensors_) {
    const auto* desc = reinterpret_cast<const bitnet_tensor_desc*>(at);
    if (desc->struct_size > desc_size)
      return report.fail(BITNET_INVALID_ARGUMENT,
                         "a tensor description of %u bytes in a list of descriptions of %u",
                         desc->struct_size, desc_size);
    sdk::tensor& t = w.tensor;
    if (bitnet_status s = sdk::describe(desc, t, scales_now, report); failed(s)) return s;
    if (bitnet_status s = fits(device_, t, report); failed(s)) return s;
    if (t.desc.format == BITNET_FORMAT_TERNARY2 && !planned)
      t.scales.assign(t.desc.scales, t.desc.scales + t.desc.n_scales);
    t.desc.scales = nullptr;
    t.desc.name = {};
    w.view.format = kept_format(t);
    w.view.k = static_cast<uint64_t>(t.desc.ne[0]);
    w.view.m = static_cast<uint64_t>(t.desc.ne[1]);
    w.view.scale_group = t.desc.scale_group;
    w.words = kept_words(t);
    w.sealed = planned;
    at += desc_size;
  }
  if (bitnet_status s = place(!planned, report); failed(s)) return s;
  for (device_weight& w : tensors_)
    if (head_copy::fits(device_, w)) w.copy = std::make_unique<head_copy>(device_);
  return BITNET_OK;
}

// Places many tensors in one buffer: drivers allow few allocations and round each of them up.
bitnet_status weight_set::place(bool allocate, const sdk::reporter& report) {
  const capabilities& can = device_.capabilities();
  const uint64_t unit = alignment_of(can);  // to which sizes are rounded up
  const uint64_t most = binding_limit(can).bytes / unit * unit;
  const uint64_t shared = std::min(can.max_allocation_bytes, uint64_t{64} << 20);
  struct slot {
    binding* to;
    uint64_t buffer;
  };
  std::vector<slot> slots;
  std::vector<uint64_t> sizes;
  const auto put = [&](binding& to, uint64_t bytes) {
    const uint64_t aligned = device_.align(bytes);
    if (sizes.empty() || sizes.back() + aligned > shared) sizes.push_back(0);
    to.offset = sizes.back();
    to.bytes = bytes;
    sizes.back() += aligned;
    slots.push_back({&to, sizes.size() - 1});
  };
  for (device_weight& w : tensors_) {
    const auto m = static_cast<uint64_t>(w.tensor.desc.ne[1]);
    const uint64_t row = 4 * w.words;
    const uint64_t rows = std::min(m, std::max<uint64_t>(1, most / row));
    w.parts.resize((m + rows - 1) / rows);
    for (uint64_t p = 0; p < w.parts.size(); ++p) {
      w.parts[p].first_row = p * rows;
      w.parts[p].n_rows = std::min(rows, m - p * rows);
      put(w.parts[p].place, row * w.parts[p].n_rows);
    }
    if (w.tensor.desc.format == BITNET_FORMAT_TERNARY2) put(w.scales, 4 * w.tensor.desc.n_scales);
  }
  for (const uint64_t bytes : sizes) bytes_ += bytes;
  if (!allocate) return BITNET_OK;
  const std::scoped_lock lock(device_.lock);
  buffers_.resize(sizes.size());
  for (uint64_t i = 0; i < sizes.size(); ++i) {
    held_.add(sizes[i]);
    if (bitnet_status s =
            device_.driver->allocate(sizes[i], memory_place::device, buffers_[i], report);
        failed(s))
      return s;
  }
  for (const slot& s : slots) s.to->memory = buffers_[s.buffer].get();
  return BITNET_OK;
}

bitnet_status weight_set::write(uint32_t index, uint64_t offset, const void* data, uint64_t bytes,
                                const sdk::reporter& report) {
  if (bitnet_status s = check_unsealed(index, report); failed(s)) return s;
  sdk::tensor& t = tensors_[index].tensor;
  if (offset != t.written || bytes > t.desc.data_bytes - t.written || (bytes && !data))
    return report.fail(BITNET_INVALID_ARGUMENT,
                       "tensor %s: a write of %llu bytes at %llu; expected data that begins at "
                       "%llu and ends by %llu%s",
                       t.name.c_str(), static_cast<unsigned long long>(bytes),
                       static_cast<unsigned long long>(offset),
                       static_cast<unsigned long long>(t.written),
                       static_cast<unsigned long long>(t.desc.data_bytes),
                       bytes && !data ? ", but data is NULL" : "");
  if (!t.own.data()) t.own = sdk::memory(t.desc.data_bytes);
  if (bytes) std::memcpy(t.own.data() + offset, data, bytes);
  t.written += bytes;
  return BITNET_OK;
}

bitnet_status weight_set::seal(uint32_t index, const sdk::reporter& report) {
  if (bitnet_status s = check_unsealed(index, report); failed(s)) return s;
  if (device_.services.cancelled(cancel_token_))
    return report.fail(BITNET_CANCELLED, "the caller cancelled preparing the weights");
  device_weight& w = tensors_[index];
  sdk::tensor& t = w.tensor;
  if (t.written != t.desc.data_bytes)
    return report.fail(BITNET_INVALID_ARGUMENT, "tensor %s: %llu of %llu bytes were written",
                       t.name.c_str(), static_cast<unsigned long long>(t.written),
                       static_cast<unsigned long long>(t.desc.data_bytes));
  const auto k = static_cast<uint64_t>(t.desc.ne[0]), m = static_cast<uint64_t>(t.desc.ne[1]);
  const range here(device_.watcher, "upload ", t.name, ", ", t.desc.data_bytes, " bytes");
  const uint8_t* rows = t.own.data();
  if (t.desc.rank == 1 || (m == 1 && t.desc.format == BITNET_FORMAT_F32)) {  // a ROPE may read it
    w.host.resize(k);
    sdk::decode(t.desc.format, rows, 0, k, w.host.data());
    rows = reinterpret_cast<const uint8_t*>(w.host.data());
  }
  if (bitnet_status s = upload(w, rows, report); failed(s)) return s;
  t.own = sdk::memory();
  w.sealed = true;
  return BITNET_OK;
}

bitnet_status weight_set::upload(const device_weight& w, const uint8_t* rows,
                                 const sdk::reporter& report) {
  const uint32_t format = w.view.format;
  const uint64_t k = w.view.k, row = 4 * w.words;
  const uint64_t from_row = sdk::row_bytes(*sdk::find_format(format), k);
  const bool as_it_is = is_canonical(format, k);
  const uint64_t together = std::max<uint64_t>(1, (uint64_t{4} << 20) / row);
  std::vector<uint8_t> packed(as_it_is ? 0 : std::min(together, w.view.m) * row);
  const std::scoped_lock lock(device_.lock);
  const auto send = [&](const binding& to, uint64_t offset, const void* data, uint64_t bytes) {
    for (auto& b : buffers_)
      if (b.get() == to.memory)
        return device_.driver->upload(*b, to.offset + offset, data, bytes, report);
    return report.fail(BITNET_INTERNAL, "a weight without memory");
  };
  for (const weight_part& part : w.parts) {
    for (uint64_t r = 0; r < part.n_rows;) {
      const uint64_t n = std::min(together, part.n_rows - r);
      const uint8_t* from = rows + (part.first_row + r) * from_row;
      if (!as_it_is) {
        to_device(format, k, from, n, packed.data());
        from = packed.data();
      }
      if (bitnet_status s = send(part.place, r * row, from, n * row); failed(s)) return s;
      r += n;
    }
  }
  return w.tensor.scales.empty()
             ? BITNET_OK
             : send(w.scales, 0, w.tensor.scales.data(), 4 * w.tensor.scales.size());
}

bitnet_status weight_set::check_unsealed(uint32_t index, const sdk::reporter& report) const {
  if (index >= tensors_.size())
    return report.fail(BITNET_INVALID_ARGUMENT,
                       "tensor %u does not exist; the request described %zu", index,
                       tensors_.size());
  const device_weight& w = tensors_[index];
  if (w.sealed)
    return report.fail(BITNET_INVALID_ARGUMENT, "tensor %s is sealed", w.tensor.name.c_str());
  return BITNET_OK;
}

}  // namespace bitnet::gpu
