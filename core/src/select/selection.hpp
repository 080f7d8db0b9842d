#pragma once
// Which backend computes, and why. The only place that decides it.
//
// The report object made here travels down to the log line, --json and the C API.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bitnet/abi/backend.h"
#include "plugin/backend.hpp"
#include "plugin/policy.hpp"

namespace bitnet::select {

// A parsed request: "auto", "cpu", "gpu", "cuda:1", "cuda,cpu".
struct request {
  std::string text = "auto";
  std::string requested_by = "default";
  bool require_first = false;
  bool allow_fallback = false;
};

// A backend and device that were loaded and opened. `backend` keeps the plugin alive.
struct choice {
  std::shared_ptr<plugin::backend> backend;
  uint32_t device_index = 0;
  bitnet_device_info device{};
};

struct device_report {
  bitnet_device_info info{};
  std::vector<bitnet_kernel_info> kernels;
};

// What became of one candidate. `stage` is the last one reached: found, inspected, loaded, probed,
// selected.
struct backend_report {
  std::string name, stage, code, reason, hint;
  std::string manifest, library, version, vendor, license, build_id, abi;
  std::vector<device_report> devices;
};

struct report {
  std::string requested = "auto", requested_by = "default";
  std::vector<std::string> detected;  // probed successfully on this machine, best first
  std::string selected;               // "" when none
  std::string selected_device;        // "cpu:0"
  std::vector<backend_report> backends;
  struct directory {
    std::string path, result;
  };
  std::vector<directory> searched;

  [[nodiscard]] std::string line() const;  // "requested=auto detected=[cpu] selected=cpu"
  [[nodiscard]] std::string json() const;
};

// Everything that was found: manifests are read. A plugin's file is opened, inspected and loaded
// only when a request could mean it.
class registry {
 public:
  // `directories` replaces the built-in search path when not empty.
  static registry scan(const std::vector<std::filesystem::path>& directories,
                       plugin::host_services& host, plugin::policy rules = {});

  // Loads and probes what the request can use, chooses, explains. On failure the report is filled
  // just the same. BITNET_UNAVAILABLE, BITNET_REJECTED, BITNET_INVALID_ARGUMENT (malformed
  // request).
  result<choice> select(const request& wanted, report& out);
  // Loads and probes every backend, for `backends list|info|why`.
  void probe_all(report& out);

  registry(registry&&) noexcept;
  registry& operator=(registry&&) noexcept;
  ~registry();

 private:
  struct contents;
  explicit registry(std::unique_ptr<contents> c);
  std::unique_ptr<contents> contents_;
};

}  // namespace bitnet::select
