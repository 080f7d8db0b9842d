#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "base/environment.hpp"
#include "bitnet/abi/info.h"
#include "plugin/text.hpp"
#include "select/candidate.hpp"
#include "select/ranking.hpp"
#include "select/request.hpp"
#include "select/selection.hpp"

namespace bitnet::select {
namespace {

using plugin::code;
using plugin::join;

// A device that could be chosen.
struct option {
  candidate* from = nullptr;
  uint32_t index = 0;

  [[nodiscard]] const bitnet_device_info& info() const { return from->devices()[index].info; }
  [[nodiscard]] std::string name() const { return from->name() + ":" + std::to_string(index); }
};

score facts_of(const option& o) {
  return score_of(o.from->devices()[o.index], o.from->priority());
}

// Name and index make the order total.
bool ranks_higher(const option& a, const option& b) {
  const auto mine = order_of(facts_of(a)), theirs = order_of(facts_of(b));
  if (mine != theirs) return mine > theirs;
  return std::tuple(a.from->name(), a.index) < std::tuple(b.from->name(), b.index);
}

// What another backend shows as well, and shows better; "" if nothing does. `ranked` best first.
std::string shown_better(const std::vector<option>& ranked, const option& o) {
  for (const option& better : ranked) {
    if (better.from == o.from && better.index == o.index) break;
    if (better.from != o.from && is_same_hardware(better.info(), o.info())) return better.name();
  }
  return "";
}

bool matches(const wish& w, const candidate& c) {
  switch (w.kind) {
    case wish::kind_type::any:
      return true;
    case wish::kind_type::device_class:
      return c.manifest_class() == w.device_class;
    case wish::kind_type::name:
      return w.names(c.name());
  }
  return false;
}

bool matches(const wish& w, const option& o) {
  if (!matches(w, *o.from)) return false;
  if (w.kind == wish::kind_type::device_class) return o.info().device_class == w.device_class;
  return true;
}

// Why a wish cannot be met.
struct refusal {
  bool rejected = false;  // a plugin broke a rule, in contrast to not being there
  std::string reason, hint;
};

bool is_rejection(const plugin::defect& d) {
  return d.status == BITNET_REJECTED || d.status == BITNET_INCOMPATIBLE;
}

constexpr const char* install_cpu = "install bitnet-backend-cpu (or build plugins/cpu)";

std::string install_hint(const wish& w) {
  if (w.kind == wish::kind_type::device_class)
    return "install a backend for this " + w.name + ", or use --device auto";
  return "install bitnet-backend-" + w.alias_of + ", or use --device auto";
}

// The search path, lowest precedence first: the user adds backends, and replaces none of the
// system's. `refused` receives the folders that do not count.
std::vector<std::filesystem::path> usual_directories(
    bool user_places, plugin::host_services& host,
    std::vector<plugin::searched_directory>& refused) {
  std::vector<std::filesystem::path> out;
  const std::string why = environment::user_places_refused(user_places);
  for (const auto& [path, named_by] : environment::user_manifest_directories()) {
    host.log(BITNET_LOG_INFO, "manifest",
             named_by + " names " + plugin::printable(path.string(), 400) +
                 (why.empty() ? "" : ", not searched: " + why));
    if (why.empty())
      out.push_back(path);
    else
      refused.push_back({path, "not searched: " + why});
  }
  for (const auto& path : environment::system_manifest_directories()) {
    std::erase(out, path);
    out.push_back(path);
  }
  return out;
}

// What BITNET_BACKENDS and BITNET_BACKENDS_DISABLE take away.
void leave_out(std::vector<candidate>& candidates, plugin::host_services& host) {
  const std::vector<std::string> only = environment::only_backends();
  const std::vector<std::string> disabled = environment::disabled_backends();
  for (candidate& c : candidates) {
    std::string why;
    if (!only.empty() && std::ranges::find(only, c.name()) == only.end())
      why = "left out by BITNET_BACKENDS=" + plugin::printable(join(only, ","), 100);
    for (const std::string& pattern : disabled)
      if (fnmatch(pattern.c_str(), c.name().c_str(), 0) == 0)
        why = "left out by BITNET_BACKENDS_DISABLE=" + plugin::printable(pattern, 100);
    if (why.empty()) continue;
    host.log(BITNET_LOG_INFO, "manifest", "backend " + c.name() + " is " + why);
    c.leave_out({code::select_filtered, BITNET_UNAVAILABLE, why, ""});
  }
}

}  // namespace

struct registry::contents {
  explicit contents(probe::settings s) : probes(std::move(s)) {}

  plugin::host_services* host = nullptr;
  plugin::policy rules;
  probe::service probes;
  mutable std::mutex turn;  // guards pending
  std::vector<probe::ticket> pending;
  std::vector<std::filesystem::path> directories;  // to look into again; empty: the built-in ones
  std::vector<candidate> candidates;
  std::vector<plugin::searched_directory> searched;

  void begin(const std::vector<wish>& wishes);
  bool collect();
  void probe(const std::vector<wish>& wishes, bool patient);
  [[nodiscard]] plugin::discovery discover() const;
  [[nodiscard]] std::vector<option> options(const wish& w);
  [[nodiscard]] std::vector<option> ranked();
  [[nodiscard]] std::optional<failure> doubts(const std::vector<wish>& wishes);
  [[nodiscard]] std::optional<choice> take_best(const wish& w, option& taken,
                                                const std::set<std::string>& without = {});
  [[nodiscard]] refusal explain(const wish& w);
  [[nodiscard]] failure nothing_installed() const;
  [[nodiscard]] failure nothing_usable(const std::vector<wish>& wishes,
                                       const std::vector<std::string>& detected);
  void judge(const std::vector<wish>& wishes, const option* winner, bool fell_back);
  void write(report& out);
};

plugin::discovery registry::contents::discover() const {
  std::vector<plugin::searched_directory> refused;
  auto found = plugin::discover(
      directories.empty() ? usual_directories(rules.user_places, *host, refused) : directories);
  std::ranges::move(refused, std::back_inserter(found.searched));
  return found;
}

void registry::contents::begin(const std::vector<wish>& wishes) {
  for (candidate& c : candidates)
    if (std::ranges::any_of(wishes, [&](const wish& w) { return matches(w, c); }))
      c.begin_probe(probes, *host);
}

// Takes what has come; true if nothing is missing.
bool registry::contents::collect() {
  std::vector<probe::ticket> still;
  for (candidate& c : candidates) {
    c.collect(probes);
    if (const auto& t = c.running(); t) still.push_back(*t);
  }
  const std::scoped_lock lock(turn);
  pending = std::move(still);
  return pending.empty();
}

// Starts what fits and waits for it: a while for all, and if `patient` until one of them can be
// used or all have answered.
void registry::contents::probe(const std::vector<wish>& wishes, bool patient) {
  const auto now = std::chrono::steady_clock::now();
  const auto usable = [&] {
    return std::ranges::any_of(wishes, [&](const wish& w) { return !options(w).empty(); });
  };
  begin(wishes);
  if (collect()) return;
  probes.wait(pending, now + std::chrono::milliseconds(probes.choices().wait_ms));
  while (!collect() && patient && !usable()) probes.wait_for_one(pending);
}

// The devices that fit, best first; an index picks one of them.
std::vector<option> registry::contents::options(const wish& w) {
  std::vector<option> out;
  for (candidate& c : candidates)
    if (c.is_usable())
      for (uint32_t i = 0; i < c.devices().size(); ++i)
        if (const option o{&c, i}; matches(w, o)) out.push_back(o);
  std::ranges::sort(out, ranks_higher);
  // A device that several backends show counts once, unless one of them is asked for by name.
  if (w.kind == wish::kind_type::name) return out;
  std::vector<option> once;
  for (const option& o : out)
    if (shown_better(out, o).empty()) once.push_back(o);
  return once;
}

// Every usable device, best first.
std::vector<option> registry::contents::ranked() {
  std::vector<option> out;
  for (candidate& c : candidates)
    if (c.is_usable())
      for (uint32_t i = 0; i < c.devices().size(); ++i) out.push_back({&c, i});
  std::ranges::sort(out, ranks_higher);
  return out;
}

// Loads the best device that fits and still works when loaded.
std::optional<choice> registry::contents::take_best(const wish& w, option& taken,
                                                    const std::set<std::string>& without) {
  for (;;) {
    std::vector<option> fitting = options(w);
    if (w.index) {
      if (*w.index >= fitting.size()) return std::nullopt;
      fitting = {fitting[*w.index]};
    }
    std::erase_if(fitting, [&](const option& o) {
      return without.contains(o.name()) || without.contains(o.from->name());
    });
    if (fitting.empty()) return std::nullopt;
    taken = fitting.front();
    if (taken.from->is_fake()) return choice{nullptr, taken.index, taken.info(), ""};
    if (auto loaded = taken.from->load(taken.index, probes, *host))
      return choice{std::move(loaded), taken.index, taken.info(), taken.from->facts().build_id};
    // It has a fault now and is no option any more, or it is probed again.
    probe({w}, true);
  }
}

refusal registry::contents::explain(const wish& w) {
  if (const auto fitting = options(w); !fitting.empty())
    return {false,
            "there is no device " + std::to_string(w.index.value_or(0)) + "; " + w.name + " has " +
                std::to_string(fitting.size()) + (fitting.size() == 1 ? " device" : " devices") +
                ", counted from 0",
            "--device " + w.name + ":" + std::to_string(fitting.size() - 1)};

  refusal out;
  bool absent = false;
  std::vector<std::string> reasons;
  for (const candidate& c : candidates) {
    if (!matches(w, c)) continue;
    const bool several = w.kind != wish::kind_type::name;
    const std::string prefix = several ? c.name() + ": " : "";
    const auto& fault = c.fault();
    if (c.running()) {
      reasons.push_back(prefix + "it is still being probed");
      if (out.hint.empty()) out.hint = plugin::code_hint(code::probe_pending);
      absent = true;
      continue;
    }
    if (!fault) {  // usable, but of another class than its manifest says
      reasons.push_back(prefix + "it has no device of class " + w.name);
      absent = true;
      continue;
    }
    reasons.push_back(prefix + fault->reason);
    if (out.hint.empty()) out.hint = fault->advice();
    if (is_rejection(*fault))
      out.rejected = true;
    else if (!c.is_disabled())
      absent = true;
  }
  if (reasons.empty())
    return {false,
            w.kind == wish::kind_type::device_class
                ? "no backend for devices of class " + w.name + " is installed"
                : "no backend of that name is installed",
            install_hint(w)};
  // What is merely absent weighs more: the machine may be fine with the rejected one repaired or
  // not.
  out.rejected = out.rejected && !absent;
  out.reason = join(reasons, "; ");
  if (out.hint.empty()) out.hint = install_hint(w);
  return out;
}

// What to do comes before the list of places, which may be longer than a bitnet_error.
failure registry::contents::nothing_installed() const {
  std::vector<std::string> places;
  places.reserve(searched.size());
  for (const auto& [path, result] : searched)
    places.push_back(plugin::printable(path.string(), 200) +
                     (result == "absent" ? "" : " (" + result + ")"));
  return {BITNET_UNAVAILABLE, "no backend is installed: " + std::string(install_cpu) +
                                  "; looked in " + join(places, ", ")};
}

failure registry::contents::nothing_usable(const std::vector<wish>& wishes,
                                           const std::vector<std::string>& detected) {
  std::vector<std::string> reasons;
  reasons.reserve(wishes.size());
  std::string hint;
  bool rejected = true;
  for (const wish& w : wishes) {
    const refusal r = explain(w);
    reasons.push_back(wishes.size() == 1 ? r.reason : w.text + ": " + r.reason);
    if (hint.empty()) hint = r.hint;
    rejected = rejected && r.rejected;
  }
  if (!detected.empty() && hint.find("--device") == std::string::npos)
    hint += ", or use --device auto";
  std::string what;
  const bool any = wishes.size() == 1 && wishes.front().kind == wish::kind_type::any;
  const bool sound_but_idle = std::ranges::all_of(candidates, [](const candidate& c) {
    return c.manifest_class() != BITNET_DEVICE_CPU && c.fault() &&
           c.fault()->code == code::probe_no_device;
  });
  if (any && sound_but_idle) hint = install_cpu;
  if (wishes.size() > 1)
    what = "none of the requested backends can be used: ";
  else if (any)
    what = sound_but_idle ? "no backend that can compute on this machine is installed: "
                          : "no backend can be used: ";
  else
    what = "requested backend '" + wishes.front().text +
           (rejected ? "' was rejected: " : "' is not available: ");
  const std::string rest = "; detected: [" + join(detected, ",") + "]; try: " + hint;
  // The reasons give way, so that the advice is never what a bitnet_error cuts off; the report has
  // them in full.
  constexpr std::size_t room = sizeof(bitnet_error::message) - sizeof "...";
  const std::size_t fixed = std::min(room, what.size() + rest.size());
  return {rejected ? BITNET_REJECTED : BITNET_UNAVAILABLE,
          what + plugin::printable(join(reasons, "; "), std::max<std::size_t>(room - fixed, 80)) +
              rest};
}

// Tells every candidate why it won or lost.
void registry::contents::judge(const std::vector<wish>& wishes, const option* winner,
                               bool fell_back) {
  for (candidate& c : candidates) {
    const bool asked = std::ranges::any_of(wishes, [&](const wish& w) { return matches(w, c); });
    if (winner != nullptr && winner->from == &c) {
      c.judge(code::ok,
              (fell_back ? "chosen as fallback: " : "chosen: ") + winner->name() + ", class " +
                  plugin::class_name(winner->info().device_class) + ", priority " +
                  std::to_string(c.priority()),
              true);
    } else if (!asked) {
      c.judge(code::select_not_asked, "not asked for");
    } else if (winner == nullptr) {
      c.judge(code::select_no_class, "usable, but it has no device that fits the request");
    } else if (c.is_usable()) {
      option best{&c, 0};
      for (uint32_t i = 1; i < c.devices().size(); ++i)
        if (const option o{&c, i}; ranks_higher(o, best)) best = o;
      const bool by_rank = wishes.size() == 1 && ranks_higher(*winner, best);
      if (const std::string other = shown_better(ranked(), best);
          !other.empty() && c.devices().size() == 1)
        c.judge(code::select_same, "usable, but it shows the same device as " + other);
      else
        c.judge(code::select_outranked,
                "usable, but " + winner->name() +
                    (by_rank ? " ranks higher: " + why_behind(facts_of(*winner), facts_of(best))
                             : " fits the request better"));
    }
  }
}

void registry::contents::write(report& out) {
  out.detected.clear();
  for (const option& o : options(wish{}))
    if (const std::string shown = o.from->shown_name();
        std::ranges::find(out.detected, shown) == out.detected.end())
      out.detected.push_back(shown);
  out.backends.clear();
  for (candidate& c : candidates) {
    c.follow(probes);
    out.backends.push_back(c.describe());
  }
  const std::vector<option> order = ranked();
  for (uint32_t rank = 0; rank < order.size(); ++rank)
    for (backend_report& b : out.backends)
      if (b.name == order[rank].from->name() && b.standings.size() > order[rank].index)
        b.standings[order[rank].index] = {rank + 1, facts_of(order[rank]),
                                          shown_better(order, order[rank])};
  out.searched.clear();
  for (const auto& [path, result] : searched) out.searched.push_back({path.string(), result});
}

registry::registry(std::unique_ptr<contents> c) : contents_(std::move(c)) {}
registry::registry(registry&&) noexcept = default;
registry& registry::operator=(registry&&) noexcept = default;
registry::~registry() = default;

registry registry::scan(const std::vector<std::filesystem::path>& directories,
                        plugin::host_services& host, plugin::policy rules,
                        probe::settings probing) {
  auto c = std::make_unique<contents>(std::move(probing));
  c->host = &host;
  c->rules = std::move(rules);
  c->directories = directories;
  auto discovered = c->discover();
  c->searched = std::move(discovered.searched);
  for (plugin::found_manifest& found : discovered.found)
    c->candidates.emplace_back(std::move(found), c->rules);
  leave_out(c->candidates, host);
  for (const candidate& one : c->candidates)
    for (const std::string& warning : one.warnings())
      host.log(BITNET_LOG_WARN, "manifest", warning);
  return registry(std::move(c));
}

result<choice> registry::select(const request& wanted, report& out) {
  contents& c = *contents_;
  out.requested = plugin::printable(wanted.text, 64);
  out.requested_by = wanted.requested_by;
  out.selected.clear();
  out.selected_device.clear();
  auto wishes = parse_request(wanted.text, wanted.requested_by);
  if (!wishes) {
    c.write(out);
    return std::unexpected(std::move(wishes.error()));
  }
  if (wanted.strict && wanted.allow_fallback) {
    c.write(out);
    return fail(BITNET_INVALID_ARGUMENT,
                "strict mode allows no fallback; drop --allow-fallback or BITNET_STRICT_MODE");
  }
  // Strictness wins over fallback: nobody may get another device than the one that they insist on.
  if (wanted.require_first) wishes->resize(1);
  out.requested.clear();
  for (const wish& w : *wishes) out.requested += (out.requested.empty() ? "" : ",") + w.text;

  c.probe(*wishes, true);
  option winner;
  std::optional<choice> chosen;
  for (const wish& w : *wishes)
    if (!chosen) chosen = c.take_best(w, winner);
  bool fell_back = false;
  if (!chosen) {
    // Everything is probed now, either to choose from or to tell what would work.
    c.probe({wish{}}, wanted.allow_fallback && !wanted.require_first);
    if (wanted.allow_fallback && !wanted.require_first) chosen = c.take_best(wish{}, winner);
    fell_back = chosen.has_value();
  }
  c.judge(fell_back ? std::vector{wish{}} : *wishes, chosen ? &winner : nullptr, fell_back);
  if (chosen) {
    out.selected = winner.from->shown_name();
    out.selected_device = winner.name();
    c.write(out);
    if (winner.from->is_fake())
      return fail(BITNET_UNAVAILABLE, winner.name() +
                                          " is a fake of BITNET_GPU_FAKE and computes nothing; "
                                          "unset the variable, or ask for another with --device");
    if (wanted.strict)
      if (auto doubt = c.doubts(fell_back ? std::vector{wish{}} : *wishes))
        return std::unexpected(std::move(*doubt));
    return std::move(*chosen);
  }
  c.write(out);
  if (c.candidates.empty()) return std::unexpected(c.nothing_installed());
  return std::unexpected(c.nothing_usable(*wishes, out.detected));
}

// What strict mode does not let pass: anything that is wrong with what the request could mean.
std::optional<failure> registry::contents::doubts(const std::vector<wish>& wishes) {
  std::vector<std::string> all;
  for (const candidate& c : candidates) {
    if (std::ranges::none_of(wishes, [&](const wish& w) { return matches(w, c); })) continue;
    if (const auto& fault = c.fault(); fault && is_rejection(*fault))
      all.push_back(c.name() + ": " + fault->reason);
    for (const std::string& note : c.doubts()) all.push_back(c.name() + ": " + note);
  }
  if (all.empty()) return std::nullopt;
  return failure{BITNET_REJECTED,
                 "strict mode lets no doubt pass: " + plugin::printable(join(all, "; "), 300) +
                     "; see `bitnet backends why`, or unset BITNET_STRICT_MODE"};
}

void registry::pretend(const std::vector<fake_backend>& fakes) {
  contents& c = *contents_;
  for (const fake_backend& one : fakes) {
    std::erase_if(c.candidates, [&](const candidate& real) { return real.name() == one.name; });
    c.candidates.emplace_back(one, c.rules);
  }
}

void registry::probe_all(report& out) {
  contents_->probe({wish{}}, false);
  contents_->write(out);
}

bool registry::collect(report& out) {
  const bool all = contents_->collect();
  contents_->write(out);
  return all;
}

bool registry::wait(std::chrono::steady_clock::time_point end) const {
  std::vector<probe::ticket> all;
  {
    const std::scoped_lock lock(contents_->turn);
    all = contents_->pending;
  }
  return contents_->probes.wait(all, end);
}

result<choice> registry::select_other(const request& wanted, const std::set<std::string>& without) {
  contents& c = *contents_;
  auto wishes = parse_request(wanted.text, wanted.requested_by);
  if (!wishes) return std::unexpected(std::move(wishes.error()));
  if (wanted.require_first) wishes->resize(1);
  if (wanted.allow_fallback && !wanted.require_first) wishes->emplace_back();
  c.probe(*wishes, true);
  option taken;
  for (const wish& w : *wishes)
    if (auto chosen = c.take_best(w, taken, without)) return std::move(*chosen);
  std::vector<std::string> reasons;
  for (const wish& w : *wishes)
    if (const refusal r = c.explain(w); !c.options(w).empty())
      reasons.push_back(w.text + ": no other device of it is left");
    else
      reasons.push_back(w.text + ": " + r.reason);
  return fail(BITNET_UNAVAILABLE, "no device of '" + wanted.text +
                                      "' can be used: " + join(reasons, "; ") +
                                      "; name further backends, as in " + wanted.text + ",cpu");
}

struct registry::renewal::contents {
  plugin::host_services* host;
  probe::service* probes;
  candidate found;
  std::vector<plugin::searched_directory> searched;
  std::shared_ptr<plugin::backend> loaded;

  // A child answers, or its deadline does.
  void settle() {
    while (const auto asked = found.running()) {
      (void)probes->wait({*asked}, std::chrono::steady_clock::now() + std::chrono::minutes(1));
      found.collect(*probes);
    }
  }
};

registry::renewal::renewal(std::unique_ptr<contents> c) : contents_(std::move(c)) {}
registry::renewal::renewal(renewal&&) noexcept = default;
registry::renewal& registry::renewal::operator=(renewal&&) noexcept = default;
registry::renewal::~renewal() = default;

const plugin::inspection& registry::renewal::facts() const {
  return contents_->found.facts();
}

plugin::file_identity registry::renewal::file() const {
  return contents_->found.file();
}

plugin::checked<void> registry::renewal::probe() {
  contents_->found.begin_probe(*contents_->probes, *contents_->host);
  contents_->settle();
  if (const auto& fault = contents_->found.fault()) return std::unexpected(*fault);
  return {};
}

plugin::checked<choice> registry::renewal::load(uint32_t index) {
  candidate& found = contents_->found;
  if (index >= found.devices().size())
    return plugin::reject(code::probe_answer, "it has " + std::to_string(found.devices().size()) +
                                                  " devices; device " + std::to_string(index) +
                                                  " is in use");
  // A second time if what was remembered of it was wrong and it was probed again.
  for (int tries = 0; tries < 2 && !contents_->loaded && !found.fault(); ++tries) {
    contents_->loaded = found.load(index, *contents_->probes, *contents_->host);
    contents_->settle();
  }
  if (const auto& fault = found.fault()) return std::unexpected(*fault);
  if (!contents_->loaded)
    return plugin::reject(code::probe_mismatch, "what it says changes whenever it is asked");
  return choice{contents_->loaded, index, found.devices()[index].info, facts().build_id};
}

registry::loaded_copy registry::loaded(const std::string& name) const {
  for (const candidate& c : contents_->candidates)
    if (c.name() == name)
      if (auto b = c.loaded()) return {std::move(b), c.facts().build_id};
  return {};
}

plugin::checked<registry::renewal> registry::renew(const std::string& name) {
  auto discovered = contents_->discover();
  for (plugin::found_manifest& found : discovered.found) {
    if (found.name != name) continue;
    candidate fresh(std::move(found), contents_->rules);
    fresh.inspect();
    if (const auto& fault = fresh.fault()) {
      if (fault->code == code::manifest_duplicate) continue;
      return std::unexpected(*fault);
    }
    return renewal(std::unique_ptr<renewal::contents>(new renewal::contents{
        contents_->host, &contents_->probes, std::move(fresh), discovered.searched, nullptr}));
  }
  return std::unexpected(plugin::defect{code::trust_missing, BITNET_UNAVAILABLE,
                                        "no manifest names a backend '" + name + "'", ""});
}

void registry::adopt(renewal fresh, report& out) {
  contents& c = *contents_;
  candidate& found = fresh.contents_->found;
  const auto old = std::ranges::find_if(
      c.candidates, [&](const candidate& one) { return one.name() == found.name(); });
  const bool selected = out.selected == found.name();
  if (selected) found.judge(code::ok, "chosen, and reloaded since", true);
  if (old != c.candidates.end())
    *old = std::move(found);
  else
    c.candidates.push_back(std::move(found));
  c.searched = std::move(fresh.contents_->searched);
  c.write(out);
}

}  // namespace bitnet::select
