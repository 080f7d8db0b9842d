#include "device.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "pipeline.hpp"
#include "queue.hpp"
#include "recording.hpp"

namespace bitnet::webgpu {
namespace {

using sdk::failed;

// The library buffers uploads until the next submission.
constexpr uint64_t upload_bytes = uint64_t{8} << 20;
constexpr uint64_t download_bytes = uint64_t{8} << 20;

}  // namespace

bitnet_status device::open(const sdk::reporter& report) {
  return connection_.open(adapter_.handle, adapter_.most, adapter_.language.subgroups,
                          adapter_.timestamps, report);
}

bitnet_status device::allocate(uint64_t bytes, gpu::memory_place where,
                               std::unique_ptr<gpu::buffer>& out, const sdk::reporter& report) {
  const uint64_t whole = std::max<uint64_t>((bytes + 3) / 4 * 4, 4);
  if (whole > adapter_.most.maxBufferSize)
    return report.fail(BITNET_OUT_OF_DEVICE_MEMORY,
                       "%s: a buffer of %llu bytes, its maxBufferSize is %llu; use a smaller "
                       "model, a shorter context or another device",
                       adapter_.about.name.c_str(), static_cast<unsigned long long>(whole),
                       static_cast<unsigned long long>(adapter_.most.maxBufferSize));
  // The step header, which the host writes, is bound as a uniform.
  const flags usage = usage_storage | usage_copy_src | usage_copy_dst |
                      (where == gpu::memory_place::host ? usage_uniform : 0);
  auto made = std::make_unique<memory>(connection_);
  if (bitnet_status s = made->allocate(whole, where, usage, report); failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

bitnet_status device::upload(gpu::buffer& to, uint64_t offset, const void* data, uint64_t bytes,
                             const sdk::reporter& report) {
  if (to.mapped()) {
    std::memcpy(static_cast<uint8_t*>(to.mapped()) + offset, data, bytes);
    return BITNET_OK;
  }
  const auto* from = static_cast<const uint8_t*>(data);
  const library& wgpu = connection_.wgpu();
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t n = std::min(upload_bytes, bytes - done);
    const std::scoped_lock held(connection_.on.lock);
    const bitnet_status s = connection_.checked(
        "uploading",
        [&] {
          wgpu.QueueWriteBuffer(connection_.queue, memory_of(to).handle(), offset + done,
                                from + done, n);
          wgpu.QueueSubmit(connection_.queue, 0, nullptr);
        },
        report);
    if (failed(s)) return s;
    wgpu.InstanceProcessEvents(connection_.on.instance);
    done += n;
  }
  return BITNET_OK;
}

bitnet_status device::download(const gpu::buffer& from, uint64_t offset, void* data, uint64_t bytes,
                               const sdk::reporter& report) {
  if (from.mapped()) {
    std::memcpy(data, static_cast<const uint8_t*>(from.mapped()) + offset, bytes);
    return BITNET_OK;
  }
  if (bytes == 0) return BITNET_OK;
  std::unique_ptr<gpu::buffer> staging;
  if (bitnet_status s =
          allocate(std::min(bytes, download_bytes), gpu::memory_place::host, staging, report);
      failed(s))
    return s;
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t n = std::min(download_bytes, bytes - done);
    gpu::command copy;
    copy.copies = {{offset + done, 0, n}};
    copy.bindings = {{&from, 0, from.size()}, {staging.get(), 0, staging->size()}};
    std::unique_ptr<gpu::recording> work;
    if (bitnet_status s = record({&copy, 1}, false, work, report); failed(s)) return s;
    queue turn(connection_);
    if (bitnet_status s = turn.submit(*work, 1, report); failed(s)) return s;
    if (bitnet_status s = turn.wait(1, UINT64_MAX, report); failed(s)) return s;
    std::memcpy(static_cast<uint8_t*>(data) + done, staging->mapped(), n);
    done += n;
  }
  return BITNET_OK;
}

bitnet_status device::make_kernel(const gpu::kernel_spec& spec, std::unique_ptr<gpu::kernel>& out,
                                  const sdk::reporter& report) {
  const uint32_t threads = spec.constants[0];
  if (!std::has_single_bit(threads) || threads > adapter_.about.capabilities.max_group_size)
    return report.fail(
        BITNET_UNSUPPORTED, "%s: work groups of %u threads; a power of two up to %u is expected",
        adapter_.about.name.c_str(), threads, adapter_.about.capabilities.max_group_size);
  auto made = std::make_unique<kernel>(connection_, adapter_.language, spec);
  // Compiles the usual form now, so that a rejected text is reported here.
  const pipeline* usual = nullptr;
  if (bitnet_status s = made->form(none_shared, usual, report); failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

bitnet_status device::record(std::span<const gpu::command> commands, bool timed,
                             std::unique_ptr<gpu::recording>& out, const sdk::reporter& report) {
  // Timestamps are in nanoseconds, as the standard requires.
  auto made = std::make_unique<recording>(connection_, adapter_.timestamps ? 1.0 : 0.0);
  if (bitnet_status s =
          made->make(commands, timed, adapter_.most.minUniformBufferOffsetAlignment, report);
      failed(s))
    return s;
  out = std::move(made);
  return BITNET_OK;
}

bitnet_status device::make_queue(std::unique_ptr<gpu::queue>& out, const sdk::reporter&) {
  out = std::make_unique<queue>(connection_);
  return BITNET_OK;
}

}  // namespace bitnet::webgpu
