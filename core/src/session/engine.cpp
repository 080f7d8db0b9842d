#include "session/engine.hpp"

#include "bitnet/abi/packed.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/host_memory.hpp"
#include "plugin/loading/kept_state.hpp"
#include "session/kv_blocks.hpp"
#include "session/kv_store.hpp"
#include "session/tuning.hpp"

namespace bitnet::session {
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
  d.n_scales = w.scales.size();
  d.scales = w.scales.data();
  d.name = {w.name.data(), w.name.size()};
  return d;
}

bool can_alias(const model::weight& w, const bitnet_weight_plan& plan) {
  if (plan.accepts_alias == 0 || w.alias.empty() || w.alias.size() != w.data_bytes) return false;
  return reinterpret_cast<uintptr_t>(w.alias.data()) % plan.alignment_bytes == 0;
}

}  // namespace

result<void> engine::check_read() const {
  if (auto ok = model_.check_read(); !ok || !packed_head_) return ok;
  return packed_head_->file.check_read();
}

engine::engine(select::choice choice, const model::model& m, const kv_budget& budget, bool copies)
    : choice_(std::move(choice)),
      model_(m),
      graph_(program::describe(m, m.shape().n_context)),
      budget_(budget),
      copies_(copies) {}

result<std::unique_ptr<engine>> engine::open(select::choice choice, const model::model& m,
                                             const progress& report, const pack_cache* cache,
                                             const kv_budget& budget, bool tune_now, bool copies) {
  std::unique_ptr<engine> e(new engine(std::move(choice), m, budget, copies));
  const std::string who = fmt::format("backend {}", e->backend_name());
  auto scales = m.hold_scales();
  if (!scales) return std::unexpected(std::move(scales.error()));

  const auto open_device = [&] {
    const plugin::kept_process kept(e->choice_.backend->complaints());
    return compute::device::open(e->table(), e->choice_.device_index, e->choice_.device);
  };
  auto device = told(open_device(), fmt::format("opening device {}", e->choice_.device_index));
  if (!device) return pass_on(std::move(device), who);
  e->device_ = std::move(*device);
  std::vector<bitnet_tensor_desc> descs;
  for (const model::weight& w : m.weights()) descs.push_back(describe(w));
  if (auto ok = e->check_support(descs); !ok) return pass_on(std::move(ok), who);
  // What is read from the caches is fast without.
  uint64_t total = 0;
  for (const model::weight& w : m.weights()) total += w.data_bytes;
  const bool worthwhile = cache != nullptr && total >= cache->least_bytes();
  e->tuning_ =
      tune(e->choice_, e->device_.get(), worthwhile || tune_now ? cache : nullptr, tune_now);
  auto ready = e->upload(descs, report, std::move(*scales));
  give_back_freed_memory();
  if (ready && cache != nullptr) ready = e->use_packed_head(*cache);
  // Whatever the backend said of it: zeros that stand for missing bytes are not its fault.
  if (auto ok = m.check_file(); !ok) return std::unexpected(std::move(ok.error()));
  if (!ready) return pass_on(std::move(ready), who);
  return e;
}

result<std::shared_ptr<kv_store>> engine::shared_kv(bitnet_kv_config config) {
  if (auto store = shared_kv_.lock()) {
    if (store->config().dtype_k == config.dtype_k && store->config().dtype_v == config.dtype_v)
      return store;
    return fail(BITNET_INVALID_ARGUMENT,
                "sessions that share a KV budget keep keys and values in the same types; open this "
                "one with those of the others");
  }
  auto store = kv_store::make(*this, config, budget_.policy);
  if (store) shared_kv_ = *store;
  return store;
}

compute::activity engine::status() const {
  const plugin::kept_thread kept(*choice_.backend->complaints());
  return device_.status();
}

uint64_t engine::free_memory() const {
  // Of others device_status may tell it; contexts are not planned by that yet.
  if (choice_.device.device_class != BITNET_DEVICE_CPU) return 0;
  const uint64_t free = free_host_memory();
  // The system counts pages of mapped files as free, but every step reads these.
  const uint64_t mapped = aliased_bytes_ + (packed_head_ ? packed_head_->form.size() : 0);
  return free - std::min(free, mapped);
}

// Before a byte of the weights is read: the smallest program that a session could want.
result<void> engine::check_support(const std::vector<bitnet_tensor_desc>& descs) const {
  bitnet_program_options o{};
  o.struct_size = sizeof o;
  o.max_tokens = o.max_sequences = o.max_outputs = o.max_blocks = 1;
  o.block_tokens = block_tokens;
  return compute::check_support(device_, graph_, descs, o, nullptr);
}

// Lets go of the scales, which `descs` point to, once the backend has copied them.
result<void> engine::upload(const std::vector<bitnet_tensor_desc>& descs, const progress& report,
                            model::model::scales_hold scales) {
  std::vector<bitnet_weight_plan> plans;
  for (const bitnet_tensor_desc& d : descs) {
    const auto plan = told(compute::plan(device_, d),
                           fmt::format("tensor {}", std::string_view(d.name.data, d.name.size)));
    if (!plan) return std::unexpected(plan.error());
    plans.push_back(*plan);
  }
  auto made = told(compute::weights::create(device_, descs), "making room for the weights");
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
  return {};
}

result<void> engine::upload_one(uint32_t index, const bitnet_weight_plan& plan,
                                const std::function<result<void>(uint64_t)>& wrote) {
  const model::weight& w = model_.weights()[index];
  const std::string doing = fmt::format("tensor {}", w.name);
  const bool copied = copies_ && w.format == BITNET_FORMAT_TERNARY2;  // what every token reads
  if (!copied && can_alias(w, plan)) {
    if (auto ok = told(weights_.alias(index, w.alias), doing); !ok) return ok;
    aliased_bytes_ += w.alias.size();
  } else {
    auto streamed = model_.stream_weight(
        index, [&](uint64_t offset, std::span<const std::byte> bytes) -> result<void> {
          auto ok = told(weights_.write(index, offset, bytes), doing);
          return ok ? wrote(offset + bytes.size()) : ok;
        });
    if (!streamed) return streamed;
  }
  if (auto ok = told(weights_.seal(index), doing); !ok) return ok;
  return wrote(w.data_bytes);
}

// The output head is the largest matrix, and the one whose second form every answer needs.
result<void> engine::use_packed_head(const pack_cache& cache) {
  constexpr std::string_view name = BITNET_INTERFACE_PACKED_WEIGHTS;
  const auto* offered = table().query_interface(table().self, {name.data(), name.size()}, 1);
  if (offered == nullptr) return {};
  const auto& packed = *reinterpret_cast<const bitnet_packed_weights_v1*>(offered);
  const uint32_t index = model_.output();
  const std::string doing = fmt::format("tensor {}", model_.weights()[index].name);
  if (auto ok =
          told(compute::sane("query_interface", bitnet_wrong_packed_interface(&packed)), doing);
      !ok)
    return ok;
  bitnet_packed_info info{};
  info.struct_size = sizeof info;
  const auto call = [&](const char* slot, const auto& what) {
    return told(compute::call(slot, what), doing);
  };
  if (auto ok = call("describe",
                     [&](auto* err) { return packed.describe(weights(), index, &info, err); });
      !ok)
    return ok;
  const model::weight& head = model_.weights()[index];
  const char* wrong = bitnet_wrong_packed_info(
      &info, static_cast<uint64_t>(head.ne[0]) * static_cast<uint64_t>(head.ne[1]));
  if (auto ok = told(compute::sane("describe", wrong), doing); !ok) return ok;
  if (info.bytes < cache.least_bytes()) return {};
  const std::string identity = model_.weight_identity(index);
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
  if (auto ok = told(compute::sane("pack", wrong), doing); !ok) return ok;
  cache.keep(key, {static_cast<const std::byte*>(made), info.bytes});
  return {};
}

}  // namespace bitnet::session
