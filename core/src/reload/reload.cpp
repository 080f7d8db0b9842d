#include "reload/reload.hpp"

#include <fmt/core.h>

#include <cstring>
#include <utility>

#include "plugin/codes/text.hpp"
#include "plugin/loading/loaded_libraries.hpp"

namespace bitnet::reload {
namespace {

failure as_failure(const plugin::defect& d) {
  return {d.status, fmt::format("{}: {}; {}", plugin::code_text(d.code), d.reason, d.advice())};
}

// Whether it is the same device, as far as the old copy could know.
bool is_same_device(const bitnet_device_info& a, const bitnet_device_info& b) {
  return a.device_class == b.device_class && std::strcmp(a.uuid, b.uuid) == 0 &&
         std::strcmp(a.pci_address, b.pci_address) == 0;
}

result<select::choice> load(select::registry::renewal& fresh, const select::choice& old) {
  auto c = fresh.load(old.device_index);
  if (!c) return std::unexpected(as_failure(c.error()));
  if (!is_same_device(c->device, old.device))
    return fail(BITNET_UNAVAILABLE,
                fmt::format("{} is another device now: '{}' instead of '{}'; restart the program",
                            old.device_name(), plugin::printable_array(c->device.name),
                            plugin::printable_array(old.device.name)));
  return std::move(*c);
}

class procedure {
 public:
  procedure(const reload_scope& scope, const std::string& backend, const options& how)
      : scope_(scope), backend_(backend), how_(how) {}

  result<outcome> run() {
    auto fresh = inspect();
    if (!fresh) return std::unexpected(std::move(fresh.error()));
    if (!out_.reason.empty()) return std::move(out_);
    if (auto ok = admit(*fresh); !ok) return std::unexpected(std::move(ok.error()));
    if (auto ok = fresh->probe(); !ok) return std::unexpected(as_failure(ok.error()));
    if (auto ok = prepare(*fresh); !ok) return std::unexpected(std::move(ok.error()));
    if (auto ok = watch_texts(); !ok) return std::unexpected(std::move(ok.error()));
    commit(std::move(*fresh));
    return std::move(out_);
  }

 private:
  // Inspects the file as it is now. Sets out_.reason if there is nothing to do.
  result<select::registry::renewal> inspect() {
    const std::lock_guard lock(scope_.mutex);
    auto name = scope_.registry.meant_by(backend_);
    if (!name) return std::unexpected(as_failure(name.error()));
    out_.backend = backend_ = std::move(*name);
    auto fresh = scope_.registry.renew(backend_);
    if (!fresh) return std::unexpected(as_failure(fresh.error()));
    loaded_ = scope_.registry.loaded(backend_);
    if (scope_.selected && scope_.selected->backend == loaded_.backend)
      selected_ = *scope_.selected;
    out_.build_id = fresh->facts().build_id;
    out_.former_build_id = loaded_.build_id;
    out_.version = fresh->facts().note.version;
    out_.former_version = loaded_.version;
    if (!loaded_.backend) return std::move(*fresh);
    const auto& now = fresh->file();
    const auto& then = loaded_.backend->file();
    const bool same_file = now.device == then.device && now.inode == then.inode;
    if (same_file && (now.modified_ns != then.modified_ns || now.size_bytes != then.size_bytes))
      return fail(
          BITNET_REJECTED,
          "the file that is loaded was written over in place, so the old code is partly the "
          "new one's; install files by renaming them, and restart the program");
    if (how_.force) return std::move(*fresh);
    if (same_file)
      out_.reason = "it is the file that is loaded";
    else if (!out_.build_id.empty() && out_.build_id == out_.former_build_id)
      out_.reason = fmt::format("build id {} is what is loaded", out_.build_id);
    return std::move(*fresh);
  }

  // Fails unless two copies can be open: both are until the sessions have left the old one.
  [[nodiscard]] result<void> may_be_twice(const plugin::backend& copy, const char* which) const {
    if ((copy.life_flags() & BITNET_LIFE_HOT_SWAP) != 0) return {};
    return fail(BITNET_UNSUPPORTED, fmt::format("the {} copy does not declare that two of them may "
                                                "be open in one process; restart the program",
                                                which));
  }

  result<void> admit(const select::registry::renewal& fresh) {
    if (loaded_.backend)
      if (auto ok = may_be_twice(*loaded_.backend, "loaded"); !ok) return ok;
    if (const uint32_t old = scope_.copies.old_copies(backend_); old >= how_.most_old_copies)
      return fail(
          BITNET_UNAVAILABLE,
          fmt::format(
              "{} replaced copies of it are still in memory, at most {} expected; close the "
              "sessions that are on them, reload with migrate or recompute, or restart the program",
              old, how_.most_old_copies));
    out_.stale = plugin::stale_libraries(fresh.facts());
    if (!out_.stale.empty() && !how_.accept_stale)
      return fail(BITNET_UNAVAILABLE,
                  fmt::format("libraries that it needs were replaced on disk, and the program "
                              "still has the old ones: {}; restart the program",
                              plugin::join(out_.stale, ", ")));
    return {};
  }

  // Makes the engines of the old copy on the new one, and compares the two.
  result<void> prepare(select::registry::renewal& fresh) {
    if (!loaded_.backend) return {};
    for (engine::model_engines* m : scope_.models) {
      bool counted = false;
      for (const engine::engine_ptr& old : m->of(loaded_.backend.get())) {
        const auto renew = [&](const select::choice& now) -> result<select::choice> {
          auto c = load(fresh, now);
          if (!c) return c;
          if (auto ok = may_be_twice(*c->backend, "new"); !ok)
            return std::unexpected(std::move(ok.error()));
          if (!loaded_anew_) loaded_anew_ = *c;
          return c;
        };
        auto made = m->make_like(*old, loaded_.backend.get(), renew);
        if (!made) return std::unexpected(std::move(made.error()));
        auto same = compare(old, *made, how_.prompt, how_.tolerance);
        if (!same) return std::unexpected(std::move(same.error()));
        if (same->difference >= out_.verified.difference) out_.verified = *same;
        replacements_.push_back({m, old, std::move(*made)});
        out_.models += counted ? 0 : 1;
        counted = true;
      }
    }
    if (selected_) {
      auto c = load(fresh, *selected_);
      if (!c) return std::unexpected(std::move(c.error()));
      if (auto ok = may_be_twice(*c->backend, "new"); !ok) return ok;
      taken_ = std::move(*c);
    }
    if (!taken_) taken_ = loaded_anew_;
    return {};
  }

  // Compares both copies on live texts, if there is a canary.
  result<void> watch_texts() {
    if (how_.canary.rows == 0 || !loaded_.backend) return {};
    auto seen = watch(replacements_, how_.canary, how_.tolerance);
    if (!seen) return std::unexpected(std::move(seen.error()));
    out_.watched = *seen;
    return {};
  }

  void commit(select::registry::renewal fresh) {
    {
      const std::lock_guard lock(scope_.mutex);
      scope_.registry.adopt(std::move(fresh), scope_.report);
    }
    out_.changed = true;
    if (selected_) scope_.selected = taken_;
    if (taken_) out_.copy_number = scope_.copies.serve(*taken_);
    const std::string why = fmt::format("reload of {}", backend_);
    for (watched_engine& r : replacements_) {
      const auto moved =
          r.model->replace(r.old, r.fresh, how_.sessions, why, [&](const std::string& reason) {
            scope_.note(fmt::format("a session stays on the old copy: {}", reason));
          });
      out_.sessions.offered += moved.offered;
      out_.sessions.staying += moved.staying;
    }
  }

  const reload_scope& scope_;
  std::string backend_;
  const options& how_;
  outcome out_;
  select::registry::loaded_copy loaded_;
  std::optional<select::choice> selected_, taken_;
  std::optional<select::choice> loaded_anew_;  // the choice of the first new engine
  std::vector<watched_engine> replacements_;
};

}  // namespace

result<outcome> run(const reload_scope& scope, const std::string& backend, const options& how) {
  auto done = procedure(scope, backend, how).run();
  if (!done) {
    scope.copies.reject(backend, "", done.error().message);
    return pass_on(std::move(done),
                   fmt::format("reload of {} was rejected, nothing changed", backend));
  }
  return done;
}

}  // namespace bitnet::reload
