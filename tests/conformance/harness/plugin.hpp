#pragma once
// The plugin file under test, opened as a host would.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "harness/host_services.hpp"
#include "harness/options.hpp"
#include "model/calls.hpp"
#include "model/model.hpp"

namespace bitnet::conformance {

// The options of this run; set once, before any test.
const options& run_options();
void set_run_options(const options& o);

// The file, loaded once in this process and never unloaded.
bitnet_backend_entry entry_of_plugin();
// True if `address` lies in the file's code or data.
bool inside_plugin(const void* address);

// Memory for a table, with a pattern behind what the host says that it understands.
class guarded_table {
 public:
  explicit guarded_table(uint32_t struct_size = sizeof(bitnet_backend_v0));
  bitnet_backend_v0& get() { return *reinterpret_cast<bitnet_backend_v0*>(room_); }
  // How many bytes behind the table were written to.
  uint32_t overrun() const;
  // True if no byte from `from` up to the table's end was written to.
  bool untouched(uint32_t from) const;

 private:
  static constexpr uint32_t margin = 256;
  static constexpr unsigned char pattern = 0;  // the contract's: the host zeroes it
  static constexpr unsigned char canary = 0xa5;
  uint32_t struct_size_;
  alignas(16) unsigned char room_[sizeof(bitnet_backend_v0) + margin];
};

struct open_how {
  uint32_t purpose = BITNET_PURPOSE_CONFORMANCE;
  uint32_t generation = 1;
  uint32_t width = 3;  // of the host's pool
  std::function<void(bitnet_open_request&)> change = {};
  bitnet_backend_entry entry = nullptr;  // nullptr: the plugin's
};

// One open backend; closes it, and says when the plugin calls back afterwards.
class opened {
 public:
  explicit opened(const open_how& how = {});
  ~opened();
  opened(const opened&) = delete;
  opened& operator=(const opened&) = delete;

  const bitnet_backend_v0& table() const { return table_; }
  host_services& host() { return host_; }

 private:
  host_services host_;
  bitnet_backend_v0 table_{};
};

// Calls the entry with a request as the kit makes it.
outcome call_entry(bitnet_backend_entry entry, const bitnet_host_v0* host, bitnet_backend_v0& table,
                   const open_how& how);

// An open backend with its device; skips the test, with the plugin's reason, when there is none.
class opened_device {
 public:
  explicit opened_device(const open_how& how = {});
  ~opened_device();
  opened_device(const opened_device&) = delete;
  opened_device& operator=(const opened_device&) = delete;

  const bitnet_backend_v0& table() const { return backend.table(); }
  host_services& host() { return backend.host(); }
  bitnet_device_info info() const;
  // Of each op of a model, as graph_query answers.
  std::vector<uint32_t> levels(const model& m) const;
  uint32_t level(uint32_t op, uint32_t format) const;  // in a small graph around it
  std::vector<bitnet_kernel_info> kernels() const;
  void list_kernels() const;  // whatever the answer is

  opened backend;
  bitnet_device* device = nullptr;
};

}  // namespace bitnet::conformance
