// Explains why a backend won or lost, and why no device matches a request.

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/wording.hpp"
#include "plugin/codes/text.hpp"
#include "plugin/manifest/discover.hpp"
#include "plugin/manifest/manifest.hpp"
#include "select/contents.hpp"
#include "select/other_names.hpp"

namespace bitnet::select {
namespace {

using plugin::code;
using plugin::join;

bool is_rejection(const plugin::defect& d) {
  return d.status == BITNET_REJECTED || d.status == BITNET_INCOMPATIBLE;
}

constexpr const char* install_cpu = "install bitnet-backend-cpu (or build plugins/cpu)";

// Why it was not probed.
std::string not_probed(const candidate& c, const option* winner, probe::service& probes) {
  std::string out = "not probed: ";
  if (c.manifest_class() != BITNET_DEVICE_CPU && !probes.shows_devices())
    out += fmt::format("this machine shows no device of class {}, and a driver in software ",
                       plugin::class_name(c.manifest_class()));
  else
    out += "it ";
  return out + (winner == nullptr ? "would not help"
                                  : fmt::format("would come after {}", winner->name()));
}

std::string requesting(std::string_view device) {
  return fmt::format("{} {}", say(word::request_device), device);
}

// Recommends only packages that exist.
std::string install_hint(const wish& w) {
  if (w.kind == wish::kind_type::device_class)
    return fmt::format("install a backend for this {}, or {}", w.name, requesting("auto"));
  if (has_package(w.name))
    return fmt::format("install bitnet-backend-{}, or {}", w.name, requesting("auto"));
  return fmt::format("look at what `bitnet backends` lists (bitnet's own are {}), or {}",
                     backends_with_packages(), requesting("auto"));
}

// For a known name without a backend: recommends a backend for the same devices.
std::string hint_instead(const std::vector<std::string>& backends,
                         const std::vector<candidate>& here) {
  const auto is_here = [&](const std::string& name) {
    return std::ranges::any_of(here, [&](const candidate& c) { return c.name() == name; });
  };
  if (backends.empty()) return requesting("auto");
  if (const auto found = std::ranges::find_if(backends, is_here); found != backends.end())
    return requesting(*found);
  return fmt::format("install bitnet-backend-{} and {}, or request auto", backends.front(),
                     requesting(backends.front()));
}

// The user's folder with a manifest that a wish may mean and that root does not search.
std::string passed_over(const std::vector<plugin::searched_directory>& searched, const wish& w) {
  for (const plugin::searched_directory& one : searched) {
    if (!one.passed_over) continue;
    std::error_code error;
    std::filesystem::directory_iterator at(one.path, error);
    for (uint64_t seen = 0; !error && at != std::filesystem::directory_iterator() &&
                            seen < plugin::most_directory_entries;
         at.increment(error), ++seen)
      if (const auto name = plugin::name_of_manifest(at->path());
          name && (w.kind == wish::kind_type::any || w.name == *name))
        return plugin::printable(one.path.string(), 200);
  }
  return "";
}

std::string look_there(const std::string& folder) {
  return fmt::format("set {}, without which root does not look into {}", say(word::user_backends),
                     folder);
}

}  // namespace

no_match registry::contents::explain(const wish& w) {
  if (const auto fitting = options(w); !fitting.empty())
    return {false,
            fmt::format("there is no device {}; {} has {}{}, counted from 0", w.index.value_or(0),
                        w.name, fitting.size(), fitting.size() == 1 ? " device" : " devices"),
            requesting(fmt::format("{}:{}", w.name, fitting.size() - 1)), true};

  no_match out;
  bool absent = false;
  std::vector<std::string> reasons;
  for (const candidate& c : candidates) {
    if (!matches(w, c)) continue;
    const bool several = w.kind != wish::kind_type::name;
    const std::string prefix = several ? fmt::format("{}: ", c.name()) : "";
    const auto& fault = c.fault();
    if (c.running()) {
      reasons.push_back(fmt::format("{}it is still being probed", prefix));
      if (out.hint.empty()) out.hint = plugin::code_hint(code::probe_pending);
      absent = true;
      continue;
    }
    if (c.is_unasked()) {
      reasons.push_back(fmt::format("{}it was not probed", prefix));
      absent = true;
      continue;
    }
    if (!fault) {  // usable, but not of its manifest's class
      reasons.push_back(fmt::format("{}it has no device of class {}", prefix, w.name));
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
  if (const std::string folder = passed_over(searched, w); reasons.empty() && !folder.empty())
    return {false, fmt::format("root does not search {}, which has one", folder),
            look_there(folder)};
  if (const other_name* known = find_other_name(w.name); reasons.empty() && known != nullptr)
    return {false, std::string(known->sentence), hint_instead(instead_of(*known), candidates),
            true};
  if (reasons.empty())
    return {false,
            w.kind == wish::kind_type::device_class
                ? fmt::format("no backend for devices of class {} is installed", w.name)
                : "no backend of that name is installed",
            install_hint(w), true};
  // An absent device takes precedence: repairing the rejected one may not help.
  out.rejected = out.rejected && !absent;
  out.reason = join(reasons, "; ");
  if (out.hint.empty()) {
    out.hint = install_hint(w);
    out.has_request = true;
  }
  return out;
}

// The advice comes before the list of folders, which may not fit a bitnet_error.
failure registry::contents::nothing_installed() const {
  std::vector<std::string> places;
  places.reserve(searched.size());
  for (const auto& [path, result, ignored] : searched)
    places.push_back(plugin::printable(path.string(), 200) +
                     (result == "absent" ? "" : fmt::format(" ({})", result)));
  const std::string folder = passed_over(searched, wish{});
  return {BITNET_UNAVAILABLE,
          fmt::format("no backend is installed: {}; looked in {}",
                      folder.empty() ? install_cpu : look_there(folder), join(places, ", "))};
}

failure registry::contents::nothing_usable(const std::vector<wish>& wishes,
                                           const std::vector<std::string>& detected) {
  std::vector<std::string> reasons;
  reasons.reserve(wishes.size());
  std::string hint;
  bool rejected = true, has_request = false;
  for (const wish& w : wishes) {
    const no_match r = explain(w);
    reasons.push_back(wishes.size() == 1 ? r.reason : fmt::format("{}: {}", w.text, r.reason));
    if (hint.empty()) {
      hint = r.hint;
      has_request = r.has_request;
    }
    rejected = rejected && r.rejected;
  }
  if (!detected.empty() && !has_request) hint += ", or " + requesting("auto");
  std::string what;
  const bool any = wishes.size() == 1 && wishes.front().kind == wish::kind_type::any;
  const bool sound_but_idle = std::ranges::all_of(candidates, [](const candidate& c) {
    return c.manifest_class() != BITNET_DEVICE_CPU && c.fault() &&
           (c.fault()->code == code::probe_no_device || c.fault()->code == code::select_requires);
  });
  if (any && sound_but_idle) hint = install_cpu;
  if (wishes.size() > 1)
    what = "none of the requested backends can be used: ";
  else if (any)
    what = sound_but_idle ? "no backend that can compute on this machine is installed: "
                          : "no backend can be used: ";
  else
    what = fmt::format("requested backend '{}{}", wishes.front().text,
                       rejected ? "' was rejected: " : "' is not available: ");
  const std::string rest = fmt::format("; detected: [{}]; try: {}", join(detected, ","), hint);
  // Reasons are shortened, so that a bitnet_error never cuts the advice; the report has them in
  // full.
  constexpr std::size_t room = sizeof(bitnet_error::message) - sizeof "...";
  const std::size_t fixed = std::min(room, what.size() + rest.size());
  return {rejected ? BITNET_REJECTED : BITNET_UNAVAILABLE,
          what + plugin::printable(join(reasons, "; "), std::max<std::size_t>(room - fixed, 80)) +
              rest};
}

// Sets for every candidate the reason why it won or lost.
void registry::contents::judge(const std::vector<wish>& wishes, const option* winner,
                               bool fell_back) {
  for (candidate& c : candidates) {
    if (winner != nullptr && winner->from == &c)
      c.judge(code::ok,
              fmt::format("{}{}, class {}, priority {}",
                          fell_back ? "chosen as fallback: " : "chosen: ", winner->name(),
                          plugin::class_name(winner->info().device_class), c.priority()),
              true);
    else if (!matches_any(wishes, c))
      c.judge(code::select_not_asked, "not asked for");
    else if (c.is_unasked())
      c.judge(code::select_not_probed, not_probed(c, winner, probes));
    else if (winner == nullptr)
      judge_unfit(c, wishes);
    else if (c.is_usable())
      judge_loser(c, wishes, *winner);
  }
}

// Judges a usable candidate if nothing was selected.
void registry::contents::judge_unfit(candidate& c, const std::vector<wish>& wishes) {
  const auto lacks_index = [&](const wish& w) {
    return w.index &&
           std::ranges::any_of(options(w), [&](const option& o) { return o.from == &c; });
  };
  const auto beyond = std::ranges::find_if(wishes, lacks_index);
  if (beyond == wishes.end())
    return c.judge(code::select_no_class, "usable, but it has no device that fits the request");
  const std::size_t n = options(*beyond).size();
  c.judge(code::select_index,
          fmt::format("usable, but there is no device {}; {} has {}{}, counted from 0",
                      *beyond->index, beyond->name, n, n == 1 ? " device" : " devices"));
}

void registry::contents::judge_loser(candidate& c, const std::vector<wish>& wishes,
                                     const option& winner) {
  const std::vector<option> order = ranked();
  const auto its_best = std::ranges::find(order, &c, &option::from);
  const auto winners = std::ranges::find_if(
      order, [&](const option& o) { return o.from == winner.from && o.index == winner.index; });
  const option best = *its_best;
  const bool by_rank = wishes.size() == 1 && winners < its_best;
  const std::string other = shown_better(order, best);
  const auto shown = std::ranges::find(order, other, &option::name);
  if (shown != order.end() && c.devices().size() == 1)
    c.judge(code::select_same,
            fmt::format("usable, but it shows the same device as {}, which ranks higher: {}", other,
                        why_lower(contender_of(*shown), contender_of(best))));
  else
    c.judge(code::select_outranked,
            fmt::format("usable, but {}{}", winner.name(),
                        by_rank ? fmt::format(" ranks higher: {}",
                                              why_lower(contender_of(winner), contender_of(best)))
                                : " fits the request better"));
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
  for (const auto& [path, result, ignored] : searched)
    out.searched.push_back({path.string(), result});
}

// Why strict mode rejects the request: any fault of a backend that it could mean.
std::optional<failure> registry::contents::doubts(const std::vector<wish>& wishes) {
  std::vector<std::string> all;
  for (const candidate& c : candidates) {
    if (std::ranges::none_of(wishes, [&](const wish& w) { return matches(w, c); })) continue;
    if (const auto& fault = c.fault(); fault && is_rejection(*fault))
      all.push_back(fmt::format("{}: {}", c.name(), fault->reason));
    for (const std::string& note : c.doubts()) all.push_back(fmt::format("{}: {}", c.name(), note));
  }
  if (all.empty()) return std::nullopt;
  return failure{BITNET_REJECTED, fmt::format("strict mode lets no doubt pass: {}; see `bitnet "
                                              "backends why`, or unset BITNET_STRICT_MODE",
                                              plugin::printable(join(all, "; "), 300))};
}

}  // namespace bitnet::select
