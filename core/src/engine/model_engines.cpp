#include "engine/model_engines.hpp"

#include <algorithm>
#include <new>

namespace bitnet::engine {

engine_ptr model_engines::find(const select::choice& c) const {
  const std::lock_guard lock(mutex_);
  for (const auto& known : engines_)
    if (auto e = known.lock();
        e && e->choice().backend == c.backend && e->choice().device_index == c.device_index)
      return e;
  return nullptr;
}

result<engine_ptr> model_engines::make(placement where, const engine::progress& report) {
  auto made = engine::open(std::move(where), model_, report, cache_ ? &*cache_ : nullptr, budget_,
                           tune_now_.exchange(false));
  if (!made) return std::unexpected(std::move(made.error()));
  return engine_ptr(std::move(*made));
}

result<engine_ptr> model_engines::make_like(const engine& old, const plugin::backend* copy,
                                            const renewing& renew) {
  placement where;
  where.main = old.main_index();
  for (const auto& p : old.parts()) {
    result<select::choice> c = p->choice();
    if (c->backend.get() == copy) c = renew(*c);
    if (!c) return std::unexpected(std::move(c.error()));
    auto opened = part::open(std::move(*c), model_, copies_);
    if (!opened) return std::unexpected(std::move(opened.error()));
    (*opened)->take(p->what());
    where.parts.push_back(std::move(*opened));
  }
  return make(std::move(where), {});
}

result<engine_ptr> model_engines::on(const select::choice& c, const engine::progress& report) {
  const std::lock_guard one(making_);
  if (auto known = find(c)) return known;
  auto where = place_(c);
  if (!where) return std::unexpected(std::move(where.error()));
  // The whole model may have been placed on another device, which has an engine.
  if (auto known = find(where->parts[where->main]->choice())) return known;
  auto made = make(std::move(*where), report);
  if (!made) return made;
  const std::lock_guard lock(mutex_);
  std::erase_if(engines_, [](const auto& known) { return known.expired(); });
  engines_.push_back(*made);
  return made;
}

engine_ptr model_engines::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

void model_engines::set_current(engine_ptr e) {
  const std::lock_guard lock(mutex_);
  current_.swap(e);
}

std::vector<engine_ptr> model_engines::of(const plugin::backend* copy) const {
  const std::lock_guard lock(mutex_);
  std::vector<engine_ptr> out;
  for (const auto& known : engines_)
    if (auto e = known.lock(); e && e->is_on(copy)) out.push_back(std::move(e));
  return out;
}

void model_engines::forget(const engine& lost) {
  const std::lock_guard lock(mutex_);
  std::erase_if(engines_, [&](const auto& known) {
    const auto e = known.lock();
    return !e || e.get() == &lost;
  });
}

namespace {

result<void> offer(tenant& t, const engine_ptr& to, moving how, const std::string& why) try {
  return t.offer(to, how, why);
} catch (const std::bad_alloc&) {
  return fail(BITNET_OUT_OF_MEMORY,
              "there is no memory for a second set of steps and KV blocks; close sessions or use a "
              "shorter context");
}

}  // namespace

model_engines::moved model_engines::replace(
    const engine_ptr& old, const engine_ptr& fresh, std::optional<moving> how,
    const std::string& why, const std::function<void(const std::string&)>& on_failure) {
  std::unique_lock lock(mutex_);
  std::erase_if(engines_, [](const auto& known) { return known.expired(); });
  engines_.push_back(fresh);
  if (current_ == old) current_ = fresh;
  moved out;
  for (tenant* t : std::vector<tenant*>(tenants_)) {
    if (std::ranges::find(tenants_, t) == tenants_.end()) continue;  // it left meanwhile
    const engine_ptr at = t->headed_for();
    if (at == fresh || at->choice().device_name() != fresh->choice().device_name()) continue;
    if (!how) {
      ++out.staying;
      continue;
    }
    // Without the lock: an offer compiles programs, and no other tenant may wait for that.
    offering_ = t;
    lock.unlock();
    const auto ok = offer(*t, fresh, *how, why);
    if (!ok) on_failure(ok.error().message);
    lock.lock();
    offering_ = nullptr;
    offered_.notify_all();
    ++(ok ? out.offered : out.staying);
  }
  return out;
}

bool model_engines::join(tenant& t, const engine_ptr& on) {
  const std::lock_guard lock(mutex_);
  if (current_ != on) return false;
  tenants_.push_back(&t);
  return true;
}

void model_engines::for_each(const std::function<void(tenant&)>& what) const {
  const std::lock_guard lock(mutex_);
  for (tenant* t : tenants_) what(*t);
}

void model_engines::leave(const tenant& t) {
  std::unique_lock lock(mutex_);
  offered_.wait(lock, [&] { return offering_ != &t; });
  std::erase(tenants_, &t);
}

}  // namespace bitnet::engine
