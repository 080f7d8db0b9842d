#include "engine/engine.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "engine/kv_store.hpp"

namespace bitnet::engine {

engine::engine(placement where, const model::model& m, const kv_budget& budget)
    : model_(m),
      budget_(budget),
      parts_(std::move(where.parts)),
      main_(where.main),
      failed_part_(where.main) {}

result<std::unique_ptr<engine>> engine::open(placement where, const model::model& m,
                                             const progress& report, const pack_cache* cache,
                                             const kv_budget& budget, bool tune_now) {
  std::unique_ptr<engine> e(new engine(std::move(where), m, budget));
  auto ready = e->load(report, cache, tune_now);
  // Checked first: a failure because of zeros in place of missing bytes is not the backend's fault.
  if (auto ok = m.check_file(); !ok) return std::unexpected(std::move(ok.error()));
  if (!ready) return std::unexpected(std::move(ready.error()));
  return e;
}

result<void> engine::load(const progress& report, const pack_cache* cache, bool tune_now) {
  auto scales = model_.hold_scales();
  if (!scales) return std::unexpected(std::move(scales.error()));
  uint64_t total = 0, before = 0;
  for (const auto& p : parts_) {
    const auto who = fmt::format("backend {}", p->backend_name());
    if (auto ok = p->check_support(); !ok) return pass_on(std::move(ok), who);
    total += p->weight_bytes();
  }
  const auto of_all = [&](uint64_t done, uint64_t) { return report(before + done, total); };
  for (const auto& p : parts_) {
    const auto who = fmt::format("backend {}", p->backend_name());
    // The last part releases the scales as soon as it can.
    auto held = p == parts_.back() ? std::move(*scales) : *scales;
    if (auto ok = p->load(report ? progress(of_all) : progress(), cache, tune_now, std::move(held));
        !ok)
      return pass_on(std::move(ok), who);
    before += p->weight_bytes();
  }
  return {};
}

bool engine::is_on(const plugin::backend* copy) const {
  return std::ranges::any_of(parts_,
                             [&](const auto& p) { return p->choice().backend.get() == copy; });
}

result<void> engine::check_read() const {
  if (auto ok = model_.check_read(); !ok) return ok;
  for (const auto& p : parts_)
    if (auto ok = p->check_read(); !ok) return ok;
  return {};
}

uint64_t engine::free_memory() const {
  // With several parts, one runs out of room first; which one depends on where the model is cut.
  return parts_.size() == 1 ? main().free_memory() : 0;
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

}  // namespace bitnet::engine
