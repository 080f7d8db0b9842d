#include "doctor/verdicts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "basic/json.hpp"

namespace bitnet::host::doctor {
namespace {

using nlohmann::json;

// An installed backend's own report.
struct installed {
  std::string name, code, reason, hint;
  bool works = false;  // it has a usable device other than a processor
};

bool is_usable(const json& device) {
  return device.is_object() && device.contains("usable") && device["usable"] == true;
}

std::vector<installed> installed_backends(const json& backends) {
  std::vector<installed> out;
  for (const json& one : backends) {
    installed added{any_member(one, "name"), any_member(one, "code"), any_member(one, "reason"),
                    any_member(one, "hint")};
    for (const json& device : list_of(one, "devices"))
      if (is_usable(device) && any_member(device, "class") != "cpu") added.works = true;
    out.push_back(std::move(added));
  }
  return out;
}

// The best backend that computes on the device: "cuda:0"; "": none.
std::string driver_of(const json& backends, const std::string& address) {
  std::string best;
  uint64_t best_rank = UINT64_MAX;
  for (const json& one : backends)
    for (const json& device : list_of(one, "devices")) {
      if (!is_usable(device) || lower_address(any_member(device, "pci_address")) != address)
        continue;
      const auto rank = number_of(any_member(device, "rank")).value_or(UINT64_MAX - 1);
      if (rank >= best_rank) continue;
      best_rank = rank;
      best = fmt::format("{}:{}", any_member(one, "name"), any_member(device, "index"));
    }
  return best;
}

// Whether some backend computes on a device without reporting its address.
bool some_are_nameless(const json& backends) {
  for (const json& one : backends)
    for (const json& device : list_of(one, "devices"))
      if (is_usable(device) && any_member(device, "class") != "cpu" &&
          lower_address(any_member(device, "pci_address")).empty())
        return true;
  return false;
}

bool keeps_for_guests(const std::string& driver) {
  constexpr auto names = std::to_array<std::string_view>({"vfio-pci", "pci-stub", "xen-pciback"});
  return std::ranges::find(names, driver) != names.end();
}

bool works_with(const backend_hint& one, const std::string& driver) {
  return std::ranges::find(one.kernel_drivers, driver) != one.kernel_drivers.end();
}

std::vector<backend_hint> fitting(const hardware_hint& hint, const std::string& driver) {
  std::vector<backend_hint> out;
  std::ranges::copy_if(hint.backends, std::back_inserter(out),
                       [&](const backend_hint& one) { return works_with(one, driver); });
  return out;
}

std::vector<std::string> packages_of(const std::vector<backend_hint>& backends) {
  std::vector<std::string> out;
  out.reserve(backends.size());
  for (const backend_hint& one : backends) out.push_back(one.package);
  return out;
}

// "bitnet-backend-vulkan with mesa-vulkan-drivers"
std::string install_text(const std::vector<backend_hint>& backends) {
  std::vector<std::string> texts;
  texts.reserve(backends.size());
  for (const backend_hint& one : backends)
    texts.push_back(one.driver_package.empty()
                        ? one.package
                        : fmt::format("{} with {}", one.package, one.driver_package));
  return fmt::format("install {}", fmt::join(texts, ", or "));
}

// Every kernel driver that some backend works with, once.
std::vector<std::string> kernel_drivers_of(const hardware_hint& hint) {
  std::vector<std::string> out;
  for (const backend_hint& one : hint.backends)
    for (const std::string& driver : one.kernel_drivers)
      if (std::ranges::find(out, driver) == out.end()) out.push_back(driver);
  return out;
}

std::string kernel_advice(const hardware_hint& hint) {
  const std::string drivers = fmt::format("{}", fmt::join(kernel_drivers_of(hint), " or "));
  if (!hint.kernel_package.empty())
    return fmt::format("install {}, which brings the kernel driver {}, and restart the machine",
                       hint.kernel_package, drivers);
  return fmt::format("load the kernel driver {}: sudo modprobe {}", drivers,
                     kernel_drivers_of(hint).empty() ? "" : kernel_drivers_of(hint).front());
}

std::vector<node> nodes_of(const std::vector<node>& all, const hardware_hint& hint,
                           const std::string& address) {
  std::vector<node> out;
  for (const node& one : all)
    if ((one.address.empty() || one.address == address) &&
        std::ranges::any_of(hint.nodes, [&](auto& form) { return matches(one.path, form); }))
      out.push_back(one);
  return out;
}

void judge_access(verdict& v, const node& closed) {
  v.state = device_state::no_access;
  v.problem = fmt::format("this user may not use {}", closed.path);
  v.advice = closed.by_group
                 ? fmt::format(
                       "join the group {}, which owns {}: sudo usermod -aG {} \"$USER\", "
                       "then log in again",
                       closed.group, closed.path, closed.group)
                 : fmt::format("let a group use {}, by a rule of udev; its mode is {:04o}",
                               closed.path, closed.mode);
}

// Sets the obstacle between the kernel's driver and a backend. False: there is none.
bool judge_nodes(verdict& v, const hardware_hint& hint, const std::vector<node>& nodes) {
  if (hint.nodes.empty()) return false;
  const auto found = nodes_of(nodes, hint, v.device.address);
  if (found.empty()) {
    v.state = device_state::no_node;
    v.problem = fmt::format("the kernel drives it by {}, and none of {} is there", v.device.driver,
                            fmt::join(hint.nodes, ", "));
    v.advice = fmt::format("pass {} into the container; outside of one, restart the driver {}",
                           hint.nodes.front(), v.device.driver);
    return true;
  }
  const auto closed = std::ranges::find(found, false, &node::usable);
  if (closed != found.end()) judge_access(v, *closed);
  return closed != found.end();
}

void judge_kernel(verdict& v, const hardware_hint& hint) {
  v.advice = kernel_advice(hint);
  v.packages = packages_of(hint.backends);
  if (v.device.driver.empty()) {
    v.state = device_state::no_driver;
    v.problem = "no kernel driver is bound to it";
    return;
  }
  v.state = device_state::other_driver;
  v.problem =
      fmt::format("no backend is known to work with its kernel driver, {}", v.device.driver);
}

void judge_backends(verdict& v, const std::vector<backend_hint>& fits,
                    const std::vector<installed>& there) {
  const installed* failing = nullptr;
  for (const backend_hint& one : fits)
    for (const installed& other : there) {
      if (other.name != one.name) continue;
      if (other.works) {
        v.state = device_state::not_listed;
        v.problem = fmt::format("the backend {} works and does not list this device", one.name);
        v.advice = fmt::format(
            "look for a variable that hides it, such as CUDA_VISIBLE_DEVICES; "
            "`bitnet backends info {}` has what the backend reads",
            one.name);
        return;
      }
      if (failing == nullptr) failing = &other;
    }
  if (failing == nullptr) {
    v.state = device_state::no_backend;
    v.packages = packages_of(fits);
    v.problem = "no backend for it is installed";
    v.advice = install_text(fits);
    return;
  }
  v.state = device_state::failing;
  v.problem = fmt::format("the backend {} cannot be used: {}: {}", failing->name, failing->code,
                          failing->reason);
  v.advice = failing->hint.empty() ? fmt::format("run `bitnet backends info {}`", failing->name)
                                   : failing->hint;
}

void judge(verdict& v, const hardware_hint& hint, const std::vector<node>& nodes,
           const std::vector<installed>& there) {
  if (hint.backends.empty()) {
    v.state = device_state::idle;
    v.problem = hint.note;
    return;
  }
  const auto fits = fitting(hint, v.device.driver);
  if (fits.empty()) return judge_kernel(v, hint);
  if (judge_nodes(v, hint, nodes)) return;
  judge_backends(v, fits, there);
}

}  // namespace

std::string_view state_name(device_state state) {
  constexpr auto names = std::to_array<std::string_view>(
      {"driven", "no-access", "failing", "not-listed", "no-node", "other-driver", "no-driver",
       "no-backend", "passed-on", "idle", "unknown"});
  return names.at(static_cast<std::size_t>(state));
}

std::vector<verdict> judge_devices(const std::vector<pci_device>& devices,
                                   const std::vector<node>& nodes, const hardware_hints& hints,
                                   const json& backends) {
  const auto there = installed_backends(backends);
  const bool nameless = some_are_nameless(backends);
  std::vector<verdict> out;
  for (const pci_device& one : devices) {
    const hardware_hint* hint = hint_for(hints, one);
    verdict v;
    v.device = one;
    if (hint != nullptr) v.name = hint->name;
    v.driven_by = driver_of(backends, one.address);
    if (!v.driven_by.empty()) {
      v.state = device_state::driven;
    } else if (keeps_for_guests(one.driver)) {
      v.state = device_state::passed_on;
      v.problem = fmt::format("its driver {} keeps it for virtual machines", one.driver);
    } else if (nameless && (hint == nullptr || !hint->backends.empty())) {
      v.problem = "a backend computes on a device and does not say on which one";
    } else if (hint != nullptr) {
      judge(v, *hint, nodes, there);
    }
    out.push_back(std::move(v));
  }
  return out;
}

}  // namespace bitnet::host::doctor
