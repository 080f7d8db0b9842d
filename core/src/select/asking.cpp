// Decides which backends are probed, and for which of them a start waits.
//
// Known     Cached answers are used; no probe is started.
// Needed    The processor's own backends, which answer at once, and all that fit if no other would
//           do: normal priority.
// Awaited   Backends that could win: idle priority, and a start waits --probe-wait for them.
// Behind    The same, if known to be slow, or if they showed only software devices before something
//           on this machine changed: no start waits.
// None      Backends that cannot win are not probed.

#include <algorithm>
#include <chrono>
#include <utility>

#include "select/contents.hpp"

namespace bitnet::select {
namespace {

// A backend for processors, by its manifest.
bool is_native(const candidate& c) {
  return c.manifest_class() == BITNET_DEVICE_CPU;
}

// Index of the first wish that may mean it; the number of wishes if none does.
std::size_t first_wish(const std::vector<wish>& wishes, const candidate& c) {
  const auto at = std::ranges::find_if(wishes, [&](const wish& w) { return matches(w, c); });
  return static_cast<std::size_t>(at - wishes.begin());
}

}  // namespace

// The position of a device in the order of a request.
struct registry::contents::preference {
  std::size_t wish = 0;     // index; the first is preferred
  uint32_t class_rank = 0;  // class_order(); higher is better
  bool software = false;

  [[nodiscard]] bool is_before(const preference& other) const {
    if (wish != other.wish) return wish < other.wish;
    if (class_rank != other.class_rank) return class_rank > other.class_rank;
    return software < other.software;
  }
};

// Takes the answers that have come; returns true if none is missing.
bool registry::contents::collect() {
  std::vector<probe::ticket> still;
  for (candidate& c : candidates) {
    c.collect(probes);
    if (const auto& t = c.running(); t) still.push_back(*t);
  }
  const std::scoped_lock lock(mutex);
  pending = std::move(still);
  return pending.empty();
}

// The best device that is usable, or will surely be: the processor's own backend has no other.
std::optional<registry::contents::preference> registry::contents::best_preference(
    const std::vector<wish>& wishes) {
  std::optional<preference> best;
  const auto consider = [&](const preference& p) {
    if (!best || p.is_before(*best)) best = p;
  };
  for (std::size_t k = 0; k < wishes.size(); ++k)
    if (const auto fitting = options(wishes[k]); !fitting.empty()) {
      const score s = facts_of(fitting.front());
      consider({k, class_order(s.device_class), s.software});
    }
  for (const candidate& c : candidates)
    if (const std::size_t k = first_wish(wishes, c);
        k < wishes.size() && is_native(c) && (c.is_unasked() || c.running()))
      consider({k, class_order(BITNET_DEVICE_CPU), false});
  return best;
}

// The urgency of a backend without an answer, given the best known device.
registry::contents::urgency registry::contents::urgency_of(candidate& c,
                                                           const std::vector<wish>& wishes,
                                                           const preference& best) {
  const auto expected = c.expect(probes);
  const std::size_t k = first_wish(wishes, c);
  const wish& meant = wishes[k];
  bool may_win = false;
  for (const uint32_t one : expected.classes) {
    const preference p{k, class_order(one), one == BITNET_DEVICE_CPU && !is_native(c)};
    const bool fits = meant.kind != wish::kind_type::device_class || meant.device_class == one;
    // A named backend is always wanted; in a class a tie may turn out to be better.
    may_win = may_win || (fits && !best.is_before(p) && (p.is_before(best) || !p.software));
  }
  if (may_win) return expected.slow ? urgency::behind : urgency::awaited;
  // The machine has changed since it showed nothing better, so it may show that now.
  return expected.known && k <= best.wish && probes.shows_devices() ? urgency::behind
                                                                    : urgency::none;
}

// Starts the worthwhile probes; returns those to wait for.
std::vector<probe::ticket> registry::contents::start_for(const std::vector<wish>& wishes) {
  std::vector<probe::ticket> awaited;
  const auto best = best_preference(wishes);
  for (candidate& c : candidates) {
    if (!matches_any(wishes, c) || (!c.is_unasked() && !c.running())) continue;
    const bool needed = is_native(c) || !best;
    const urgency how = needed ? urgency::awaited : urgency_of(c, wishes, *best);
    if (how != urgency::none) c.start_probe(probes, *host, needed);
    if (const auto& t = c.running(); t && how == urgency::awaited) awaited.push_back(*t);
  }
  return awaited;
}

std::vector<std::string> registry::contents::unanswered(const std::vector<wish>& wishes) const {
  std::vector<std::string> out;
  for (const candidate& c : candidates)
    if (c.running() && matches_any(wishes, c)) out.push_back(c.name());
  return out;
}

// Probes what the request can use, and waits a while; if `patient`, until one is usable, all have
// answered or `end` has come.
void registry::contents::ask_for(const std::vector<wish>& wishes, bool patient,
                                 clock::time_point end) {
  const auto soon =
      std::min(end, clock::now() + std::chrono::milliseconds(probes.choices().wait_ms));
  for (candidate& c : candidates)
    if (matches_any(wishes, c)) c.recall(probes, *host);
  collect();
  const auto awaited = start_for(wishes);
  probes.wait(awaited, soon);
  collect();
  while (patient && !is_usable(wishes)) {
    for (candidate& c : candidates)
      if (matches_any(wishes, c)) c.start_probe(probes, *host, true);
    if (collect()) return;
    if (!probes.wait_for_one(pending, end)) return;
    collect();
  }
}

// Probes all; slow ones continue in the background.
void registry::contents::ask_all() {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(probes.choices().wait_ms);
  for (candidate& c : candidates) c.start_probe(probes, *host, is_native(c));
  if (collect()) return;
  probes.wait(pending, end);
  collect();
}

// The choice is made: probes that still run get the lowest priority.
void registry::contents::calm() {
  for (const candidate& c : candidates)
    if (const auto& t = c.running(); t) probes.calm(*t);
}

}  // namespace bitnet::select
