#pragma once
// The smallest host that can drive a backend: threads made for each parallel run, a cancel switch.

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bitnet/abi/backend.h"
#include "model/calls.hpp"
#include "model/one_op.hpp"
#include "model/requests.hpp"

namespace bitnet::parity {

using conformance::attempt;
using conformance::must;
using conformance::outcome;

class tiny_host {
 public:
  explicit tiny_host(uint32_t width) : width_(width) {
    table_.struct_size = sizeof table_;
    table_.self = this;
    table_.log = [](void*, uint32_t level, bitnet_str component, bitnet_str message) {
      if (level > BITNET_LOG_WARN) return;
      const std::scoped_lock lock(complaints_lock);
      complaints.push_back(std::string(component.data, component.size) + ": " +
                           std::string(message.data, message.size));
    };
    table_.parallel_width = [](void* self) { return static_cast<tiny_host*>(self)->width_; };
    table_.parallel_run = [](void* self, uint32_t n, bitnet_task task, void* arg) {
      const auto& host = *static_cast<tiny_host*>(self);
      if (n < 1 || n > host.width_) return bitnet_status{BITNET_INVALID_ARGUMENT};
      std::vector<std::thread> others;
      for (uint32_t w = 1; w < n; ++w) others.emplace_back([=] { task(arg, w, n); });
      task(arg, 0, n);
      for (std::thread& t : others) t.join();
      return bitnet_status{BITNET_OK};
    };
    table_.cancelled = [](void* self, uint64_t) -> uint32_t {
      auto& host = *static_cast<tiny_host*>(self);
      ++host.cancel_checks;
      return host.cancel_after >= 0 && host.cancel_checks > host.cancel_after ? 1 : 0;
    };
    table_.now_ns = [](void*) {
      return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    };
  }
  tiny_host(const tiny_host&) = delete;
  tiny_host& operator=(const tiny_host&) = delete;

  const bitnet_host_v0* table() const { return &table_; }

  int64_t cancel_after = -1;  // questions that are answered with "no" first; -1: all of them
  int64_t cancel_checks = 0;  // asked by worker 0 only

  // Warnings and errors that any backend of the process has logged.
  static inline std::mutex complaints_lock;
  static inline std::vector<std::string> complaints;

 private:
  bitnet_host_v0 table_{};
  uint32_t width_;
};

// To load a backend with these settings, which stay where they are until it is open.
inline bitnet_open_request to_load(const std::vector<bitnet_param>& params) {
  bitnet_open_request request{};
  request.struct_size = sizeof request;
  request.purpose = BITNET_PURPOSE_LOAD;
  request.abi_minor_min = request.abi_minor_max = BITNET_ABI_MINOR;
  request.generation = 1;
  request.n_params = static_cast<uint32_t>(params.size());
  request.params = params.data();
  return request;
}

// A backend opened through its exported symbol, as the core does it.
class plugin {
 public:
  using settings = std::vector<std::pair<std::string, std::string>>;
  plugin(const std::string& path, tiny_host& host, const std::string& isa = "",
         const std::string& key = "isa")
      : plugin(path, host, isa.empty() ? settings{} : settings{{key, isa}}) {}
  plugin(const std::string& path, tiny_host& host, const settings& user) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(dlerror());
    const auto entry =
        reinterpret_cast<bitnet_backend_entry>(dlsym(library, BITNET_BACKEND_ENTRY_NAME));
    if (!entry) throw std::runtime_error(path + " has no entry");
    // key=value, of the driver that tests run on: where it is, or keeps what it compiled.
    const char* given = std::getenv("BITNET_TEST_SETTING");
    const std::string_view setting = given ? given : "";
    const size_t equals = setting.find('=');
    std::vector<bitnet_param> params;
    for (const auto& [key, value] : user)
      params.push_back({{key.data(), key.size()}, {value.data(), value.size()}});
    if (equals != std::string_view::npos)
      params.push_back(
          {{setting.data(), equals}, {setting.data() + equals + 1, setting.size() - equals - 1}});
    const bitnet_open_request request = to_load(params);
    table.struct_size = sizeof table;
    must([&](bitnet_error* e) { return entry(host.table(), &request, &table, e); });
  }
  ~plugin() { table.close(table.self); }
  plugin(const plugin&) = delete;
  plugin& operator=(const plugin&) = delete;

  bitnet_backend_v0 table{};
};

// What the device answers for one op of a model.
inline uint32_t level_of(const bitnet_backend_v0& table, bitnet_device* device,
                         const conformance::model& m, uint32_t op) {
  const std::vector<bitnet_port> ports = m.ports();
  const bitnet_graph graph = m.graph(ports);
  const std::vector<bitnet_tensor_desc> descs = m.descs();
  const bitnet_program_options options = conformance::least_options();
  const bitnet_query_request request = conformance::query_request(graph, descs, options);
  std::vector<uint32_t> levels(m.ops.size(), 99);
  bitnet_graph_estimate estimate{};
  estimate.struct_size = sizeof estimate;
  conformance::must([&](bitnet_error* e) {
    return table.graph_query(device, &request, levels.data(), &estimate, e);
  });
  for (std::size_t i = 0; i < m.ops.size(); ++i)
    if (m.ops[i].op == op) return levels[i];
  return 99;
}
// And for one op on weights of that format.
inline uint32_t level_of(const bitnet_backend_v0& table, bitnet_device* device, uint32_t op,
                         uint32_t format) {
  return level_of(table, device, conformance::one_op_model(op, format), op);
}

}  // namespace bitnet::parity
