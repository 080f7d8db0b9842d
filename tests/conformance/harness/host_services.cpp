#include "harness/host_services.hpp"

#include <chrono>
#include <string>

#include "harness/channel.hpp"

namespace bitnet::conformance {

struct host_services::state {
  bitnet_host_v0 table{};
  uint32_t width = 1;
  std::atomic<const char*> forbidden{nullptr};
  std::atomic<int64_t> cancel_after{-1}, cancel_questions{0};
  std::atomic<uint64_t> log_lines{0}, runs{0};

  // The workers 1 ... width - 1, started by the first run.
  std::mutex mutex;
  std::condition_variable work_came, work_done;
  std::vector<std::thread> threads;
  bitnet_task task = nullptr;
  void* arg = nullptr;
  uint32_t workers = 0, left = 0;
  uint64_t round = 0;
  bool ends = false;
  std::mutex one_run;  // runs of several queues wait for each other

  void check(const char* callback) const {
    const char* since = forbidden.load();
    if (since == nullptr) return;
    const std::string text = std::string("it called host->") + callback + " after " + since;
    channel::breach("lifecycle", "callback", text.c_str());
  }

  void work(uint32_t worker) {
    std::unique_lock lock(mutex);
    for (uint64_t seen = 0;;) {
      work_came.wait(lock, [&] { return ends || round != seen; });
      if (ends) return;
      seen = round;
      if (worker >= workers) continue;
      const bitnet_task share = task;
      void* with = arg;
      const uint32_t n = workers;
      lock.unlock();
      share(with, worker, n);
      lock.lock();
      if (--left == 0) work_done.notify_all();
    }
  }

  bitnet_status run(uint32_t n, bitnet_task what, void* with) {
    if (n < 1 || n > width || what == nullptr) {
      channel::breach(
          "threads", "parallel_run",
          ("it asked for " + std::to_string(n) + " workers of " + std::to_string(width)).c_str());
      return BITNET_INVALID_ARGUMENT;
    }
    const std::scoped_lock alone(one_run);
    ++runs;
    {
      const std::scoped_lock lock(mutex);
      for (auto w = static_cast<uint32_t>(threads.size()) + 1; w < width; ++w)
        threads.emplace_back([this, w] { work(w); });
      task = what;
      arg = with;
      workers = n;
      left = n - 1;
      ++round;
    }
    work_came.notify_all();
    what(with, 0, n);
    std::unique_lock lock(mutex);
    work_done.wait(lock, [&] { return left == 0; });
    workers = 0;
    return BITNET_OK;
  }
};

namespace {

host_services::state& state_of(void* self) {
  return *static_cast<host_services::state*>(self);
}

void log(void* self, uint32_t level, bitnet_str component, bitnet_str message) {
  state_of(self).check("log");
  ++state_of(self).log_lines;
  if (level > BITNET_LOG_DEBUG || (component.data == nullptr && component.size != 0) ||
      (message.data == nullptr && message.size != 0))
    channel::breach("hygiene", "log", "it logged at an unknown level, or a NULL string");
}
uint32_t parallel_width(void* self) {
  state_of(self).check("parallel_width");
  return state_of(self).width;
}
bitnet_status parallel_run(void* self, uint32_t n, bitnet_task task, void* arg) {
  state_of(self).check("parallel_run");
  return state_of(self).run(n, task, arg);
}
uint32_t cancelled(void* self, uint64_t token) {
  host_services::state& s = state_of(self);
  s.check("cancelled");
  if (token == 0) return 0;
  const int64_t asked = ++s.cancel_questions;
  const int64_t limit = s.cancel_after.load();
  return limit >= 0 && asked > limit ? 1 : 0;
}
uint64_t now_ns(void* self) {
  state_of(self).check("now_ns");
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace

host_services::host_services(uint32_t width) {
  static std::mutex one_at_a_time;
  static auto& all = *new std::vector<std::unique_ptr<state>>;  // for as long as the process lives
  {
    const std::scoped_lock lock(one_at_a_time);
    state_ = all.emplace_back(std::make_unique<state>()).get();
  }
  state_->width = width;
  state_->table = {sizeof(bitnet_host_v0), 0,         state_, log, parallel_width,
                   parallel_run,           cancelled, now_ns};
}

host_services::~host_services() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->ends = true;
  }
  state_->work_came.notify_all();
  for (std::thread& t : state_->threads) t.join();
  state_->threads.clear();
}

const bitnet_host_v0* host_services::table() const {
  return &state_->table;
}
void host_services::forbid(const char* since) {
  state_->forbidden = since;
}
void host_services::cancel_after(int64_t n) {
  state_->cancel_questions = 0;
  state_->cancel_after = n;
}
int64_t host_services::cancel_questions() const {
  return state_->cancel_questions.load();
}
uint64_t host_services::log_lines() const {
  return state_->log_lines.load();
}
uint64_t host_services::runs() const {
  return state_->runs.load();
}

}  // namespace bitnet::conformance
