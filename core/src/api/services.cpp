#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <iterator>

#include "api/objects.hpp"
#include "base/environment.hpp"

namespace bitnet::api {
namespace {

spdlog::level::level_enum level_of(uint32_t level) {
  switch (level) {
    case BITNET_LOG_ERROR:
      return spdlog::level::err;
    case BITNET_LOG_WARN:
      return spdlog::level::warn;
    case BITNET_LOG_INFO:
      return spdlog::level::info;
    default:
      return spdlog::level::debug;
  }
}

uint32_t level_of(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::critical:
    case spdlog::level::err:
      return BITNET_LOG_ERROR;
    case spdlog::level::warn:
      return BITNET_LOG_WARN;
    case spdlog::level::info:
      return BITNET_LOG_INFO;
    default:
      return BITNET_LOG_DEBUG;
  }
}

// Hands each message, formatted, to the program's callback.
class callback_sink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  callback_sink(bitnet_log_callback target, void* user) : log_(target), user_(user) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (log_ == nullptr) return;
    const std::string text(message.payload.data(), message.payload.size());
    log_(user_, level_of(message.level), text.c_str());
  }
  void flush_() override {}

  bitnet_log_callback log_;
  void* user_;
};

}  // namespace

services::services(const bitnet_runtime_options& options, const threads::cpu_list& cpus)
    : services(options, cpus, cpus.empty() ? threads::allowed_cpus() : cpus) {}

services::services(const bitnet_runtime_options& options, const threads::cpu_list& wanted,
                   const threads::cpu_list& usable)
    : width_(options.n_threads != 0 ? options.n_threads : threads::available(usable)),
      // A thread that looks while it has no CPU of its own keeps another from working.
      poll_(width_ <= usable.size() ? options.poll : 0),
      params_(options.backend_params, options.backend_params + options.n_backend_params),
      pool_(width_, {poll_, wanted}),
      logger_(std::make_shared<spdlog::logger>(
          "bitnet", std::make_shared<callback_sink>(options.log, options.log_user))) {
  logger_->set_level(level_of(options.log_level));
}

services::~services() = default;

void services::log(uint32_t level, std::string_view component, std::string_view message) {
  logger_->log(level_of(level), "{}: {}", component, message);
}

bool services::cancelled(uint64_t token) {
  if (token == 0) return false;
  const std::lock_guard lock(turn_);
  const auto found = followed_.find(token);
  return found != followed_.end() && found->second->load(std::memory_order_relaxed);
}

uint64_t services::now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

std::vector<std::pair<std::string, std::string>> services::params(std::string_view name) {
  // A key counts where it is given last.
  std::vector<std::pair<std::string, std::string>> out;
  if (const auto folder = environment::backend_cache(name); !folder.empty())
    out.emplace_back("cache", folder.string());
  for (auto& one : environment::backend_params(name)) out.push_back(std::move(one));
  for (const std::string& one : params_) {
    const auto dot = one.find('.'), equals = one.find('=');
    if (one.substr(0, dot) == name || one.substr(0, dot) == "*")
      out.emplace_back(one.substr(dot + 1, equals - dot - 1), one.substr(equals + 1));
  }
  out.emplace_back("poll", std::to_string(poll_));  // for those that wait by themselves
  return out;
}

uint64_t services::follow(const std::atomic<bool>& flag) {
  const std::lock_guard lock(turn_);
  followed_[next_token_] = &flag;
  return next_token_++;
}

void services::forget(uint64_t token) {
  const std::lock_guard lock(turn_);
  followed_.erase(token);
}

}  // namespace bitnet::api
