#include "select/candidate.hpp"

#include <fmt/core.h>

#include <utility>

#include "base/environment.hpp"
#include "plugin/codes/text.hpp"
#include "plugin/trust/trust.hpp"
#include "probe/requirements.hpp"
#include "select/coexistence.hpp"

namespace bitnet::select {

using plugin::code;

candidate::candidate(plugin::found_manifest found, const plugin::policy& rules)
    : rules_(&rules), name_(std::move(found.name)), manifest_file_(std::move(found.file)) {
  if (!found.manifest) {
    fault_ = std::move(found.manifest.error());
    return;
  }
  if (auto fine = locate(*found.manifest); !fine) fault_ = std::move(fine.error());
  manifest_ = std::move(*found.manifest);
}

plugin::checked<void> candidate::locate(const plugin::manifest& m) {
  if (auto fine = plugin::check_allowed(*rules_, name_); !fine) return fine;
  if (m.abi_major != BITNET_ABI_MAJOR)
    return std::unexpected(plugin::other_major(name_, m.abi_major));
  auto library =
      plugin::locate_library(m.library, environment::backend_directories(manifest_file_));
  if (!library) return std::unexpected(std::move(library.error()));
  library_ = named_ = std::move(*library);
  return {};
}

candidate::candidate(const fake_backend& fake, const plugin::policy& rules)
    : rules_(&rules), name_(fake.name), stage_("fake"), asked_(true), probed_(true), fake_(true) {
  manifest_.emplace();
  manifest_->name = fake.name;
  manifest_->device_class = BITNET_DEVICE_GPU;
  devices_.resize(fake.n_devices);
  for (device_report& d : devices_) {
    d.info.struct_size = sizeof d.info;
    d.info.device_class = BITNET_DEVICE_GPU;
    const std::string shown = fmt::format("fake {}", fake.name);
    shown.copy(d.info.name, sizeof d.info.name - 1);
  }
}

std::vector<std::string> candidate::doubts() const {
  std::vector<std::string> out = warnings();
  const probe::facts& said = outcome_.what;
  for (std::size_t i = 0; i < said.disabled.size(); ++i)
    out.push_back(fmt::format("kernel {}: {}", said.disabled[i], probe::why_disabled(said, i)));
  return out;
}

void candidate::leave_out(plugin::defect why) {
  fault_ = std::move(why);
}

void candidate::inspect() {
  if (fake_ || facts_ || fault_ || !manifest_) return;
  if (auto fine = examine(*manifest_); !fine) {
    fault_ = std::move(fine.error());
    return;
  }
  stage_ = "inspected";
  if (auto able = probe::check_requirements(manifest_->needs, manifest_->packages); !able)
    fault_ = std::move(able.error());
}

plugin::checked<void> candidate::examine(const plugin::manifest& m) {
  auto file = plugin::open_trusted(library_);
  if (!file) return std::unexpected(std::move(file.error()));
  library_ = file->path;
  file_ = std::move(*file);
  auto facts = plugin::inspect_file(*file_, m.packages, m.sha256, m.dependencies);
  if (!facts) return std::unexpected(std::move(facts.error()));
  facts_ = *facts;
  if (facts->note.name != name_)
    return plugin::reject(
        code::inspect_name,
        fmt::format("{} is backend '{}', but the manifest is for '{}'",
                    plugin::printable(library_.string(), 400), facts->note.name, name_));
  return plugin::check_file(*rules_, {.name = facts->note.name, .build_id = facts->build_id},
                            *file_);
}

plugin::checked<std::shared_ptr<plugin::backend>> candidate::open(
    const plugin::trusted_file& file, plugin::host_services& host) const {
  if (auto fine = plugin::check_unchanged(file); !fine)
    return std::unexpected(std::move(fine.error()));
  std::vector<std::pair<std::string, std::string>> extra{{"probed", "yes"}};
  if (!outcome_.what.disabled.empty())
    extra.emplace_back("disable", plugin::join(outcome_.what.disabled, ","));
  return plugin::backend::open(plugin::duplicate(file), name_, BITNET_PURPOSE_LOAD, host, extra,
                               outcome_.what.unloads);
}

void candidate::recall(probe::service& probes, plugin::host_services& host) {
  inspect();
  if (asked_ || fault_ || subject_ || !facts_ || !manifest_ || !file_) return;
  subject_ = probe::subject{name_,
                            library_,
                            file_->identity,
                            *facts_,
                            manifest_->probe_timeout_ms,
                            manifest_->device_class,
                            manifest_->depends_on,
                            host.params(name_),
                            {}};
  std::vector<std::string> notes;
  auto known = doubted_ ? std::nullopt : probes.recall(*subject_, notes);
  for (const std::string& note : notes) host.log(BITNET_LOG_WARN, "probe", note);
  if (!known) return;
  asked_ = true;
  adopt(std::move(*known));
}

void candidate::start_probe(probe::service& probes, plugin::host_services& host, bool needed) {
  recall(probes, host);
  if (!is_unasked() || !subject_) return;
  asked_ = true;
  running_ = probes.start(*subject_, needed);
}

probe::service::prospect candidate::expect(probe::service& probes) {
  return subject_ ? probes.expect(*subject_) : probe::service::prospect{};
}

void candidate::collect(probe::service& probes) {
  if (!running_) return;
  auto brought = probes.take(*running_);
  if (!brought) return;
  running_.reset();
  adopt(std::move(*brought));
}

void candidate::follow(const probe::service& probes) {
  if (running_) outcome_ = probes.peek(*running_);
}

void candidate::adopt(probe::outcome f) {
  outcome_ = std::move(f);
  if (outcome_.reached > probe::stage::open) stage_ = "loaded";
  if (outcome_.reached > probe::stage::enumerate) stage_ = "probed";
  fault_ = outcome_.what.fault;
  if (fault_) return;
  devices_ = outcome_.what.devices;
  probed_ = true;
  stage_ = "probed";
}

std::shared_ptr<plugin::backend> candidate::load(uint32_t index, probe::service& probes,
                                                 plugin::host_services& host) {
  if (auto loaded = loaded_.lock()) return loaded;
  if (!file_) return nullptr;
  if (const auto other = join_loaded(name_, conflicts())) {
    fault_ = plugin::defect{code::select_conflict, BITNET_UNAVAILABLE,
                            fmt::format("cannot be loaded beside {}, which this process has "
                                        "loaded: their manifests exclude each other",
                                        *other),
                            ""};
    return nullptr;
  }
  const auto reject = [&](plugin::defect d) -> std::shared_ptr<plugin::backend> {
    // A stale cached answer is no fault of the plugin: probe once more.
    if (outcome_.cached && subject_) {
      probes.forget(*subject_);
      subject_.reset();
      probed_ = asked_ = false;
      doubted_ = true;
      devices_.clear();
      stage_ = "inspected";
      start_probe(probes, host, true);
    } else {
      fault_ = std::move(d);
    }
    return nullptr;
  };
  auto opened = open(*file_, host);
  if (!opened) {
    leave_loaded(name_);
    return reject(std::move(opened.error()));
  }
  const auto devices = probe::list_devices(**opened);
  if (!devices) return reject(devices.error());
  auto changed =
      probe::differences(outcome_.what.version, devices_, (*opened)->version(), *devices);
  if (!changed.empty() || index >= devices->size())
    return reject({code::probe_mismatch, BITNET_UNAVAILABLE,
                   fmt::format("what it says changed between probing and loading: {}",
                               plugin::printable(plugin::join(changed, "; "), 300)),
                   ""});
  loaded_ = *opened;
  const probe::facts& said = outcome_.what;
  for (std::size_t i = 0; i < said.disabled.size(); ++i)
    host.log(BITNET_LOG_WARN, "probe",
             fmt::format("backend {}: kernel {} is disabled: {}", name_, said.disabled[i],
                         probe::why_disabled(said, i)));
  return std::move(*opened);
}

bool candidate::is_called(const std::string& name) const {
  return name == name_ ||
         (manifest_ && std::ranges::find(manifest_->aliases, name) != manifest_->aliases.end());
}

std::vector<std::string> candidate::conflicts() const {
  return manifest_ ? manifest_->conflicts : std::vector<std::string>();
}

uint32_t candidate::manifest_class() const {
  return manifest_ ? manifest_->device_class : 0;
}

int32_t candidate::priority() const {
  return manifest_ ? manifest_->priority : 0;
}

const std::vector<std::string>& candidate::warnings() const {
  static const std::vector<std::string> none;
  return manifest_ ? manifest_->warnings : none;
}

const plugin::inspection& candidate::facts() const {
  static const plugin::inspection none;
  return facts_ ? *facts_ : none;
}

bool candidate::is_disabled() const {
  return fault_ && fault_->code == code::manifest_disabled;
}

void candidate::judge(code c, std::string why, bool selected) {
  verdict_ = c;
  why_ = std::move(why);
  selected_ = selected;
}

backend_report candidate::describe() const {
  backend_report out;
  out.name = name_;
  out.stage = stage_;
  out.manifest = manifest_file_.string();
  out.library = library_.string();
  out.named = named_.string();
  if (manifest_) {
    out.version = manifest_->version;
    out.vendor = manifest_->vendor;
    out.license = manifest_->license;
    out.environment = environment::declared_variables(manifest_->depends_on.env);
  }
  if (facts_) {  // the plugin overrides its manifest
    out.version = facts_->note.version;
    out.vendor = facts_->note.vendor;
    out.license = facts_->note.license;
    out.build_id = facts_->build_id;
    out.abi = facts_->note.abi;
  }
  out.devices = devices_;
  out.standings.resize(devices_.size());
  out.fake = fake_;
  if (asked_ && !fake_) {
    out.probed = outcome_;
    out.probed->what.devices.clear();
  }
  if (running_) {
    out.stage = "probing";
    out.code = plugin::code_text(code::probe_pending);
    out.reason = fmt::format("still being probed, in {}", probe::stage_name(outcome_.reached));
    out.hint = plugin::code_hint(code::probe_pending);
  } else if (fault_) {
    out.code = plugin::code_text(fault_->code);
    out.reason = fault_->reason;
    out.hint = fault_->advice();
  } else {
    if (selected_ && !fake_) out.stage = "selected";
    // It may have been probed after the choice, for a list of all.
    const bool late = probed_ && verdict_ == code::select_not_probed;
    const code verdict = late ? code::ok : verdict_;
    out.code = plugin::code_text(verdict);
    out.reason = late ? "" : why_;
    out.hint = plugin::code_hint(verdict);
    if (out.reason.empty())
      out.reason = probed_ ? fmt::format("usable, {}{}", devices_.size(),
                                         devices_.size() == 1 ? " device" : " devices")
                           : "not probed";
  }
  if (fake_) out.reason += "; a fake of BITNET_GPU_FAKE, which computes nothing";
  const probe::facts& said = outcome_.what;
  for (std::size_t i = 0; i < said.disabled.size() && !fault_; ++i)
    out.reason +=
        fmt::format("; kernel {} is disabled: {}", said.disabled[i], probe::why_disabled(said, i));
  for (const std::string& note : outcome_.notes) out.reason += fmt::format("; note: {}", note);
  for (const std::string& warning : warnings()) out.reason += fmt::format("; note: {}", warning);
  return out;
}

}  // namespace bitnet::select
