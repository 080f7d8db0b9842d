#include "reload/backend_copies.hpp"

#include <algorithm>

namespace bitnet::reload {
namespace {

// How many records of copies that take no memory are kept, for the report.
constexpr std::size_t most_past_kept = 8;

}  // namespace

uint32_t backend_copies::serve(const select::choice& c) {
  const std::lock_guard lock(mutex_);
  const std::string& name = c.backend->name();
  for (const record& r : records_)
    if (r.copy.lock() == c.backend) return r.number;
  const uint32_t number = next_number(name);
  for (record& r : records_)
    if (r.backend == name) r.current = false;
  records_.push_back(
      {number, name, c.build_id, "", c.backend.get(), c.backend, c.backend->mapped(), true, false});
  forget();
  return number;
}

void backend_copies::reject(const std::string& backend, const std::string& build_id,
                            const std::string& reason) {
  const std::lock_guard lock(mutex_);
  records_.push_back(
      {next_number(backend), backend, build_id, reason, nullptr, {}, {}, false, true});
  forget();
}

void backend_copies::lose(const plugin::backend& copy, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  for (record& r : records_)
    if (r.address == &copy && !r.copy.expired()) {
      r.failed = true;
      r.reason = reason;
    }
}

// Whether a closed copy is still in memory. A mapped file keeps its inode: if a younger copy has
// the same one, either the old file is gone or both are one mapping.
bool backend_copies::is_mapped(const record& r) const {
  const bool taken_over = std::ranges::any_of(
      records_, [&](const record& other) { return &other > &r && other.file == r.file; });
  return !taken_over && plugin::is_mapped(r.file);
}

std::string backend_copies::state_of(const record& r) const {
  if (r.failed) return "failed";
  if (!r.copy.expired()) return r.current ? "active" : "draining";
  return is_mapped(r) ? "retired" : "unloaded";
}

std::vector<backend_copy> backend_copies::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<backend_copy> out;
  out.reserve(records_.size());
  for (const record& r : records_)
    out.push_back({r.number, r.backend, r.build_id, state_of(r), r.reason});
  return out;
}

uint32_t backend_copies::old_copies(const std::string& backend) const {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(std::ranges::count_if(records_, [&](const record& r) {
    if (r.backend != backend || r.current || r.address == nullptr) return false;
    return !r.copy.expired() || is_mapped(r);
  }));
}

// Drops the oldest records of past copies, so that a thousand reloads leave no thousand records.
void backend_copies::forget() {
  const auto is_past = [&](const record& r) {
    return r.address == nullptr || (r.copy.expired() && !is_mapped(r));
  };
  auto past = static_cast<std::size_t>(std::ranges::count_if(records_, is_past));
  std::vector<record> kept;
  for (const record& r : records_) {
    if (past > most_past_kept && is_past(r))
      --past;
    else
      kept.push_back(r);
  }
  records_ = std::move(kept);
}

uint32_t backend_copies::next_number(const std::string& backend) const {
  uint32_t last = 0;
  for (const record& r : records_)
    if (r.backend == backend) last = std::max(last, r.number);
  return last + 1;
}

}  // namespace bitnet::reload
