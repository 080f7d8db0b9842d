// A backend as it is on disk now, beside the one in use.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "plugin/codes/text.hpp"
#include "select/contents.hpp"

namespace bitnet::select {

using plugin::code;

struct registry::renewal::contents {
  plugin::host_services* host;
  probe::service* probes;
  candidate found;
  std::vector<plugin::searched_directory> searched;
  std::shared_ptr<plugin::backend> loaded;

  // Waits for the child's answer, up to the longest wait of a call.
  plugin::checked<void> settle() {
    const auto most = std::chrono::milliseconds(probes->choices().longest_wait_ms);
    if (const auto asked = found.running())
      (void)probes->wait({*asked}, std::chrono::steady_clock::now() + most);
    found.collect(*probes);
    if (!found.running()) return {};
    return std::unexpected(
        plugin::defect{code::probe_pending, BITNET_TIMEOUT,
                       fmt::format("its probe has not answered after {} s",
                                   std::chrono::duration_cast<std::chrono::seconds>(most).count()),
                       "the probe goes on, and what it brings is remembered; reload again later"});
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
  // Needed: the caller waits, and no other backend would do.
  contents_->found.start_probe(*contents_->probes, *contents_->host, true);
  if (auto answered = contents_->settle(); !answered) return answered;
  if (const auto& fault = contents_->found.fault()) return std::unexpected(*fault);
  return {};
}

plugin::checked<choice> registry::renewal::load(uint32_t index) {
  candidate& found = contents_->found;
  if (index >= found.devices().size())
    return plugin::reject(code::probe_answer, fmt::format("it has {} devices; device {} is in use",
                                                          found.devices().size(), index));
  // Twice, if the cached answer was wrong and it was probed again.
  for (int tries = 0; tries < 2 && !contents_->loaded && !found.fault(); ++tries) {
    contents_->loaded = found.load(index, *contents_->probes, *contents_->host);
    if (auto answered = contents_->settle(); !answered)
      return std::unexpected(std::move(answered.error()));
  }
  if (const auto& fault = found.fault()) return std::unexpected(*fault);
  if (!contents_->loaded)
    return plugin::reject(code::probe_mismatch, "what it says changes whenever it is asked");
  const device_report& device = found.devices()[index];
  return choice{contents_->loaded, index, device.info, facts().build_id, kernels_of(device)};
}

namespace {

bool same_file(const std::string& named, const std::filesystem::path& wanted) {
  std::error_code error;
  return !named.empty() && std::filesystem::weakly_canonical(named, error) == wanted;
}

}  // namespace

plugin::checked<std::string> registry::meant_by(const std::string& text) const {
  if (!text.contains('/')) return text;
  std::error_code error;
  const std::filesystem::path wanted = std::filesystem::weakly_canonical(text, error);
  auto discovered = contents_->discover();
  std::vector<std::string> libraries;
  for (plugin::found_manifest& found : discovered.found) {
    const backend_report one = candidate(std::move(found), contents_->rules).describe();
    if (same_file(one.library, wanted) || same_file(one.manifest, wanted)) return one.name;
    if (!one.library.empty()) libraries.push_back(one.library);
  }
  return std::unexpected(plugin::defect{
      code::trust_missing, BITNET_UNAVAILABLE,
      fmt::format("no manifest names {}; those that are installed name {}",
                  plugin::printable(text, 200),
                  libraries.empty() ? "nothing" : plugin::join(libraries, ", ")),
      "put the new file in the place of one of these, or install a manifest that names it"});
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
                                        fmt::format("no manifest names a backend '{}'", name), ""});
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
