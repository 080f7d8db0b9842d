#pragma once
// The engines of one model: the current one for new sessions, and those that sessions still use.
//
// Owner   an engine lives as long as it is current or a session is on it; the model outlives all.
// Threads any.

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/engine.hpp"
#include "engine/pack_cache.hpp"
#include "engine/tenant.hpp"
#include "model/model.hpp"
#include "select/selection.hpp"

namespace bitnet::engine {

using engine_ptr = std::shared_ptr<engine>;

class model_engines {
 public:
  // Decides which device gets which part of the model when the caller requests a device.
  using placing = std::function<result<placement>(const select::choice&)>;

  model_engines(const model::model& m, std::optional<pack_cache> cache, const kv_budget& budget,
                placing place, bool tune_now = false, bool copies = false)
      : model_(m),
        cache_(std::move(cache)),
        budget_(budget),
        place_(std::move(place)),
        tune_now_(tune_now),
        copies_(copies) {}

  // Returns an engine on the chosen device: one that sessions already use, else a new one.
  result<engine_ptr> on(const select::choice& c, const engine::progress& report = {});
  // Makes an engine with the sections of `old`. Its parts on `copy` move to a fresh copy of the
  // backend: `renew` returns the new choice for an old one. on() does not return it until
  // replace().
  using renewing = std::function<result<select::choice>(const select::choice&)>;
  result<engine_ptr> make_like(const engine& old, const plugin::backend* copy,
                               const renewing& renew);

  [[nodiscard]] engine_ptr current() const;
  void set_current(engine_ptr e);
  // The engines in use that have a part on this copy of a backend.
  [[nodiscard]] std::vector<engine_ptr> of(const plugin::backend* copy) const;
  // on() must not return it again.
  void forget(const engine& lost);

  // New tenants get `fresh` instead of `old`. Tenants on the device of `fresh`, in whatever copy of
  // the backend, are offered the change if `how` is set; `on_failure` is called for each that
  // cannot take it, with the reason. One call at a time.
  struct moved {
    uint32_t offered = 0, staying = 0;
  };
  moved replace(const engine_ptr& old, const engine_ptr& fresh, std::optional<moving> how,
                const std::string& why, const std::function<void(const std::string&)>& on_failure);

  // Opens a tenant by `make`, result<std::unique_ptr<...>>(engine_ptr). If another engine has
  // become current meanwhile, opens it again there. Until leave(), replace() offers changes to the
  // tenant.
  template <class Make>
  auto open(const Make& make) -> decltype(make(engine_ptr())) {
    for (;;) {
      const engine_ptr before = current();
      auto made = make(before);
      if (!made || join(**made, before)) return made;
    }
  }
  // Calls `what`, which must not block, for each tenant; none leaves meanwhile.
  void for_each(const std::function<void(tenant&)>& what) const;
  // Waits while the tenant is offered a change.
  void leave(const tenant& t);

 private:
  [[nodiscard]] engine_ptr find(const select::choice& c) const;
  // False, with nothing changed, if another engine than `on` is current by now.
  bool join(tenant& t, const engine_ptr& on);
  result<engine_ptr> make(placement where, const engine::progress& report);

  const model::model& model_;
  const std::optional<pack_cache> cache_;
  const kv_budget budget_;
  const placing place_;
  std::atomic<bool> tune_now_;  // by the first engine that is made
  const bool copies_;           // every engine copies the weights
  std::mutex making_;           // one engine at a time, so that two callers share one
  mutable std::mutex mutex_;    // guards the members below
  engine_ptr current_;
  std::vector<std::weak_ptr<engine>> engines_;
  std::vector<tenant*> tenants_;
  tenant* offering_ = nullptr;  // the one that replace() offers a change now
  std::condition_variable offered_;
};

}  // namespace bitnet::engine
