// Chooses: the devices that match, the best of them, and a replacement.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/wording.hpp"
#include "plugin/codes/text.hpp"
#include "select/contents.hpp"

namespace bitnet::select {

using plugin::join;

// The devices that match, best first; an index selects one.
std::vector<option> registry::contents::options(const wish& w) {
  std::vector<option> out;
  for (candidate& c : candidates)
    if (c.is_usable())
      for (uint32_t i = 0; i < c.devices().size(); ++i)
        if (const option o{&c, i}; matches(w, o)) out.push_back(o);
  out = in_order(out);
  // A device that several backends show counts once, unless the wish names a backend.
  if (w.kind == wish::kind_type::name) return out;
  std::vector<option> once;
  for (const option& o : out)
    if (shown_better(out, o).empty()) once.push_back(o);
  return once;
}

bool registry::contents::is_usable(const std::vector<wish>& wishes) {
  return std::ranges::any_of(wishes, [&](const wish& w) { return !options(w).empty(); });
}

// Every usable device, best first.
std::vector<option> registry::contents::ranked() {
  std::vector<option> out;
  for (candidate& c : candidates)
    if (c.is_usable())
      for (uint32_t i = 0; i < c.devices().size(); ++i) out.push_back({&c, i});
  return in_order(out);
}

// Loads the best device that matches and works when loaded.
std::optional<choice> registry::contents::take_best(const wish& w, option& taken,
                                                    const std::set<std::string>& without,
                                                    clock::time_point end) {
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
      return choice{std::move(loaded), taken.index, taken.info(), taken.from->facts().build_id,
                    kernels_of(taken.from->devices()[taken.index])};
    // It has a fault now and is no option any more, or it is being probed again.
    ask_for({w}, true, end);
  }
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
  c->find();
  return registry(std::move(c));
}

result<choice> registry::select(const request& wanted, report& out) {
  contents& c = *contents_;
  out.requested = plugin::printable(wanted.text, 64);
  out.requested_by = wanted.requested_by;
  out.selected.clear();
  out.selected_device.clear();
  out.fell_back = false;
  auto wishes = parse_request(wanted.text, wanted.requested_by);
  if (!wishes) {
    c.write(out);
    return std::unexpected(std::move(wishes.error()));
  }
  if (wanted.strict && wanted.allow_fallback) {
    c.write(out);
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("strict mode allows no fallback; drop {} or BITNET_STRICT_MODE",
                            say(word::allow_fallback)));
  }
  // Strict requests have no fallback: a request that insists on a device gets no other one.
  if (wanted.require_first) wishes->resize(1);
  out.requested.clear();
  for (const wish& w : *wishes) out.requested += (out.requested.empty() ? "" : ",") + w.text;

  c.ask_for(*wishes, true);
  option winner;
  std::optional<choice> chosen;
  for (const wish& w : *wishes)
    if (!chosen) chosen = c.take_best(w, winner);
  if (!chosen) {
    // Probes all that may help, to choose from or to report what would work.
    c.ask_for({wish{}}, wanted.allow_fallback && !wanted.require_first);
    if (wanted.allow_fallback && !wanted.require_first) chosen = c.take_best(wish{}, winner);
    out.fell_back = chosen.has_value();
  }
  c.calm();
  c.judge(out.fell_back ? std::vector{wish{}} : *wishes, chosen ? &winner : nullptr, out.fell_back);
  if (chosen) {
    out.selected = winner.from->shown_name();
    out.selected_device = winner.name();
    c.write(out);
    if (winner.from->is_fake())
      return fail(BITNET_UNAVAILABLE,
                  fmt::format("{} is a fake of BITNET_GPU_FAKE and computes nothing; unset the "
                              "variable, or {}",
                              winner.name(), say(word::request_another)));
    if (wanted.strict)
      if (auto doubt = c.doubts(out.fell_back ? std::vector{wish{}} : *wishes))
        return std::unexpected(std::move(*doubt));
    return std::move(*chosen);
  }
  c.write(out);
  if (c.candidates.empty()) return std::unexpected(c.nothing_installed());
  return std::unexpected(c.nothing_usable(*wishes, out.detected));
}

void registry::pretend(const std::vector<fake_backend>& fakes) {
  contents& c = *contents_;
  for (const fake_backend& one : fakes) {
    std::erase_if(c.candidates, [&](const candidate& real) { return real.name() == one.name; });
    c.candidates.emplace_back(one, c.rules);
  }
}

void registry::probe_all(report& out) {
  contents_->ask_all();
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
    const std::scoped_lock lock(contents_->mutex);
    all = contents_->pending;
  }
  return contents_->probes.wait(all, end);
}

result<registry::other_choice> registry::select_other(const request& wanted,
                                                      const std::set<std::string>& without) {
  contents& c = *contents_;
  auto wishes = parse_request(wanted.text, wanted.requested_by);
  if (!wishes) return std::unexpected(std::move(wishes.error()));
  if (wanted.require_first) wishes->resize(1);
  if (wanted.allow_fallback && !wanted.require_first) wishes->emplace_back();
  const uint32_t most_ms = c.probes.choices().longest_wait_ms;
  const auto end = contents::clock::now() + std::chrono::milliseconds(most_ms);
  c.ask_for(*wishes, true, end);
  option taken;
  for (auto w = wishes->begin(); w != wishes->end(); ++w)
    if (auto chosen = c.take_best(*w, taken, without, end))
      return other_choice{std::move(*chosen), c.unanswered({wishes->begin(), w})};
  if (const auto late = c.unanswered(*wishes); !late.empty())
    return fail(BITNET_TIMEOUT,
                fmt::format("{} has not answered after {} s, and nothing else of '{}' can be used; "
                            "ask again later, or name further backends, as in {},cpu",
                            join(late, ", "), most_ms / 1000, wanted.text, wanted.text));
  std::vector<std::string> reasons;
  for (const wish& w : *wishes)
    if (const no_match r = c.explain(w); !c.options(w).empty())
      reasons.push_back(fmt::format("{}: no other device of it is left", w.text));
    else
      reasons.push_back(fmt::format("{}: {}", w.text, r.reason));
  return fail(BITNET_UNAVAILABLE,
              fmt::format("no device of '{}' can be used: {}; name further backends, as in {},cpu",
                          wanted.text, join(reasons, "; "), wanted.text));
}

registry::loaded_copy registry::loaded(const std::string& name) const {
  for (const candidate& c : contents_->candidates)
    if (c.name() == name)
      if (auto b = c.loaded()) return {std::move(b), c.facts().build_id, c.facts().note.version};
  return {};
}

}  // namespace bitnet::select
