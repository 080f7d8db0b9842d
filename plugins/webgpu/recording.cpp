#include "recording.hpp"

#include <algorithm>
#include <cstring>

namespace bitnet::webgpu {
namespace {

using sdk::failed;

// The parameters of a command, and the zero after them.
constexpr uint64_t parameter_bytes = 4 * (uint64_t{gpu::max_params} + 4);
// The most timestamps that WebGPU allows in one set.
constexpr uint32_t most_queries = 4096;

extent extent_of(const gpu::binding& b) noexcept {
  return {b.offset, (b.bytes + 3) / 4 * 4};
}

bool overlap(const gpu::binding& a, const gpu::binding& b) noexcept {
  return a.memory == b.memory && a.offset < extent_of(b).end() && b.offset < extent_of(a).end();
}

// Finds bindings with the same memory. False if two bindings overlap without being equal.
bool find_shared(const gpu::command& one, shared_bindings& same) {
  same = none_shared;
  for (size_t i = 1; i < one.bindings.size(); ++i) {
    for (size_t j = 1; j < i; ++j) {
      const gpu::binding& a = one.bindings[j];
      const gpu::binding& b = one.bindings[i];
      if (!overlap(a, b)) continue;
      if (a.offset != b.offset || extent_of(a).bytes != extent_of(b).bytes) return false;
      same[i] = same[j];
      break;
    }
  }
  return true;
}

void take_done(uint32_t status, string_view message, void* userdata, void*) {
  const std::shared_ptr<answer> to = answer::take(userdata);
  to->status = status;
  to->message = line_of(message);
  to->given = true;
}

}  // namespace

recording::~recording() {
  const library& wgpu = device_.wgpu();
  const std::scoped_lock held(device_.on.lock);
  for (const step& s : steps_)
    if (s.bindings) wgpu.BindGroupRelease(s.bindings);
  if (queries_) wgpu.QuerySetRelease(queries_);
}

void recording::note(const gpu::binding& b, bool written) {
  memory& of = memory_of(*b.memory);
  if (!of.mapped()) return;
  sent_.push_back({&of, extent_of(b), 0});
  if (written) returned_.push_back({&of, extent_of(b), 0});
}

void recording::add_copies(const gpu::command& one) {
  step s;
  memory &from = memory_of(*one.bindings[0].memory), &to = memory_of(*one.bindings[1].memory);
  s.from = from.handle();
  s.to = to.handle();
  s.copies = one.copies;
  for (const gpu::copy_range& r : one.copies) {
    note({&from, r.from, r.bytes}, false);
    note({&to, r.to, r.bytes}, true);
  }
  if (!s.copies.empty()) steps_.push_back(std::move(s));
}

bitnet_status recording::add(const gpu::command& one, uint64_t params_at,
                             const sdk::reporter& report) {
  const auto& wanted = static_cast<const kernel&>(*one.run);
  shared_bindings same;
  if (!find_shared(one, same))
    return report.fail(BITNET_INTERNAL, "%s: two of its bindings share a part of their memory",
                       name_of(wanted.spec.id));
  step s;
  if (bitnet_status made = wanted.form(same, s.run, report); failed(made)) return made;
  bind_group_entry entries[gpu::max_kernel_bindings + 1];
  size_t n = 0;
  for (size_t i = 0; i < one.bindings.size(); ++i) {
    const gpu::binding& b = one.bindings[i];
    note(b, b.written);
    if (same[i] != i) continue;
    bind_group_entry& e = entries[n++];
    e.binding = static_cast<uint32_t>(i);
    e.buffer = memory_of(*b.memory).handle();
    e.offset = b.offset;
    e.size = extent_of(b).bytes;
  }
  bind_group_entry& params = entries[n++];
  params.binding = parameter_binding;
  params.buffer = params_->handle();
  params.offset = params_at;
  params.size = parameter_bytes;
  bind_group_descriptor set;
  set.layout = s.run->layout();
  set.entryCount = n;
  set.entries = entries;
  s.groups_x = one.groups_x;
  s.groups_y = one.groups_y;
  s.bindings = device_.wgpu().DeviceCreateBindGroup(device_.device, &set);
  steps_.push_back(std::move(s));
  if (steps_.back().bindings) return BITNET_OK;
  return report.fail(BITNET_INTERNAL, "%s: no bindings", name_of(wanted.spec.id));
}

// Merges extents, so that each byte is sent once even if several commands use it.
void recording::settle_extents() {
  const auto settle = [](std::vector<carried>& all) {
    std::vector<carried> out;
    std::sort(all.begin(), all.end(), [](const carried& a, const carried& b) {
      return std::less<const memory*>()(a.of, b.of);
    });
    for (size_t first = 0, end = 0; first < all.size(); first = end) {
      std::vector<extent> parts;
      for (end = first; end < all.size() && all[end].of == all[first].of; ++end)
        parts.push_back(all[end].what);
      for (const extent& e : united(std::move(parts))) out.push_back({all[first].of, e, 0});
    }
    all = std::move(out);
  };
  settle(sent_);
  settle(returned_);
  for (carried& c : returned_) {
    c.staged = returned_bytes_;
    returned_bytes_ += (c.what.bytes + 7) / 8 * 8;  // the alignment of mapped offsets
  }
}

bitnet_status recording::make_buffers(uint32_t commands, uint32_t slot, bool timed,
                                      uint64_t bounced, const sdk::reporter& report) {
  const auto make = [&](std::unique_ptr<memory>& out, uint64_t bytes, flags usage) {
    if (bytes == 0) return BITNET_OK;
    out = std::make_unique<memory>(device_);
    return out->allocate(bytes, gpu::memory_place::device, usage, report);
  };
  if (bitnet_status s = make(params_, uint64_t{slot} * commands, usage_uniform | usage_copy_dst);
      failed(s))
    return s;
  if (bitnet_status s = make(bounce_, bounced, usage_copy_src | usage_copy_dst); failed(s))
    return s;
  if (!timed || tick_ns_ == 0 || commands == 0 || 2 * commands > most_queries) return BITNET_OK;
  query_set_descriptor wanted;
  wanted.count = 2 * commands;
  if (bitnet_status s = device_.checked(
          "wgpuDeviceCreateQuerySet",
          [&] { queries_ = device_.wgpu().DeviceCreateQuerySet(device_.device, &wanted); }, report);
      failed(s))
    return s;
  return make(ticks_, uint64_t{16} * commands, usage_query_resolve | usage_copy_src);
}

bitnet_status recording::make(std::span<const gpu::command> commands, bool timed,
                              uint32_t alignment, const sdk::reporter& report) {
  const uint32_t slot =
      static_cast<uint32_t>((parameter_bytes + alignment - 1) / alignment) * alignment;
  uint32_t kernels = 0;
  uint64_t bounced = 0;  // bytes of copies within one buffer, which WebGPU does not support
  for (const gpu::command& c : commands) {
    if (c.run) {
      ++kernels;
      continue;
    }
    if (c.bindings[0].memory != c.bindings[1].memory) continue;
    uint64_t bytes = 0;
    for (const gpu::copy_range& r : c.copies) bytes += r.bytes;
    bounced = std::max(bounced, bytes);
  }
  const std::scoped_lock held(device_.on.lock);
  if (bitnet_status s =
          make_buffers(kernels, slot, timed && kernels == commands.size(), bounced, report);
      failed(s))
    return s;
  bitnet_status added = BITNET_OK;
  std::vector<uint8_t> words(uint64_t{slot} * kernels);
  const bitnet_status checked = device_.checked(
      "recording a step",
      [&] {
        uint64_t at = 0;
        for (const gpu::command& c : commands) {
          if (failed(added)) return;
          if (!c.run) {
            add_copies(c);
            continue;
          }
          std::memcpy(words.data() + at, c.params.data(), 4 * c.params.size());
          added = add(c, at, report);
          at += slot;
        }
        if (!words.empty())
          device_.wgpu().QueueWriteBuffer(device_.queue, params_->handle(), 0, words.data(),
                                          words.size());
      },
      report);
  if (failed(checked)) return checked;  // more specific than the error that it caused
  if (failed(added)) return added;
  settle_extents();
  const uint64_t staged = returned_bytes_ + (ticks_ ? ticks_->size() : 0);
  if (staged == 0) return BITNET_OK;
  staging_ = std::make_unique<memory>(device_);
  return staging_->allocate(staged, gpu::memory_place::device, usage_map_read | usage_copy_dst,
                            report);
}

void recording::encode_kernel(command_encoder_handle to, const step& s, uint32_t at,
                              compute_pass_encoder_handle& pass) const {
  const library& wgpu = device_.wgpu();
  compute_pass_descriptor wanted;
  pass_timestamp_writes stamps;
  if (queries_) {
    stamps.querySet = queries_;
    stamps.beginningOfPassWriteIndex = 2 * at;
    stamps.endOfPassWriteIndex = 2 * at + 1;
    wanted.timestampWrites = &stamps;
  }
  if (!pass) pass = wgpu.CommandEncoderBeginComputePass(to, &wanted);
  wgpu.ComputePassEncoderSetPipeline(pass, s.run->handle());
  wgpu.ComputePassEncoderSetBindGroup(pass, 0, s.bindings, 0, nullptr);
  wgpu.ComputePassEncoderDispatchWorkgroups(pass, s.groups_x, s.groups_y, 1);
}

void recording::encode_copies(command_encoder_handle to, const step& s) const {
  const library& wgpu = device_.wgpu();
  if (s.from != s.to) {
    for (const gpu::copy_range& r : s.copies)
      wgpu.CommandEncoderCopyBufferToBuffer(to, s.from, r.from, s.to, r.to, r.bytes);
    return;
  }
  uint64_t at = 0;
  for (const gpu::copy_range& r : s.copies) {
    wgpu.CommandEncoderCopyBufferToBuffer(to, s.from, r.from, bounce_->handle(), at, r.bytes);
    at += r.bytes;
  }
  at = 0;
  for (const gpu::copy_range& r : s.copies) {
    wgpu.CommandEncoderCopyBufferToBuffer(to, bounce_->handle(), at, s.to, r.to, r.bytes);
    at += r.bytes;
  }
}

command_buffer_handle recording::encode() const {
  const library& wgpu = device_.wgpu();
  const command_encoder_descriptor plain;
  const command_encoder_handle to = wgpu.DeviceCreateCommandEncoder(device_.device, &plain);
  compute_pass_encoder_handle pass = nullptr;
  const auto end_pass = [&] {
    if (!pass) return;
    wgpu.ComputePassEncoderEnd(pass);
    wgpu.ComputePassEncoderRelease(pass);
    pass = nullptr;
  };
  for (uint32_t i = 0; i < steps_.size(); ++i) {
    if (!steps_[i].run || queries_) end_pass();  // a timed command has a pass of its own
    if (steps_[i].run)
      encode_kernel(to, steps_[i], i, pass);
    else
      encode_copies(to, steps_[i]);
  }
  end_pass();
  for (const carried& c : returned_)
    wgpu.CommandEncoderCopyBufferToBuffer(to, c.of->handle(), c.what.offset, staging_->handle(),
                                          c.staged, c.what.bytes);
  if (queries_) {
    wgpu.CommandEncoderResolveQuerySet(to, queries_, 0, static_cast<uint32_t>(2 * steps_.size()),
                                       ticks_->handle(), 0);
    wgpu.CommandEncoderCopyBufferToBuffer(to, ticks_->handle(), 0, staging_->handle(),
                                          returned_bytes_, ticks_->size());
  }
  const command_buffer_handle out = wgpu.CommandEncoderFinish(to, nullptr);
  wgpu.CommandEncoderRelease(to);
  return out;
}

bitnet_status recording::submit(const std::shared_ptr<answer>& done, const sdk::reporter& report) {
  const library& wgpu = device_.wgpu();
  const bitnet_status s = device_.checked(
      "submitting a step",
      [&] {
        for (const carried& c : sent_) c.of->send(c.what);
        const command_buffer_handle commands = encode();
        if (!commands) return;
        wgpu.QueueSubmit(device_.queue, 1, &commands);
        wgpu.CommandBufferRelease(commands);
      },
      report);
  if (failed(s)) return s;
  for (const carried& c : returned_) c.of->begin_write(c.what);
  buffer_map_callback_info call;
  call.callback = take_done;
  call.userdata1 = answer::give(done);
  if (staging_)
    wgpu.BufferMapAsync(staging_->handle(), map_read, 0, staging_->size(), call);
  else
    wgpu.QueueOnSubmittedWorkDone(device_.queue, call);
  return BITNET_OK;
}

bitnet_status recording::finish(const sdk::reporter& report) {
  if (!staging_) return BITNET_OK;
  const library& wgpu = device_.wgpu();
  const auto* const data = static_cast<const uint8_t*>(
      wgpu.BufferGetConstMappedRange(staging_->handle(), 0, staging_->size()));
  for (const carried& c : returned_) c.of->end_write(c.what, data ? data + c.staged : nullptr);
  if (!data)
    return report.fail(BITNET_DEVICE_LOST,
                       "%s: the results of a step cannot be mapped; open the device again",
                       device_.name.c_str());
  if (queries_) {
    times_.resize(2 * steps_.size());
    std::memcpy(times_.data(), data + returned_bytes_, times_.size() * sizeof(uint64_t));
  }
  wgpu.BufferUnmap(staging_->handle());
  return BITNET_OK;
}

bool recording::times(std::span<uint64_t> out) const noexcept {
  if (!queries_ || times_.size() != 2 * out.size()) return false;
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t begin = times_[2 * i], end = times_[2 * i + 1];
    out[i] = end > begin ? static_cast<uint64_t>(static_cast<double>(end - begin) * tick_ns_) : 0;
  }
  return true;
}

}  // namespace bitnet::webgpu
