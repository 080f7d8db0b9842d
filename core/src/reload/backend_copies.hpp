#pragma once
// The state of each copy of a plugin file that this process loaded.
//
//   active     new sessions take it
//   draining   replaced; sessions are still on it
//   retired    closed, and still mapped
//   unloaded   closed and gone from memory
//   failed     never served, since its reload was rejected; or its device is lost
//
// Threads any.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plugin/loading/backend.hpp"
#include "select/selection.hpp"

namespace bitnet::reload {

struct backend_copy {
  uint32_t number = 0;  // of this backend, from 1
  std::string backend, build_id, state, reason;
};

class backend_copies {
 public:
  // Returns the number of a copy that serves from now on; adds it if it is not known.
  uint32_t serve(const select::choice& c);
  // Notes a rejected copy, or one whose device is lost.
  void reject(const std::string& backend, const std::string& build_id, const std::string& reason);
  void lose(const plugin::backend& copy, const std::string& reason);

  [[nodiscard]] std::vector<backend_copy> all() const;
  // Replaced copies of a backend that still take memory: draining or retired.
  [[nodiscard]] uint32_t old_copies(const std::string& backend) const;

 private:
  struct record {
    uint32_t number = 0;
    std::string backend, build_id, reason;
    const plugin::backend* address = nullptr;  // only compared
    std::weak_ptr<plugin::backend> copy;
    plugin::mapped_identity file;
    bool current = false, failed = false;
  };
  [[nodiscard]] std::string state_of(const record& r) const;
  [[nodiscard]] bool is_mapped(const record& r) const;
  void forget();
  uint32_t next_number(const std::string& backend) const;

  mutable std::mutex mutex_;
  std::vector<record> records_;  // oldest first
};

}  // namespace bitnet::reload
