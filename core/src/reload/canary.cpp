#include "reload/canary.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "generate/row_listener.hpp"
#include "shadow/shadow_run.hpp"

namespace bitnet::reload {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds between_looks{5};
constexpr uint32_t most_places = 16;

// Whether one shadow can compute the rows of both.
bool is_alike(const engine::session_options& a, const engine::session_options& b) {
  return a.n_context == b.n_context && a.dtype_k == b.dtype_k && a.dtype_v == b.dtype_v &&
         a.window == b.window && a.window_keep == b.window_keep && a.precisions == b.precisions &&
         a.deterministic == b.deterministic;
}

// The shadows of one engine, one for each set of session options.
class shadowed_engine {
 public:
  explicit shadowed_engine(const watched_engine& on) : on_(on) {}
  ~shadowed_engine() {
    for (const auto& one : lent_)
      on_.model->for_each([&](engine::tenant& t) { t.take_back_rows(one); });
    for (const auto& one : shadows_) one.run->end();
  }
  shadowed_engine(const shadowed_engine&) = delete;
  shadowed_engine& operator=(const shadowed_engine&) = delete;

  result<void> begin(const canary_options& how) {
    std::vector<engine::session_options> kinds;
    on_.model->for_each([&](engine::tenant& t) {
      const auto of = rows_of(t);
      const auto alike = [&](const auto& known) { return is_alike(known, *of); };
      if (of && std::ranges::none_of(kinds, alike)) kinds.push_back(*of);
    });
    for (engine::session_options& of : kinds) {
      shadow::options o;
      o.share = 1;
      o.waiting = std::min(how.rows, most_places);
      o.sequences = of;
      o.cancelled = how.make_flag();
      o.threads = how.threads;
      o.cpus = how.cpus;
      auto run = shadow::shadow_run::open(on_.fresh, std::move(o));
      if (!run) return pass_on(std::move(run), "the new copy cannot compute beside the old one");
      shadows_.push_back({std::move(of), std::move(*run)});
    }
    on_.model->for_each([&](engine::tenant& t) { lend(t); });
    return {};
  }
  [[nodiscard]] bool has_rows() const { return !lent_.empty(); }

  // Adds the results so far. Fails if a row is out of bounds or a shadow has ended.
  result<void> look(canary_result& sum, double tolerance) const {
    for (const auto& [of, run] : shadows_) {
      const auto f = run->describe();
      const shadow::totals& t = f.compared;
      sum.rows += t.rows;
      sum.same_bytes += t.same_bytes;
      sum.same_top += t.same_top;
      sum.max_kl = std::max(sum.max_kl, t.max_kl);
      sum.difference = std::max(sum.difference, t.max_relative);
      if (t.max_relative > tolerance || t.without_kl != 0)
        return fail(
            BITNET_REJECTED,
            fmt::format("the new copy computes other logits for live texts: they differ by {} of "
                        "the largest one, at most {} expected, and {} of {} rows are no numbers",
                        t.max_relative, tolerance, t.without_kl, t.rows));
      if (f.why) return std::unexpected(*f.why);
    }
    return {};
  }

 private:
  // nullopt: it has no rows that the old copy computes.
  [[nodiscard]] std::optional<engine::session_options> rows_of(const engine::tenant& t) const {
    return t.headed_for() == on_.old ? t.sequences() : std::nullopt;
  }

  void lend(engine::tenant& t) {
    const auto of = rows_of(t);
    if (!of) return;
    const auto mine =
        std::ranges::find_if(shadows_, [&](const auto& one) { return is_alike(one.of, *of); });
    if (mine == shadows_.end()) return;
    auto l = mine->run->attach();
    if (t.lend_rows(l)) lent_.push_back(std::move(l));
  }

  struct of_kind {
    engine::session_options of;
    std::shared_ptr<shadow::shadow_run> run;
  };
  const watched_engine& on_;
  std::vector<of_kind> shadows_;
  std::vector<std::shared_ptr<generate::row_listener>> lent_;
};

}  // namespace

result<canary_result> watch(std::span<const watched_engine> engines, const canary_options& how,
                            double tolerance) {
  std::vector<std::unique_ptr<shadowed_engine>> shadowed;
  bool has_rows = false;
  for (const watched_engine& e : engines) {
    shadowed.push_back(std::make_unique<shadowed_engine>(e));
    if (auto ok = shadowed.back()->begin(how); !ok) return std::unexpected(std::move(ok.error()));
    has_rows |= shadowed.back()->has_rows();
  }
  if (!has_rows)
    return fail(BITNET_UNAVAILABLE,
                fmt::format("no session or scheduler without a shadow of its own is on the loaded "
                            "copy, so that no row of the {} comes; ask for 0 rows",
                            how.rows));
  const auto end = clock::now() + how.patience;
  while (true) {
    canary_result out;
    for (const auto& one : shadowed)
      if (auto ok = one->look(out, tolerance); !ok) return std::unexpected(std::move(ok.error()));
    if (out.rows >= how.rows) return out;
    if (clock::now() >= end)
      return fail(BITNET_TIMEOUT,
                  fmt::format("{} rows of live texts were compared in {} ms, {} expected; reload "
                              "while texts are generated, or ask for fewer rows",
                              out.rows, how.patience.count(), how.rows));
    std::this_thread::sleep_for(between_looks);
  }
}

}  // namespace bitnet::reload
