#include "kv_pool.hpp"

#include <algorithm>

#include "layout.hpp"

namespace bitnet::gpu {

using sdk::failed;

// A pool's layout comes from the SDK, which must keep the same types in the same formats.
#define BITNET_GPU_KV_KEPT(NAME)                                                \
  static_assert(sdk::kv_format_of(BITNET_DTYPE_##NAME) == BITNET_FORMAT_##NAME, \
                "BITNET_SDK_KV_TYPES lacks a type of BITNET_GPU_KV_TYPES");
BITNET_GPU_KV_TYPES(BITNET_GPU_KV_KEPT)
#undef BITNET_GPU_KV_KEPT

bitnet_status kv_pool::plan(const bitnet_kv_config* config, std::vector<uint64_t>& sizes,
                            const sdk::reporter& report) {
  uint64_t canonical = 0;
  if (bitnet_status s = sdk::describe(config, kv_dtypes, storage_, canonical, report); failed(s))
    return s;
  const uint64_t rows = storage_.n_kv_heads * storage_.block_tokens;  // of a block
  for (uint32_t i = 0; i < 2 * storage_.n_layers; ++i) {
    const bool is_k = i % 2 == 0;
    const uint32_t dtype = is_k ? storage_.dtype_k : storage_.dtype_v;
    const region made{kv_format(dtype),
                      0,
                      4 * kv_row_words(dtype, storage_.head_dim) * rows,
                      rows * (is_k ? storage_.k_bytes : storage_.v_bytes),
                      storage_.head_dim,
                      rows};
    if (bitnet_status s = add(made, storage_.n_blocks, sizes, "the keys of a layer",
                              "a smaller context, or q8_0 or q4_0 keys and values", report);
        failed(s))
      return s;
  }
  if (storage_.n_states == 0) return BITNET_OK;
  const uint64_t bytes = 4 * storage_.state_elements;
  return add({BITNET_FORMAT_F32, 0, device_.align(bytes), bytes, storage_.state_elements, 1},
             storage_.n_states, sizes, "the states of sequences", "fewer sequences at once",
             report);
}

bitnet_status kv_pool::add(const region& made, uint64_t n, std::vector<uint64_t>& sizes,
                           const char* what, const char* instead, const sdk::reporter& report) {
  const capabilities& can = device_.capabilities();
  const uint64_t bytes = made.bytes * n, aligned = device_.align(bytes);
  if (const limit most = binding_limit(can); aligned > most.bytes)
    return report.fail(BITNET_OUT_OF_DEVICE_MEMORY,
                       "%s take %llu bytes, a kernel of %s sees %s at once; use %s", what,
                       static_cast<unsigned long long>(bytes), device_.about().name.c_str(),
                       most.text().c_str(), instead);
  if (sizes.empty() || sizes.back() + aligned > can.max_allocation_bytes) sizes.push_back(0);
  regions_.push_back(made);
  regions_.back().buffer = sizes.size() - 1;
  places_.push_back({nullptr, sizes.back(), bytes});
  sizes.back() += aligned;
  return BITNET_OK;
}

bitnet_status kv_pool::create(const bitnet_kv_config* config, const sdk::reporter& report) {
  std::vector<uint64_t> sizes;
  if (bitnet_status s = plan(config, sizes, report); failed(s)) return s;
  buffers_.resize(sizes.size());
  const std::scoped_lock lock(device_.lock);
  for (uint64_t i = 0; i < sizes.size(); ++i) {
    held_.add(sizes[i]);
    if (bitnet_status s =
            device_.driver->allocate(sizes[i], memory_place::device, buffers_[i], report);
        failed(s))
      return s;
  }
  for (uint64_t i = 0; i < places_.size(); ++i)
    places_[i].memory = buffers_[regions_[i].buffer].get();
  return BITNET_OK;
}

template <class Each>
void kv_pool::each_part(uint64_t i, Each each) const {
  const bool is_state = i >= storage_.n_blocks;
  const uint64_t of_layers = 2 * uint64_t{storage_.n_layers};
  const uint64_t first = is_state ? of_layers : 0, nth = is_state ? i - storage_.n_blocks : i;
  for (uint64_t r = first; r < (is_state ? regions_.size() : of_layers); ++r)
    each(r, places_[r].offset + nth * regions_[r].bytes);
}

uint64_t kv_pool::bytes_of(uint64_t i) const noexcept {
  uint64_t sum = 0;
  each_part(i, [&](uint64_t r, uint64_t) { sum += regions_[r].bytes; });
  return sum;
}

uint64_t kv_pool::bytes_of(const uint32_t* blocks, uint32_t n) const noexcept {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < n; ++i) sum += bytes_of(blocks[i]);
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
  const range here(device_.watcher, "copy KV of ", n, " blocks");
  std::vector<command> commands;
  for (const auto& b : buffers_)
    commands.emplace_back().bindings.assign(2, {b.get(), 0, b->size()});
  for (uint32_t i = 0; i < n; ++i) {
    each_part(to[i], [&](uint64_t r, uint64_t at) {
      const uint64_t bytes = regions_[r].bytes;  // both are blocks, or both are states
      commands[regions_[r].buffer].copies.push_back(
          {at + from[i] * bytes - to[i] * bytes, at, bytes});
    });
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
    each_part(blocks[i], [&](uint64_t r, uint64_t at) {
      const uint64_t bytes = regions_[r].bytes;
      out[regions_[r].buffer].copies.push_back(
          way == direction::out ? copy_range{at, staged, bytes} : copy_range{staged, at, bytes});
      staged += bytes;
    });
  }
  return out;
}

template <class Each>
void kv_pool::each_staged(const uint32_t* blocks, uint32_t n, Each each) const {
  uint64_t staged = 0, canonical = 0;
  for (uint32_t i = 0; i < n; ++i) {
    each_part(blocks[i], [&](uint64_t at, uint64_t) {
      const region& r = regions_[at];
      each(r, staged, canonical);
      staged += r.bytes;
      canonical += r.canonical_bytes;
    });
  }
}

bitnet_status kv_pool::write_out(running& queue, const uint32_t* blocks, uint32_t n, uint8_t* out,
                                 uint64_t bytes, uint64_t signal, const sdk::reporter& report) {
  if (bitnet_status s = sdk::check_moved(storage_, blocks, n, out, bytes, false, report); failed(s))
    return s;
  const range here(device_.watcher, "export KV of ", n, " blocks, ", bytes, " bytes");
  lease staging;
  if (bitnet_status s =
          device_.pool.take(bytes_of(blocks, n) + 4, memory_place::host, staging, report);
      failed(s))
    return s;
  const std::vector<command> commands = moves(blocks, n, *staging.get(), direction::out);
  const auto* from = static_cast<const uint8_t*>(staging.get()->mapped());
  // The pool outlives the transfer; the list of blocks does not, so it is copied.
  const auto finish = [this, from, out, list = std::vector(blocks, blocks + n)] {
    each_staged(list.data(), static_cast<uint32_t>(list.size()),
                [&](const region& r, uint64_t staged, uint64_t canonical) {
                  from_device(r.format, r.k, from + staged, r.rows, out + canonical);
                });
  };
  return start(queue, commands, {signal, nullptr, std::move(staging), finish}, report);
}

bitnet_status kv_pool::read_in(running& queue, const uint32_t* blocks, uint32_t n,
                               const uint8_t* data, uint64_t bytes, uint64_t signal,
                               const sdk::reporter& report) {
  if (bitnet_status s = sdk::check_moved(storage_, blocks, n, data, bytes, true, report); failed(s))
    return s;
  const range here(device_.watcher, "import KV of ", n, " blocks, ", bytes, " bytes");
  lease staging;
  if (bitnet_status s =
          device_.pool.take(bytes_of(blocks, n) + 4, memory_place::host, staging, report);
      failed(s))
    return s;
  auto* to = static_cast<uint8_t*>(staging.get()->mapped());
  each_staged(blocks, n, [&](const region& r, uint64_t staged, uint64_t canonical) {
    to_device(r.format, r.k, data + canonical, r.rows, to + staged);
  });
  const std::vector<command> commands = moves(blocks, n, *staging.get(), direction::in);
  return start(queue, commands, {signal, nullptr, std::move(staging), {}}, report);
}

}  // namespace bitnet::gpu
