#include "kv_pool.hpp"

#include <algorithm>

#include "layout.hpp"

namespace bitnet::gpu {
namespace {

using sdk::failed;

uint32_t format_of(uint32_t dtype) noexcept {
  return dtype == BITNET_DTYPE_F32    ? BITNET_FORMAT_F32
         : dtype == BITNET_DTYPE_Q8_0 ? BITNET_FORMAT_Q8_0
                                      : BITNET_FORMAT_F16;
}

}  // namespace

bitnet_status kv_pool::plan(const bitnet_kv_config* config, uint32_t kv_dtypes,
                            std::vector<uint64_t>& sizes, const sdk::reporter& report) {
  uint64_t canonical = 0;
  if (bitnet_status s = sdk::describe(config, kv_dtypes, storage_, canonical, report); failed(s))
    return s;
  const facts& about = device_.about();
  const uint64_t rows = storage_.n_kv_heads * storage_.block_tokens;  // of a block
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
  return BITNET_OK;
}

bitnet_status kv_pool::create(const bitnet_kv_config* config, uint32_t kv_dtypes,
                              const sdk::reporter& report) {
  std::vector<uint64_t> sizes;
  if (bitnet_status s = plan(config, kv_dtypes, sizes, report); failed(s)) return s;
  buffers_.resize(sizes.size());
  const std::scoped_lock lock(device_.lock);
  for (uint64_t i = 0; i < sizes.size(); ++i) {
    held_.add(sizes[i]);
    if (bitnet_status s =
            device_.driver->allocate(sizes[i], placement::device, buffers_[i], report);
        failed(s))
      return s;
  }
  for (uint64_t i = 0; i < places_.size(); ++i)
    places_[i].memory = buffers_[regions_[i].buffer].get();
  return BITNET_OK;
}

uint64_t kv_pool::block_bytes() const noexcept {
  uint64_t sum = 0;
  for (const region& r : regions_) sum += r.block_bytes;
  return sum;
}

bitnet_status kv_pool::start(running& queue, const std::vector<command>& commands, transfer t,
                             const sdk::reporter& report) {
  {
    const std::scoped_lock lock(device_.lock);
    if (bitnet_status s = device_.driver->record(commands, false, t.commands, report); failed(s))
      return s;
  }
  return queue.start(std::move(t), report);
}

bitnet_status kv_pool::copy(running& queue, const uint32_t* from, const uint32_t* to, uint32_t n,
                            uint64_t signal, const sdk::reporter& report) {
  if (bitnet_status s = sdk::check_copies(storage_, from, to, n, report); failed(s)) return s;
  std::vector<command> commands;
  for (uint64_t b = 0; b < buffers_.size(); ++b) {
    command c;
    c.bindings.assign(2, {buffers_[b].get(), 0, buffers_[b]->size()});
    for (uint64_t r = 0; r < regions_.size(); ++r) {
      if (regions_[r].buffer != b) continue;
      const uint64_t at = places_[r].offset, bytes = regions_[r].block_bytes;
      for (uint32_t i = 0; i < n; ++i)
        c.copies.push_back({at + from[i] * bytes, at + to[i] * bytes, bytes});
    }
    commands.push_back(std::move(c));
  }
  return start(queue, commands, {signal, nullptr, {}, {}}, report);
}

std::vector<command> kv_pool::moves(const uint32_t* blocks, uint32_t n, const buffer& staging,
                                    direction way) const {
  std::vector<command> out(buffers_.size());
  const binding host{&staging, 0, staging.size()};
  for (uint64_t b = 0; b < out.size(); ++b) {
    const binding device{buffers_[b].get(), 0, buffers_[b]->size()};
    out[b].bindings = way == direction::out ? std::vector{device, host} : std::vector{host, device};
  }
  uint64_t staged = 0;
  for (uint32_t i = 0; i < n; ++i) {
    for (uint64_t r = 0; r < regions_.size(); ++r) {
      const uint64_t bytes = regions_[r].block_bytes, at = places_[r].offset + blocks[i] * bytes;
      out[regions_[r].buffer].copies.push_back(
          way == direction::out ? copy_range{at, staged, bytes} : copy_range{staged, at, bytes});
      staged += bytes;
    }
  }
  return out;
}

template <class Each>
void kv_pool::each_staged(uint32_t n, Each each) const {
  uint64_t staged = 0, canonical = 0;
  for (uint32_t i = 0; i < n; ++i) {
    for (const region& r : regions_) {
      each(r, staged, canonical);
      staged += r.block_bytes;
      canonical += r.canonical_bytes;
    }
  }
}

bitnet_status kv_pool::write_out(running& queue, const uint32_t* blocks, uint32_t n, uint8_t* out,
                                 uint64_t bytes, uint64_t signal, const sdk::reporter& report) {
  if (bitnet_status s = sdk::check_moved(storage_, blocks, n, out, bytes, false, report); failed(s))
    return s;
  lease staging;
  if (bitnet_status s = device_.pool.take(n * block_bytes() + 4, placement::host, staging, report);
      failed(s))
    return s;
  const std::vector<command> commands = moves(blocks, n, *staging.get(), direction::out);
  const auto* from = static_cast<const uint8_t*>(staging.get()->mapped());
  const uint64_t rows = storage_.n_kv_heads * storage_.block_tokens, k = storage_.head_dim;
  // The pool outlives what the queue does with it.
  const auto finish = [this, from, out, n, rows, k] {
    each_staged(n, [&](const region& r, uint64_t staged, uint64_t canonical) {
      from_device(r.format, k, from + staged, rows, out + canonical);
    });
  };
  return start(queue, commands, {signal, nullptr, std::move(staging), finish}, report);
}

bitnet_status kv_pool::read_in(running& queue, const uint32_t* blocks, uint32_t n,
                               const uint8_t* data, uint64_t bytes, uint64_t signal,
                               const sdk::reporter& report) {
  if (bitnet_status s = sdk::check_moved(storage_, blocks, n, data, bytes, true, report); failed(s))
    return s;
  lease staging;
  if (bitnet_status s = device_.pool.take(n * block_bytes() + 4, placement::host, staging, report);
      failed(s))
    return s;
  auto* to = static_cast<uint8_t*>(staging.get()->mapped());
  const uint64_t rows = storage_.n_kv_heads * storage_.block_tokens;
  each_staged(n, [&](const region& r, uint64_t staged, uint64_t canonical) {
    to_device(r.format, storage_.head_dim, data + canonical, rows, to + staged);
  });
  const std::vector<command> commands = moves(blocks, n, *staging.get(), direction::in);
  return start(queue, commands, {signal, nullptr, std::move(staging), {}}, report);
}

}  // namespace bitnet::gpu
