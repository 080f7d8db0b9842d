#include "select/candidate.hpp"

#include <cstring>
#include <utility>

#include "base/environment.hpp"
#include "plugin/text.hpp"
#include "plugin/trust.hpp"
#include "select/probe.hpp"

namespace bitnet::select {

using plugin::code;

namespace {

// What does not change while a device is there; sizes may.
bool is_same_device(const bitnet_device_info& a, const bitnet_device_info& b) {
  return a.device_class == b.device_class && std::strcmp(a.name, b.name) == 0 &&
         std::strcmp(a.uuid, b.uuid) == 0 && std::strcmp(a.pci_address, b.pci_address) == 0;
}

}  // namespace

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
  auto library = plugin::locate_library(m.library, environment::backend_directory());
  if (!library) return std::unexpected(std::move(library.error()));
  library_ = std::move(*library);
  return {};
}

void candidate::leave_out(plugin::defect why) {
  fault_ = std::move(why);
}

void candidate::inspect() {
  if (facts_ || fault_ || !manifest_) return;
  if (auto fine = examine(*manifest_); !fine)
    fault_ = std::move(fine.error());
  else
    stage_ = "inspected";
}

plugin::checked<void> candidate::examine(const plugin::manifest& m) {
  auto file = plugin::open_trusted(library_);
  if (!file) return std::unexpected(std::move(file.error()));
  library_ = file->path;
  file_ = std::move(*file);
  auto facts = plugin::inspect_file(*file_, m.packages, m.sha256);
  if (!facts) return std::unexpected(std::move(facts.error()));
  facts_ = *facts;
  if (facts->note.name != name_)
    return plugin::reject(code::inspect_name, plugin::printable(library_.string(), 400) +
                                                  " is backend '" + facts->note.name +
                                                  "', but the manifest is for '" + name_ + "'");
  return plugin::check_file(*rules_, *facts, *file_);
}

plugin::checked<std::shared_ptr<plugin::backend>> candidate::open(uint32_t purpose,
                                                                  plugin::host_services& host) {
  if (auto fine = plugin::check_unchanged(*file_); !fine)
    return std::unexpected(std::move(fine.error()));
  return plugin::backend::open(*file_, name_, purpose, host);
}

void candidate::probe(plugin::host_services& host) {
  inspect();
  if (probed_ || fault_) return;
  const auto opened = open(BITNET_PURPOSE_PROBE, host);
  if (!opened) {
    fault_ = opened.error();
    return;
  }
  stage_ = "loaded";
  auto devices = probe_devices(**opened);
  if (!devices) {
    fault_ = std::move(devices.error());
    return;
  }
  devices_ = std::move(*devices);
  probed_ = true;
  stage_ = "probed";
}

std::shared_ptr<plugin::backend> candidate::load(uint32_t index, plugin::host_services& host) {
  auto opened = open(BITNET_PURPOSE_LOAD, host);
  if (!opened) {
    fault_ = std::move(opened.error());
    return nullptr;
  }
  const auto devices = probe_devices(**opened);
  if (!devices) {
    fault_ = devices.error();
    return nullptr;
  }
  if (devices->size() != devices_.size() ||
      !is_same_device((*devices)[index].info, devices_[index].info)) {
    fault_ =
        plugin::defect{code::probe_answer, BITNET_UNAVAILABLE,
                       "its devices changed between probing and loading", "run the command again"};
    return nullptr;
  }
  return std::move(*opened);
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
  if (manifest_) {
    out.version = manifest_->version;
    out.vendor = manifest_->vendor;
    out.license = manifest_->license;
  }
  if (facts_) {  // the plugin knows better than its manifest
    out.version = facts_->note.version;
    out.vendor = facts_->note.vendor;
    out.license = facts_->note.license;
    out.build_id = facts_->build_id;
    out.abi = facts_->note.abi;
  }
  out.devices = devices_;
  if (fault_) {
    out.code = plugin::code_text(fault_->code);
    out.reason = fault_->reason;
    out.hint = fault_->advice();
  } else {
    if (selected_) out.stage = "selected";
    out.code = plugin::code_text(verdict_);
    out.reason = why_;
    out.hint = plugin::code_hint(verdict_);
    if (why_.empty())
      out.reason = probed_ ? "usable, " + std::to_string(devices_.size()) +
                                 (devices_.size() == 1 ? " device" : " devices")
                           : "not probed";
  }
  for (const std::string& warning : warnings()) out.reason += "; note: " + warning;
  return out;
}

}  // namespace bitnet::select
