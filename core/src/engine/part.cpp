#include "engine/part.hpp"

#include "bitnet/abi/packed.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/host_memory.hpp"
#include "engine/tuning.hpp"
#include "kv/blocks.hpp"
#include "model/context_room.hpp"
#include "plugin/loading/kept_state.hpp"

namespace bitnet::engine {
namespace {

bitnet_tensor_desc describe(const model::weight& w) {
  bitnet_tensor_desc d{};
  d.struct_size = sizeof d;
  d.format = w.format;
  d.rank = w.rank;
  d.ne[0] = w.ne[0];
  d.ne[1] = w.ne[1];
  d.ne[2] = d.ne[3] = 1;
  d.data_bytes = w.data_bytes;
  d.scale_group = w.scale_group;
  // From the shape: the scales may be released when only their number matters.
  if (w.format == BITNET_FORMAT_TERNARY2)
    d.n_scales = w.scale_group == 0 ? 1
                                    : static_cast<uint64_t>(w.ne[1]) *
                                          (static_cast<uint64_t>(w.ne[0]) / w.scale_group);
  d.scales = w.scales.data();
  d.name = {w.name.data(), w.name.size()};
  return d;
}

bool can_alias(const model::weight& w, const bitnet_weight_plan& plan) {
  if (plan.accepts_alias == 0 || w.alias.empty() || w.alias.size() != w.data_bytes) return false;
  return reinterpret_cast<uintptr_t>(w.alias.data()) % plan.alignment_bytes == 0;
}

// Notes the weights that a graph reads.
void mark(const compute::graph& g, std::vector<bool>& read) {
  for (const bitnet_op& o : g.ops)
    for (const uint32_t w : o.weights)
      if (w != BITNET_NONE) read[w] = true;
}

// The weights that a section reads. Contexts of different lengths may have different rotations.
std::vector<bool> read_by(const model::model& m, const model::section& what) {
  std::vector<bool> read(m.weights().size());
  for (const uint32_t n_context : {1U, model::largest_context})
    mark(graph_of(m, n_context, model::ending::logits, what), read);
  return read;
}

}  // namespace

part::part(select::choice choice, const model::model& m, bool copies)
    : choice_(std::move(choice)), model_(m), copies_(copies) {}

result<std::unique_ptr<part>> part::open(select::choice choice, const model::model& m,
                                         bool copies) {
  std::unique_ptr<part> p(new part(std::move(choice), m, copies));
  const auto open_device = [&] {
    const plugin::kept_process kept(p->choice_.backend->complaints());
    return compute::device::open(p->table(), p->choice_.device_index, p->choice_.device);
  };
  auto device = as_result(open_device(), fmt::format("opening device {}", p->choice_.device_index));
  if (!device) return pass_on(std::move(device), fmt::format("backend {}", p->backend_name()));
  p->device_ = std::move(*device);
  p->take(m.shape().whole());
  return p;
}

void part::take(const model::section& what) {
  what_ = what;
  kept_.clear();
  here_.assign(model_.weights().size(), model::no_weight);
  // A whole model also keeps weights that no graph reads: its weights are those of the file.
  const std::vector<bool> read = what == model_.shape().whole()
                                     ? std::vector<bool>(here_.size(), true)
                                     : read_by(model_, what);
  for (uint32_t w = 0; w < read.size(); ++w) {
    if (!read[w]) continue;
    here_[w] = static_cast<uint32_t>(kept_.size());
    kept_.push_back(w);
  }
}

compute::graph part::graph(uint32_t n_context, model::ending what) const {
  compute::graph g = graph_of(model_, n_context, what, what_);
  for (bitnet_op& o : g.ops)
    for (uint32_t& w : o.weights)
      if (w != BITNET_NONE) w = here_[w];
  if (g.logits() != BITNET_NONE && (choice_.device.logits_flags & BITNET_LOGITS_LARGEST) != 0)
    g.add_port(BITNET_PORT_LARGEST, BITNET_NONE);
  return g;
}

std::vector<bitnet_tensor_desc> part::descriptions() const {
  std::vector<bitnet_tensor_desc> out;
  out.reserve(kept_.size());
  for (const uint32_t w : kept_) out.push_back(describe(model_.weights()[w]));
  return out;
}

uint64_t part::weight_bytes() const {
  uint64_t total = 0;
  for (const uint32_t w : kept_) total += model_.weights()[w].data_bytes;
  return total;
}

result<part::demand> part::needs(const session_options& planned, const limits& most,
                                 const bitnet_kv_config& pool) const {
  const program_bounds bounds(planned, most);
  const bitnet_kv_config mine = pool_of(pool, model_.shape(), what_);
  const compute::graph g =
      graph(most.n_context, planned.embeddings ? model::ending::hidden : model::ending::logits);
  const plugin::kept_process kept(choice_.backend->complaints());
  const bool keeps = mine.n_states != 0 || model_.shape().n_attending(what_) != 0;
  const auto known =
      as_result(device_.query(g, descriptions(), bounds.get(), keeps ? &mine : nullptr),
                "asking what it can compute");
  if (!known)
    return std::unexpected(
        failure(known.error()).within(fmt::format("backend {}", backend_name())));
  demand out;
  out.weights = known->needs.weight_bytes;
  out.steps = known->needs.scratch_bytes;
  if (keeps)
    out.kv = known->needs.kv_block_bytes * mine.n_blocks + known->needs.state_bytes * mine.n_states;
  return out;
}

result<std::vector<uint32_t>> part::levels(const compute::graph& g,
                                           const bitnet_program_options& bounds) const {
  const plugin::kept_process kept(choice_.backend->complaints());
  auto known = as_result(device_.query(g, descriptions(), bounds, nullptr), "asking for levels");
  if (!known) return pass_on(std::move(known), fmt::format("backend {}", backend_name()));
  return std::move(known->levels);
}

const model::weight& part::weight(uint32_t here) const {
  return model_.weights()[kept_[here]];
}

std::optional<uint64_t> part::room() const {
  if (on_host()) {
    const uint64_t free = free_host_memory();
    return free == 0 ? std::nullopt : std::optional(free);
  }
  const uint64_t size = choice_.device.memory_total_bytes;
  const uint64_t most = size == 0 ? UINT64_MAX : size;
  if (const auto now = status().reported; now && (now->known & BITNET_STATUS_MEMORY) != 0)
    return std::min(now->memory_free_bytes, most);
  return size == 0 ? std::nullopt : std::optional(size);
}

result<void> part::check_support() const {
  // The smallest program that a session could want.
  bitnet_program_options o{};
  o.struct_size = sizeof o;
  o.max_tokens = o.max_sequences = o.max_outputs = o.max_blocks = 1;
  o.block_tokens = kv::block_tokens;
  return compute::check_support(device_, graph(model_.shape().n_context, model::ending::logits),
                                descriptions(), o, nullptr);
}

result<void> part::load(const progress& report, const pack_cache* cache, bool tune_now,
                        model::model::scales_hold scales) {
  const std::vector<bitnet_tensor_desc> descs = descriptions();
  // A small model lies in the caches, where tuning gains nothing.
  const bool worthwhile = cache != nullptr && weight_bytes() >= cache->least_bytes();
  tuning_ = tune(choice_, device_.get(), worthwhile || tune_now ? cache : nullptr, tune_now);
  auto ready = upload(descs, report, std::move(scales));
  give_back_freed_memory();
  if (ready && cache != nullptr && what_.lm_head) ready = use_packed_lm_head(*cache);
  return ready;
}

result<void> part::check_read() const {
  return packed_head_ ? packed_head_->file.check_read() : result<void>{};
}

compute::activity part::status() const {
  const plugin::kept_thread kept(*choice_.backend->complaints());
  return device_.status();
}

uint64_t part::free_memory() const {
  // device_status may report it for other devices; contexts are not planned by that yet.
  if (!on_host()) return 0;
  const uint64_t free = free_host_memory();
  // The system counts pages of mapped files as free, but every step reads these.
  const uint64_t mapped = has_.mapped + (packed_head_ ? packed_head_->form.size() : 0);
  return free - std::min(free, mapped);
}

// Releases the scales, which `descs` point to, once the backend has copied them.
result<void> part::upload(const std::vector<bitnet_tensor_desc>& descs, const progress& report,
                          model::model::scales_hold scales) {
  std::vector<bitnet_weight_plan> plans;
  for (const bitnet_tensor_desc& d : descs) {
    const auto plan =
        as_result(compute::plan(device_, d),
                  fmt::format("tensor {}", std::string_view(d.name.data, d.name.size)));
    if (!plan) return std::unexpected(plan.error());
    plans.push_back(*plan);
  }
  auto made = as_result(compute::weights::create(device_, descs), "making room for the weights");
  if (!made) return std::unexpected(std::move(made.error()));
  weights_ = std::move(*made);
  scales.reset();

  uint64_t total = 0, done = 0;
  for (const bitnet_tensor_desc& d : descs) total += d.data_bytes;
  for (uint32_t i = 0; i < descs.size(); ++i) {
    const auto wrote = [&](uint64_t bytes) -> result<void> {
      if (!report || report(done + bytes, total)) return {};
      return fail(BITNET_CANCELLED, "loading was stopped");
    };
    if (auto ok = upload_one(i, plans[i], wrote); !ok) return ok;
    done += descs[i].data_bytes;
  }
  count();
  return {};
}

// Counts weights by their readers: a weight that nothing before reads belongs behind the layers.
void part::count() {
  std::vector<bool> open(here_.size());
  for (const uint32_t w : kept_) open[w] = true;
  const auto take_from = [&](const std::vector<bool>& read) {
    uint64_t bytes = 0;
    for (uint32_t w = 0; w < open.size(); ++w) {
      if (!open[w] || !read[w]) continue;
      bytes += model_.weights()[w].data_bytes;
      open[w] = false;
    }
    return bytes;
  };
  for (uint32_t n = what_.first; n < what_.last; ++n)
    has_.layers.push_back(take_from(
        read_by(model_, {.first = n, .last = n + 1, .embedding = false, .lm_head = false})));
  if (what_.embedding)
    has_.embedding =
        take_from(read_by(model_, {.first = 0, .last = 0, .embedding = true, .lm_head = false}));
  has_.lm_head = take_from(open);
}

uint64_t part::uploaded::all() const {
  uint64_t bytes = embedding + lm_head;
  for (const uint64_t n : layers) bytes += n;
  return bytes;
}

result<void> part::upload_one(uint32_t index, const bitnet_weight_plan& plan,
                              const std::function<result<void>(uint64_t)>& wrote) {
  const model::weight& w = model_.weights()[kept_[index]];
  const std::string doing = fmt::format("tensor {}", w.name);
  const bool copied = copies_ && w.format == BITNET_FORMAT_TERNARY2;  // every token reads these
  if (!copied && can_alias(w, plan)) {
    if (auto ok = as_result(weights_.alias(index, w.alias), doing); !ok) return ok;
    has_.mapped += w.alias.size();
  } else {
    auto streamed = model_.stream_weight(
        kept_[index], [&](uint64_t offset, std::span<const std::byte> bytes) -> result<void> {
          auto ok = as_result(weights_.write(index, offset, bytes), doing);
          return ok ? wrote(offset + bytes.size()) : ok;
        });
    if (!streamed) return streamed;
  }
  if (auto ok = as_result(weights_.seal(index), doing); !ok) return ok;
  return wrote(w.data_bytes);
}

// The output head is the largest matrix, and every answer needs its second form.
result<void> part::use_packed_lm_head(const pack_cache& cache) {
  constexpr std::string_view name = BITNET_INTERFACE_PACKED_WEIGHTS;
  const auto* offered = table().query_interface(table().self, {name.data(), name.size()}, 1);
  if (offered == nullptr) return {};
  const auto& packed = *reinterpret_cast<const bitnet_packed_weights_v1*>(offered);
  const model::weight& lm_head = model_.weights()[model_.output()];
  const uint32_t index = here_[model_.output()];
  const std::string doing = fmt::format("tensor {}", lm_head.name);
  if (auto ok = as_result(compute::sane("query_interface", bitnet_wrong_packed_interface(&packed)),
                          doing);
      !ok)
    return ok;
  bitnet_packed_info info{};
  info.struct_size = sizeof info;
  const auto call = [&](const char* slot, const auto& what) {
    return as_result(compute::call(slot, what), doing);
  };
  if (auto ok = call("describe",
                     [&](auto* err) { return packed.describe(weights(), index, &info, err); });
      !ok)
    return ok;
  const char* wrong = bitnet_wrong_packed_info(
      &info, static_cast<uint64_t>(lm_head.ne[0]) * static_cast<uint64_t>(lm_head.ne[1]));
  if (auto ok = as_result(compute::sane("describe", wrong), doing); !ok) return ok;
  if (info.bytes < cache.least_bytes()) return {};
  const std::string identity = model_.weight_identity(model_.output());
  if (identity.empty()) return {};
  const std::string layout(info.layout_id, strnlen(info.layout_id, sizeof info.layout_id));
  const std::string key = fmt::format("{}:{}:{}", backend_name(), layout, identity);
  const auto fits = [&](const void* form) {
    return bitnet_wrong_packed_form(form, info.alignment_bytes) == nullptr;
  };
  if (auto found = cache.find(key);
      found && found->form.size() == info.bytes && fits(found->form.data())) {
    packed_head_ = std::move(found);
    return call("adopt", [&](auto* err) {
      return packed.adopt(weights(), index, packed_head_->form.data(), info.bytes, err);
    });
  }
  const void* made = nullptr;
  if (auto ok = call("pack", [&](auto* err) { return packed.pack(weights(), index, &made, err); });
      !ok)
    return ok;
  wrong = bitnet_wrong_packed_form(made, info.alignment_bytes);
  if (auto ok = as_result(compute::sane("pack", wrong), doing); !ok) return ok;
  cache.keep(key, {static_cast<const std::byte*>(made), info.bytes});
  return {};
}

}  // namespace bitnet::engine
