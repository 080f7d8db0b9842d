#include "kv_pool.hpp"

#include <algorithm>
#include <atomic>

#include "layout.hpp"

namespace bitnet::gpu {
namespace {

using sdk::failed;

std::atomic<uint64_t> next_id{1};

uint32_t format_of(uint32_t dtype) noexcept {
  return dtype == BITNET_DTYPE_F32    ? BITNET_FORMAT_F32
         : dtype == BITNET_DTYPE_Q8_0 ? BITNET_FORMAT_Q8_0
                                      : BITNET_FORMAT_F16;
}

}  // namespace

bitnet_status kv_pool::create(const bitnet_kv_config* config, uint32_t kv_dtypes,
                              const sdk::reporter& report) {
  uint64_t canonical = 0;
  if (bitnet_status s = sdk::describe(config, kv_dtypes, storage_, canonical, report); failed(s))
    return s;
  const facts& about = device_.about();
  const uint64_t rows = storage_.n_kv_heads * storage_.block_tokens;  // of a block
  std::vector<uint64_t> sizes;
  for (uint32_t i = 0; i < 2 * storage_.n_layers; ++i) {
    const uint32_t dtype = i % 2 == 0 ? storage_.dtype_k : storage_.dtype_v;
    const uint64_t block = 4 * kv_row_words(dtype, storage_.head_dim) * rows;
    const uint64_t bytes = block * storage_.n_blocks, aligned = device_.align(bytes);
    if (aligned >
        std::min({about.max_binding_bytes, about.max_allocation_bytes, uint64_t{1} << 32}))
      return report.fail(BITNET_OUT_OF_DEVICE_MEMORY,
                         "the keys of a layer take %llu bytes, a kernel of %s sees %llu at once; "
                         "use a smaller --ctx-size, or q8_0 keys and values",
                         static_cast<unsigned long long>(bytes), about.name.c_str(),
                         static_cast<unsigned long long>(about.max_binding_bytes));
    if (sizes.empty() || sizes.back() + aligned > about.max_allocation_bytes) sizes.push_back(0);
    regions_.push_back({format_of(dtype), sizes.size() - 1, block,
                        rows * (i % 2 == 0 ? storage_.k_bytes : storage_.v_bytes)});
    places_.push_back({nullptr, sizes.back(), bytes});
    sizes.back() += aligned;
  }
  buffers_.resize(sizes.size());
  const std::scoped_lock lock(device_.lock);
  for (uint64_t i = 0; i < sizes.size(); ++i)
    if (bitnet_status s =
            device_.driver->allocate(sizes[i], placement::device, buffers_[i], report);
        failed(s))
      return s;
  for (uint64_t i = 0; i < places_.size(); ++i)
    places_[i].memory = buffers_[regions_[i].buffer].get();
  id_ = next_id.fetch_add(1);
  return BITNET_OK;
}

bitnet_status kv_pool::copy(const uint32_t* from, const uint32_t* to, uint32_t n,
                            const sdk::reporter& report) {
  if (bitnet_status s = sdk::check_copies(storage_, from, to, n, report); failed(s)) return s;
  if (bitnet_status s = device_.settle(UINT64_MAX, report); failed(s)) return s;
  const std::scoped_lock lock(device_.lock);
  for (uint32_t first = 0; first < n;) {
    // Ranges of one call must not touch each other: a block that was written starts a new call.
    uint32_t last = first;
    const auto written = [&](uint32_t block) {
      return std::find(to + first, to + last, block) != to + last;
    };
    const auto read = [&](uint32_t block) {
      return std::find(from + first, from + last, block) != from + last;
    };
    while (last < n && !written(from[last]) && !written(to[last]) && !read(to[last])) ++last;
    for (uint64_t b = 0; b < buffers_.size(); ++b) {
      std::vector<copy_range> ranges;
      for (uint64_t r = 0; r < regions_.size(); ++r) {
        if (regions_[r].buffer != b) continue;
        const uint64_t at = places_[r].offset, bytes = regions_[r].block_bytes;
        for (uint32_t i = first; i < last; ++i)
          if (from[i] != to[i]) ranges.push_back({at + from[i] * bytes, at + to[i] * bytes, bytes});
      }
      if (ranges.empty()) continue;
      if (bitnet_status s = device_.driver->copy(*buffers_[b], *buffers_[b], ranges, report);
          failed(s))
        return s;
    }
    first = last;
  }
  return BITNET_OK;
}

template <class Each>
bitnet_status kv_pool::each_region(uint32_t block, Each each) {
  std::vector<uint8_t> bytes;
  const std::scoped_lock lock(device_.lock);
  uint64_t canonical = 0;
  for (uint64_t i = 0; i < regions_.size(); ++i) {
    const region& r = regions_[i];
    bytes.resize(r.block_bytes);
    const uint64_t offset = places_[i].offset + block * r.block_bytes;
    if (bitnet_status s = each(*buffers_[r.buffer], offset, r, bytes, canonical); failed(s))
      return s;
    canonical += r.canonical_bytes;
  }
  return BITNET_OK;
}

bitnet_status kv_pool::write_out(uint32_t block, uint8_t* out, uint64_t bytes,
                                 const sdk::reporter& report) {
  if (bitnet_status s = sdk::check_block(storage_, block, out, bytes, report); failed(s)) return s;
  if (bitnet_status s = device_.settle(UINT64_MAX, report); failed(s)) return s;
  const uint64_t rows = storage_.n_kv_heads * storage_.block_tokens;
  return each_region(block, [&](const buffer& from, uint64_t offset, const region& r,
                                std::vector<uint8_t>& device, uint64_t at) {
    const bitnet_status s =
        device_.driver->download(from, offset, device.data(), device.size(), report);
    if (!failed(s)) from_device(r.format, storage_.head_dim, device.data(), rows, out + at);
    return s;
  });
}

bitnet_status kv_pool::read_in(uint32_t block, const uint8_t* data, uint64_t bytes,
                               const sdk::reporter& report) {
  if (bitnet_status s = sdk::check_block(storage_, block, data, bytes, report); failed(s)) return s;
  if (bitnet_status s = device_.settle(UINT64_MAX, report); failed(s)) return s;
  const uint64_t rows = storage_.n_kv_heads * storage_.block_tokens;
  return each_region(block, [&](buffer& to, uint64_t offset, const region& r,
                                std::vector<uint8_t>& device, uint64_t at) {
    to_device(r.format, storage_.head_dim, data + at, rows, device.data());
    return device_.driver->upload(to, offset, device.data(), device.size(), report);
  });
}

}  // namespace bitnet::gpu
