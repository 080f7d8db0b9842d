#include <chrono>
#include <nlohmann/json.hpp>

#include "api/edge.hpp"
#include "api/objects.hpp"
#include "base/environment.hpp"
#include "text/printable.hpp"

namespace bitnet::api {
namespace {

std::vector<threads::cpu_list> cpus_of(const std::vector<threads::worker_place>& places) {
  std::vector<threads::cpu_list> out;
  out.reserve(places.size());
  for (const threads::worker_place& one : places) out.push_back(one.cpus);
  return out;
}

}  // namespace

services::services(const bitnet_runtime_options& options, const threads::cpu_list& cpus)
    : services(options, cpus, cpus.empty() ? threads::allowed_cpus() : cpus) {}

services::services(const bitnet_runtime_options& options, const threads::cpu_list& wanted,
                   const threads::cpu_list& usable)
    : strict_(options.cpu_strict != 0),
      usable_(usable),
      width_(options.n_threads != 0 ? options.n_threads : threads::available(usable)),
      // A spinning thread without a CPU of its own would keep another one from working.
      poll_(width_ <= usable.size() ? options.poll : 0),
      params_(options.backend_params, options.backend_params + options.n_backend_params),
      places_(threads::places_here(usable, width_, strict_)),
      pool_(width_, {poll_, wanted, cpus_of(places_)}),
      log_level_(options.log_level),
      log_(options.log),
      log_user_(options.log_user),
      trace_{options.trace, options.trace_user, options.trace_times != 0} {}

services::~services() = default;

void services::log(uint32_t level, std::string_view component, std::string_view message) {
  if (log_ == nullptr || level > log_level_) return;
  const std::string line = text::printable(std::string(component).append(": ").append(message));
  if (in_log_callback) return;  // closing an object there may log
  const std::lock_guard lock(log_mutex_);
  in_log_callback = true;
  log_(log_user_, level, line.c_str());
  in_log_callback = false;
}

uint64_t services::now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

std::vector<std::pair<std::string, std::string>> services::params(std::string_view name) {
  // If a key is given twice, the last one counts.
  std::vector<std::pair<std::string, std::string>> out;
  if (const auto folder = environment::backend_cache(name); !folder.empty())
    out.emplace_back("cache", folder.string());
  for (auto& one : environment::backend_params(name)) out.push_back(std::move(one));
  for (const std::string& one : params_) {
    const auto dot = one.find('.'), equals = one.find('=');
    if (one.substr(0, dot) == name || one.substr(0, dot) == "*")
      out.emplace_back(one.substr(dot + 1, equals - dot - 1), one.substr(equals + 1));
  }
  out.emplace_back("poll", std::to_string(poll_));  // for plugins with their own threads
  return out;
}

nlohmann::ordered_json services::describe_threads() const {
  nlohmann::ordered_json out = {
      {"count", pool_.width()}, {"cpus", threads::ranges(usable_)}, {"strict", strict_}};
  if (const auto& why = pool_.shortage()) {
    out["wanted"] = width_;
    out["reason"] = why->message;
  }
  if (places_.empty()) return out;
  const std::vector<threads::cpu_list> now = pool_.places();
  for (std::size_t i = 0; i < now.size(); ++i)
    out["places"].push_back({{"cpus", threads::ranges(now[i])}, {"node", places_[i].node}});
  return out;
}

}  // namespace bitnet::api
