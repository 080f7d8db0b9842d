#include "session/engine.hpp"

#include "bitnet/abi/packed.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/host_memory.hpp"
#include "plugin/kept_state.hpp"
#include "plugin/text.hpp"
#include "session/answers.hpp"
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

bitnet_error blank_error() {
  bitnet_error e{};
  e.struct_size = sizeof e;
  return e;
}

result<void> check(bitnet_status status, const bitnet_error& err, const std::string& doing) {
  if (status == BITNET_OK) return {};
  const std::string reason = plugin::printable_array(err.message);
  return fail(status,
              fmt::format("{}: {}", doing,
                          reason.empty()
                              ? fmt::format("it failed with status {} and gave no reason", status)
                              : reason));
}

result<void> engine::check_read() const {
  if (auto ok = model_.check_read(); !ok || !packed_head_) return ok;
  return packed_head_->file.check_read();
}

engine::engine(select::choice choice, const model::model& m, const kv_budget& budget)
    : choice_(std::move(choice)),
      model_(m),
      graph_(program::describe(m, m.shape().n_context)),
      budget_(budget),
      device_(nullptr, choice_.backend->table().device_close),
      weights_(nullptr, choice_.backend->table().weights_destroy) {}

result<std::unique_ptr<engine>> engine::open(select::choice choice, const model::model& m,
                                             const progress& report, const pack_cache* cache,
                                             const kv_budget& budget, bool tune_now) {
  std::unique_ptr<engine> e(new engine(std::move(choice), m, budget));
  const std::string who = fmt::format("backend {}", e->backend_name());

  bitnet_error err = blank_error();
  bitnet_device* device = nullptr;
  const auto open_device = [&] {
    const plugin::kept_process kept(e->choice_.backend->complaints());
    return e->table().device_open(e->table().self, e->choice_.device_index, &device, &err);
  };
  const bitnet_status status = open_device();
  if (auto ok =
          check(status, err, fmt::format("{}: opening device {}", who, e->choice_.device_index));
      !ok)
    return std::unexpected(std::move(ok.error()));
  e->device_.reset(device);
  if (auto ok = sane(bitnet_wrong_handle(device), "device_open"); !ok)
    return pass_on(std::move(ok), who);

  if (auto ok = program::check_support(e->table(), device, e->graph_, m); !ok)
    return pass_on(std::move(ok), who);
  // What is read from the caches is fast without.
  uint64_t total = 0;
  for (const model::weight& w : m.weights()) total += w.data_bytes;
  const bool worthwhile = cache != nullptr && total >= cache->least_bytes();
  e->tuning_ = tune(e->choice_, device, worthwhile || tune_now ? cache : nullptr, tune_now);
  auto ready = e->upload(report);
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

uint64_t engine::free_memory() const {
  if (choice_.device.device_class != BITNET_DEVICE_CPU) return 0;  // no backend tells it
  const uint64_t free = free_host_memory();
  // The system counts pages of mapped files as free, but every step reads these.
  const uint64_t mapped = aliased_bytes_ + (packed_head_ ? packed_head_->form.size() : 0);
  return free - std::min(free, mapped);
}

result<void> engine::upload(const progress& report) {
  const auto weights = model_.weights();
  std::vector<bitnet_tensor_desc> descs;
  uint64_t total = 0;
  for (const model::weight& w : weights) {
    descs.push_back(describe(w));
    total += w.data_bytes;
  }

  bitnet_error err = blank_error();
  bitnet_weights* raw = nullptr;
  bitnet_status status =
      table().weights_create(device_.get(), descs.data(), sizeof(bitnet_tensor_desc),
                             static_cast<uint32_t>(descs.size()), &raw, &err);
  if (auto ok = check(status, err, "making room for the weights"); !ok) return ok;
  weights_.reset(raw);
  if (auto ok = sane(bitnet_wrong_handle(raw), "weights_create"); !ok) return ok;

  const auto stopped = [] { return fail(BITNET_CANCELLED, "loading was stopped"); };
  uint64_t done = 0;
  for (uint32_t i = 0; i < weights.size(); ++i) {
    const model::weight& w = weights[i];
    bitnet_weight_plan plan{};
    plan.struct_size = sizeof plan;
    status = table().weight_plan(device_.get(), &descs[i], &plan, &err);
    if (auto ok = check(status, err, fmt::format("tensor {}", w.name)); !ok) return ok;
    if (auto ok = sane(bitnet_wrong_weight_plan(&plan), "weight_plan"); !ok)
      return pass_on(std::move(ok), fmt::format("tensor {}", w.name));

    if (can_alias(w, plan)) {
      status = table().weight_alias(raw, i, w.alias.data(), w.alias.size(), &err);
      if (auto ok = check(status, err, fmt::format("tensor {}", w.name)); !ok) return ok;
      aliased_bytes_ += w.alias.size();
    } else {
      auto ok = model_.stream_weight(
          i, [&](uint64_t offset, std::span<const std::byte> bytes) -> result<void> {
            const bitnet_status written =
                table().weight_write(raw, i, offset, bytes.data(), bytes.size(), &err);
            if (auto accepted = check(written, err, fmt::format("tensor {}", w.name)); !accepted)
              return accepted;
            if (report && !report(done + offset + bytes.size(), total)) return stopped();
            return {};
          });
      if (!ok) return ok;
    }
    status = table().weight_seal(raw, i, &err);
    if (auto ok = check(status, err, fmt::format("tensor {}", w.name)); !ok) return ok;
    done += w.data_bytes;
    if (report && !report(done, total)) return stopped();
  }
  return {};
}

// The output head is the largest matrix, and the one whose second form every answer needs.
result<void> engine::use_packed_head(const pack_cache& cache) {
  constexpr std::string_view name = BITNET_INTERFACE_PACKED_WEIGHTS;
  const auto* offered = table().query_interface(table().self, {name.data(), name.size()}, 1);
  if (offered == nullptr) return {};
  const auto& packed = *reinterpret_cast<const bitnet_packed_weights_v1*>(offered);
  if (auto ok = sane(bitnet_wrong_packed_interface(&packed), "query_interface"); !ok) return ok;
  const uint32_t index = model_.output();
  const std::string doing = fmt::format("tensor {}", model_.weights()[index].name);
  bitnet_error err = blank_error();
  bitnet_packed_info info{};
  info.struct_size = sizeof info;
  if (auto ok = check(packed.describe(weights_.get(), index, &info, &err), err, doing); !ok)
    return ok;
  const model::weight& head = model_.weights()[index];
  if (auto ok = sane(bitnet_wrong_packed_info(&info, static_cast<uint64_t>(head.ne[0]) *
                                                         static_cast<uint64_t>(head.ne[1])),
                     "describe");
      !ok)
    return pass_on(std::move(ok), doing);
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
    return check(packed.adopt(weights_.get(), index, packed_head_->form.data(), info.bytes, &err),
                 err, doing);
  }
  const void* made = nullptr;
  if (auto ok = check(packed.pack(weights_.get(), index, &made, &err), err, doing); !ok) return ok;
  if (auto ok = sane(bitnet_wrong_packed_form(made, info.alignment_bytes), "pack"); !ok)
    return pass_on(std::move(ok), doing);
  cache.keep(key, {static_cast<const std::byte*>(made), info.bytes});
  return {};
}

}  // namespace bitnet::session
