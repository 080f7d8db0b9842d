#include "memory.hpp"

#include <algorithm>
#include <cstring>

namespace bitnet::webgpu {

std::vector<extent> united(std::vector<extent> all) {
  std::sort(all.begin(), all.end(),
            [](const extent& a, const extent& b) { return a.offset < b.offset; });
  std::vector<extent> out;
  for (const extent& e : all) {
    if (e.bytes == 0) continue;
    if (!out.empty() && e.offset <= out.back().end())
      out.back().bytes = std::max(out.back().end(), e.end()) - out.back().offset;
    else
      out.push_back(e);
  }
  return out;
}

std::vector<extent> without(const extent& one, const std::vector<extent>& others) {
  std::vector<extent> left = {one};
  for (const extent& other : others) {
    std::vector<extent> next;
    for (const extent& l : left) {
      const uint64_t before = std::min(std::max(other.offset, l.offset), l.end());
      const uint64_t after = std::max(std::min(other.end(), l.end()), l.offset);
      if (before > l.offset) next.push_back({l.offset, before - l.offset});
      const uint64_t rest = std::max(after, before);
      if (l.end() > rest) next.push_back({rest, l.end() - rest});
    }
    left = std::move(next);
  }
  return left;
}

memory::~memory() {
  if (!handle_) return;
  const std::scoped_lock held(device_.on.lock);
  device_.wgpu().BufferRelease(handle_);
}

bitnet_status memory::allocate(uint64_t bytes, gpu::memory_place where, flags usage,
                               const sdk::reporter& report) {
  buffer_descriptor wanted;
  wanted.size = bytes;
  wanted.usage = usage;
  const std::scoped_lock held(device_.on.lock);
  if (where == gpu::memory_place::host) copy_ = sdk::memory(bytes);
  const bitnet_status made = device_.checked(
      "wgpuDeviceCreateBuffer",
      [&] { handle_ = device_.wgpu().DeviceCreateBuffer(device_.device, &wanted); }, report);
  if (sdk::failed(made)) return made;
  if (!handle_)
    return report.fail(BITNET_OUT_OF_DEVICE_MEMORY,
                       "%s gives no buffer of %llu bytes; use a smaller model, context or batch",
                       device_.name.c_str(), static_cast<unsigned long long>(bytes));
  bytes_ = bytes;
  return BITNET_OK;
}

void memory::send(const extent& what) const {
  for (const extent& part : without(what, written_))
    device_.wgpu().QueueWriteBuffer(device_.queue, handle_, part.offset, copy_.data() + part.offset,
                                    part.bytes);
}

void memory::end_write(const extent& what, const void* data) noexcept {
  if (data) std::memcpy(copy_.data() + what.offset, data, what.bytes);
  const auto found = std::find_if(written_.begin(), written_.end(), [&](const extent& e) {
    return e.offset == what.offset && e.bytes == what.bytes;
  });
  if (found != written_.end()) written_.erase(found);
}

}  // namespace bitnet::webgpu
