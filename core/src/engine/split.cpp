#include "engine/split.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/wording.hpp"
#include "bitnet/abi/host.h"

namespace bitnet::engine {
namespace {

bool is_same(const select::choice& a, const select::choice& b) {
  return a.backend == b.backend && a.device_index == b.device_index;
}

// The memory that a device lacks for its section. An empty `device`: none lacks any.
struct shortfall {
  std::string device;
  part::demand needs;
  uint64_t room = 0;
  bool of_host = false;

  [[nodiscard]] bool any() const { return !device.empty(); }
  [[nodiscard]] std::string in_words() const {
    return fmt::format(
        "{} needs {} bytes ({} of weights, {} of steps, {} of keys, values and "
        "states) and has {} free: {} are missing",
        device, needs.all(), needs.weights, needs.steps, needs.kv, room, needs.all() - room);
  }
};

class splitter {
 public:
  splitter(const model::model& m, const split_options& how, bool copies, const split_access& by)
      : model_(m), how_(how), copies_(copies), by_(by), n_layers_(m.shape().n_layers) {}

  result<placement> run(const select::choice& wanted, const kv_budget& budget) {
    plan_for(wanted, budget);
    if (auto ok = open_devices(wanted); !ok) return std::unexpected(std::move(ok.error()));
    if (how_.n_layers) return exactly(*how_.n_layers);
    return as_many_as_fit();
  }

 private:
  // The memory that a session will take. A session that is impossible is rejected when it is
  // opened.
  void plan_for(const select::choice& wanted, const kv_budget& budget) {
    planned_ = how_.planned;
    uint64_t shared = budget.bytes;
    const model::hyperparameters& shape = model_.shape();
    const auto limits_now = [&] {
      return limits_of(shape, planned_, wanted.device.attention_flags, shared);
    };
    auto most = check_kv_types(wanted, shape, planned_) ? limits_now() : result<limits>(limits{});
    if (!most || most->n_context == 0) {
      planned_ = {.n_context = 1, .n_batch = 1};
      shared = 0;
      most = limits_now();
    }
    most_ = most.value_or(limits{});
    pool_ = pool_of(shape, planned_, most_, shared);
  }

  result<void> add(result<select::choice> chosen) {
    if (!chosen) return std::unexpected(std::move(chosen.error()));
    auto opened = part::open(std::move(*chosen), model_, copies_);
    if (!opened) return std::unexpected(std::move(opened.error()));
    devices_.push_back(std::move(*opened));
    return {};
  }

  // Opens each device whose share is not 0, in the order of `shares`.
  result<void> open_devices(const select::choice& wanted) {
    if (how_.shares.empty()) {
      shares_ = {1};
      return add(wanted);
    }
    for (uint32_t i = 0; i < how_.shares.size(); ++i) {
      if (how_.shares[i] == 0) continue;
      auto chosen = by_.of_backend(i);
      if (!chosen)
        return fail(BITNET_UNAVAILABLE,
                    fmt::format("{} has {} shares, and backend {} has no device {} that can be "
                                "used; {} to see what there is, and give 0 to devices that get "
                                "nothing",
                                say(word::tensor_split), how_.shares.size(), wanted.backend->name(),
                                i, say(word::probe_all)));
      if (auto ok = add(std::move(chosen)); !ok) return ok;
      shares_.push_back(how_.shares[i]);
    }
    return {};
  }

  result<void> open_host() {
    if (cpu_) return {};
    auto chosen = by_.cpu();
    if (!chosen) return std::unexpected(std::move(chosen.error()));
    auto opened = part::open(std::move(*chosen), model_, copies_);
    if (!opened) return std::unexpected(std::move(opened.error()));
    cpu_ = std::move(*opened);
    return {};
  }

  // Cuts sections for the last `n` layers on the devices; n_layers_ + 1: the embedding, too. The
  // CPU gets the other layers.
  void cut(uint32_t n) {
    const uint32_t first = n > n_layers_ ? 0 : n_layers_ - n;
    const std::vector<uint32_t> at = share_out(first, n_layers_, shares_);
    used_.clear();
    for (std::size_t i = 0; i < devices_.size(); ++i)
      if (at[i] != at[i + 1]) used_.push_back(i);
    for (const std::size_t i : used_)
      devices_[i]->take({.first = at[i],
                         .last = at[i + 1],
                         .embedding = i == used_.front() && n > n_layers_,
                         .lm_head = i == used_.back()});
    if (cpu_ && n <= n_layers_)
      cpu_->take({.first = 0, .last = first, .embedding = true, .lm_head = false});
  }

  // The shortfall of the first device without room for its section, as far as devices report it.
  result<shortfall> missing() const {
    for (const std::size_t i : used_) {
      const part& p = *devices_[i];
      auto needs = p.needs(planned_, most_, pool_);
      if (!needs) return std::unexpected(std::move(needs.error()));
      // Keys and values that were not written yet take no memory of the CPU.
      if (p.on_host()) needs->kv = 0;
      const auto room = p.room();
      if (room && needs->all() > *room)
        return shortfall{p.choice().device_name(), *needs, *room, p.on_host()};
    }
    return shortfall{};
  }

  [[nodiscard]] static std::unexpected<failure> reject(const shortfall& s,
                                                       const std::string& advice) {
    return fail(s.of_host ? BITNET_OUT_OF_MEMORY : BITNET_OUT_OF_DEVICE_MEMORY,
                fmt::format("the model does not fit: {}; {}", s.in_words(), advice));
  }

  result<placement> exactly(uint32_t n) {
    if (n == 0 && by_.is_required)
      return fail(BITNET_INVALID_ARGUMENT,
                  fmt::format("{} is required, and {} 0 leaves it nothing; require the cpu, or "
                              "give it layers",
                              devices_.front()->choice().device_name(), say(word::n_gpu_layers)));
    if (n == 0) return on_cpu_alone();
    if (n <= n_layers_) {
      if (auto ok = open_host(); !ok)
        return pass_on(std::move(ok), fmt::format("{} layers are left for the cpu",
                                                  n_layers_ - std::min(n, n_layers_)));
      if (is_same(cpu_->choice(), devices_.front()->choice())) {
        n = n_layers_ + 1;
        by_.log(BITNET_LOG_INFO,
                fmt::format("{} cuts nothing: {} has the other layers, too",
                            say(word::n_gpu_layers), cpu_->choice().device_name()));
      }
    }
    cut(n);
    auto lacks = missing();
    if (!lacks) return std::unexpected(std::move(lacks.error()));
    if (lacks->any() && !lacks->of_host)
      return reject(*lacks, fmt::format("use a smaller {}, fewer {}, or auto", say(word::n_context),
                                        say(word::n_gpu_layers)));
    return done(n, *lacks);
  }

  result<placement> as_many_as_fit() {
    cut(n_layers_ + 1);
    auto whole = missing();
    if (!whole) return std::unexpected(std::move(whole.error()));
    if (!whole->any()) return done(n_layers_ + 1, {});
    if (how_.whole_only)
      return reject(*whole, fmt::format("use a smaller {}, {} layer, or {}", say(word::n_context),
                                        say(word::split_mode), say(word::request_another)));
    if (whole->of_host) return done(n_layers_ + 1, *whole);
    if (auto ok = open_host(); !ok)
      return reject(*whole, fmt::format("and the layers that do not fit have no other place: {}",
                                        ok.error().message));
    shortfall last = *whole;
    for (uint32_t n = n_layers_; n > 0; --n) {
      cut(n);
      auto lacks = missing();
      if (!lacks) return std::unexpected(std::move(lacks.error()));
      if (!lacks->any()) {
        by_.log(BITNET_LOG_WARN,
                fmt::format("{}; so {} of {} layers are there, the others on {}", whole->in_words(),
                            n, n_layers_, cpu_->choice().device_name()));
        return done(n, {});
      }
      last = *lacks;
    }
    if (!by_.may_leave)
      return reject(last, "not even its last layer does; " + say(word::request_another));
    by_.log(BITNET_LOG_WARN, fmt::format("not one layer fits: {}; all are on {}", last.in_words(),
                                         cpu_->choice().device_name()));
    return on_cpu_alone();
  }

  result<placement> on_cpu_alone() {
    if (auto ok = open_host(); !ok) return std::unexpected(std::move(ok.error()));
    cpu_->take(model_.shape().whole());
    placement out;
    out.parts.push_back(std::move(cpu_));
    return out;
  }

  result<placement> done(uint32_t n, const shortfall& of_host) {
    if (of_host.any())
      by_.log(BITNET_LOG_WARN,
              fmt::format("{}; the system may swap, or end the program", of_host.in_words()));
    placement out;
    if (n <= n_layers_) out.parts.push_back(std::move(cpu_));
    out.main = out.parts.size();
    for (const std::size_t i : used_) out.parts.push_back(std::move(devices_[i]));
    return out;
  }

  const model::model& model_;
  const split_options& how_;
  const bool copies_;
  const split_access& by_;
  const uint32_t n_layers_;
  session_options planned_;
  limits most_;
  bitnet_kv_config pool_{};
  std::vector<std::unique_ptr<part>> devices_;
  std::vector<float> shares_;      // of devices_
  std::vector<std::size_t> used_;  // devices that have layers
  std::unique_ptr<part> cpu_;      // once it is needed
};

}  // namespace

result<void> check_shares(const std::vector<float>& shares) {
  const auto bad = std::ranges::find_if(shares, [](float x) { return !std::isfinite(x) || x < 0; });
  if (bad != shares.end())
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("share {} of {} is {}; expected a number from 0 on",
                            bad - shares.begin(), say(word::tensor_split), *bad));
  if (shares.size() > most_split_devices)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("{} has {} shares; expected at most {}", say(word::tensor_split),
                            shares.size(), most_split_devices));
  if (!shares.empty() && std::ranges::all_of(shares, [](float x) { return x == 0; }))
    return fail(
        BITNET_INVALID_ARGUMENT,
        fmt::format("all shares of {} are 0; expected one above 0 for each device that gets layers",
                    say(word::tensor_split)));
  return {};
}

std::vector<uint32_t> share_out(uint32_t first, uint32_t last, const std::vector<float>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<uint32_t> at{first};
  double before = 0;
  for (const float share : shares) {
    before += share;
    at.push_back(first + static_cast<uint32_t>(std::lround((last - first) * (before / sum))));
  }
  at.back() = last;
  return at;
}

result<placement> split(const select::choice& wanted, const model::model& m,
                        const split_options& how, const kv_budget& budget, bool copies,
                        const split_access& by) {
  return splitter(m, how, copies, by).run(wanted, budget);
}

}  // namespace bitnet::engine
