#pragma once
// The services that the core offers to plugins; host_table.hpp turns them into a C table.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bitnet/abi/base.h"
#include "bitnet/abi/host.h"

namespace bitnet::plugin {

// One per runtime; outlives every backend. Made in api/.
struct host_services {
  virtual ~host_services() = default;
  virtual void log(uint32_t level, std::string_view component, std::string_view message) = 0;
  virtual uint32_t parallel_width() = 0;
  virtual bitnet_status parallel_run(uint32_t n_workers, bitnet_task task, void* arg) = 0;
  virtual bool cancelled(uint64_t token) = 0;
  virtual uint64_t now_ns() = 0;
  // {key, value} settings for backend `name`, from the environment (BITNET_<NAME>_<KEY>).
  virtual std::vector<std::pair<std::string, std::string>> params(std::string_view name) = 0;
};

}  // namespace bitnet::plugin
