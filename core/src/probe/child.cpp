#include "probe/child.hpp"

#include <fmt/core.h>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "bitnet/abi/ops.h"
#include "plugin/codes/text.hpp"
#include "plugin/loading/backend.hpp"
#include "plugin/loading/kept_state.hpp"
#include "probe/crash.hpp"
#include "probe/frame.hpp"
#include "probe/hygiene.hpp"
#include "probe/outcome.hpp"
#include "probe/sandbox.hpp"
#include "probe/self_test.hpp"
#include "probe/task.hpp"

namespace bitnet::probe {
namespace {

using plugin::code;

// [any] Each message is sent as a whole: a plugin's threads may log while a stage is reported.
class message_sender {
 public:
  explicit message_sender(int fd) : fd_(fd) {}
  void say(frame_kind kind, std::string_view payload) {
    const std::string bytes = encode(kind, payload);
    const std::scoped_lock lock(sending_);
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t n = send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      // There is no other way to report this; no exit handler of the plugin may run.
      if (n <= 0) _exit(exit_cannot_speak);
      done += static_cast<std::size_t>(n);
    }
  }
  void begin(stage s) {
    const char number = static_cast<char>(s);
    say(frame_kind::begin, {&number, 1});
  }

 private:
  int fd_;
  std::mutex sending_;
};

// Services with one worker and without cancelling; the plugin's log goes to the core.
class child_services final : public plugin::host_services {
 public:
  child_services(message_sender& out, const task& t) : out_(out), task_(t) {}
  void log(uint32_t level, std::string_view, std::string_view message) override {
    const std::string text = plugin::printable(message, 1000);
    if (level <= BITNET_LOG_WARN) {
      const std::scoped_lock lock(warnings_mutex_);
      warnings_.push_back(text);
      if (warnings_.size() > most_warnings) warnings_.pop_front();
    }
    out_.say(frame_kind::log, static_cast<char>('0' + std::min(level, 3U)) + text);
  }
  uint32_t parallel_width() override { return 1; }
  bitnet_status parallel_run(uint32_t n, bitnet_task work, void* arg) override {
    if (n != 1) return BITNET_INVALID_ARGUMENT;
    work(arg, 0, 1);
    return BITNET_OK;
  }
  bool cancelled(uint64_t) override { return false; }
  uint64_t now_ns() override {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now().time_since_epoch())
                                     .count());
  }
  std::vector<std::pair<std::string, std::string>> params(std::string_view) override {
    return task_.params;
  }
  // The last warning that names `what`; "" if none of the kept ones does.
  [[nodiscard]] std::string warning_about(const std::string& what) const {
    const std::scoped_lock lock(warnings_mutex_);
    const auto at = std::find_if(warnings_.rbegin(), warnings_.rend(), [&](const std::string& one) {
      return one.find(what) != std::string::npos;
    });
    return at == warnings_.rend() ? "" : *at;
  }

 private:
  static constexpr std::size_t most_warnings = 256;
  message_sender& out_;
  const task& task_;
  mutable std::mutex warnings_mutex_;  // plugins log from any thread
  std::deque<std::string> warnings_;   // the last ones
};

std::size_t threads() {
  std::error_code ignored;
  std::filesystem::directory_iterator all("/proc/self/task", ignored);
  return ignored ? 0 : static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// A thread that was asked to end may need a moment.
bool threads_end(std::size_t baseline) {
  constexpr int tries = 50;
  for (int i = 0; i < tries && threads() > baseline; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return threads() <= baseline;
}

bool has_children() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

// Peak memory of this process; 0 if the kernel does not report it.
uint64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  return 0;
}

plugin::defect thrown(stage s, const std::string& what) {
  return {code::probe_throws, BITNET_REJECTED,
          fmt::format("it let an exception out of a call in {}{}", stage_name(s), what), ""};
}

// Each stage may throw, if a plugin throws against the rules.
class probe_run {
 public:
  probe_run(const task& t, message_sender& out, facts& f)
      : task_(t), facts_(f), services_(out, t), baseline_(threads()) {
    facts_.disabled = t.disabled;
    facts_.wrong_results = t.wrong_results;
    plugin::leave_state_alone();
  }

  plugin::checked<void> open() {
    const auto file = plugin::open_trusted(task_.library);
    if (!file) return std::unexpected(file.error());
    if (file->identity != task_.identity)
      return plugin::reject(code::trust_changed,
                            fmt::format("{} changed after it was inspected",
                                        plugin::printable(task_.library.string(), 400)));
    return reopen();
  }

  plugin::checked<void> enumerate() {
    auto devices = list_devices(*backend_);
    if (!devices) return std::unexpected(std::move(devices.error()));
    facts_.devices = std::move(*devices);
    return {};
  }

  // Disables wrong kernels one by one, until the rest is right or nothing is left. Another wrong
  // result may have the same cause, so it is tested again.
  plugin::checked<void> self_test() {
    for (;;) {
      if (!facts_.disabled.empty() && !computes())
        return plugin::reject(
            code::probe_self_test,
            fmt::format("no kernel that computes is left: {}: {}", facts_.disabled.back(),
                        why_disabled(facts_, facts_.disabled.size() - 1)));
      auto tested = run_self_test(*backend_, facts_.devices);
      const bool fewer = note_left_out();
      facts_.again = fewer && !tested;
      if (!tested) return std::unexpected(std::move(tested.error()));
      if (fewer) {
        if (auto again = reopen_and_list(); !again) return again;
        continue;
      }
      facts_.self_test = tested->summary;
      for (std::size_t i = 0; i < facts_.devices.size(); ++i) {
        facts_.devices[i].rates = tested->rates[i];
        facts_.devices[i].status = std::move(tested->status[i]);
      }
      if (tested->wrong.empty()) return {};
      for (const wrong_result& one : tested->wrong)
        for (const std::string& id : one.kernels)
          if (std::ranges::find(facts_.disabled, id) != facts_.disabled.end())
            return plugin::reject(
                code::probe_self_test,
                fmt::format("kernel {} gives wrong results and cannot be disabled: {}", id,
                            tested->summary));
      const auto next = most_suspect(tested->wrong);
      if (next.first.empty())
        return plugin::reject(code::probe_self_test,
                              fmt::format("its reference kernel {} gives wrong results: {}",
                                          tested->wrong.front().kernels.front(), tested->summary));
      facts_.disabled.push_back(next.first);
      facts_.wrong_results.push_back(next.second);
      if (auto again = reopen_and_list(); !again) return again;
    }
  }

  // Checks the process's state after a stage. A change is reported once, for the stage that made
  // it.
  plugin::checked<void> look_around(stage s) {
    process_state now = process_state::now();
    breaches found = compare(state_, now, s == stage::close);
    now.descriptors.swap(state_.descriptors);  // descriptors are compared with the beginning
    state_ = std::move(now);
    for (std::string& one : found.remarks)
      if (facts_.remarks.size() < most_remarks) facts_.remarks.push_back(std::move(one));
    if (found.wrong.empty()) return {};
    return plugin::reject(code::probe_hygiene,
                          fmt::format("it changed {} of its process in {}",
                                      plugin::join(found.wrong, ", "), stage_name(s)));
  }

  plugin::checked<void> close() {
    const plugin::mapped_identity mapped = backend_->mapped();
    backend_.reset();
    facts_.unloads = task_.unloadable && !plugin::is_mapped(mapped);
    if (has_children())
      return plugin::reject(code::probe_leftover, "it left a process of its own behind");
    if ((facts_.life_flags & BITNET_LIFE_THREAD_FREE) != 0 && !threads_end(baseline_))
      return plugin::reject(
          code::probe_leftover,
          fmt::format("it says that it starts no thread, and left {} running after close",
                      threads() - baseline_));
    return {};
  }

 private:
  // A reference form has no fallback.
  [[nodiscard]] bool is_reference(const std::string& id) const {
    return std::ranges::any_of(facts_.devices, [&](const device_report& d) {
      return std::ranges::any_of(d.kernels, [&](const bitnet_kernel_info& k) {
        return k.level == BITNET_LEVEL_REFERENCE && plugin::printable_array(k.id) == id;
      });
    });
  }

  // Returns the kernel to disable next, and what it computed. It is one of the wrong result with
  // the fewest possible causes, as the most specific. Empty if only reference forms can be the
  // cause.
  [[nodiscard]] std::pair<std::string, std::string> most_suspect(
      const std::vector<wrong_result>& all) const {
    std::pair<std::string, std::string> out;
    std::size_t fewest = std::numeric_limits<std::size_t>::max();
    for (const wrong_result& one : all) {
      const auto id =
          std::ranges::find_if(one.kernels, [&](const auto& k) { return !is_reference(k); });
      if (id == one.kernels.end() || one.kernels.size() >= fewest) continue;
      fewest = one.kernels.size();
      out = {*id, one.text};
    }
    return out;
  }

  // Whether a device does more than move numbers to and from other ops.
  [[nodiscard]] bool computes() const {
    return std::ranges::any_of(facts_.devices, [](const device_report& d) {
      return std::ranges::any_of(d.kernels, [](const bitnet_kernel_info& k) {
        return k.op != BITNET_OP_EMBED_GATHER && k.op != BITNET_OP_ACT_QUANT_I8 &&
               k.op != BITNET_OP_GATHER_ROWS;
      });
    });
  }

  // A plugin may test kernels itself when a device is opened, and no longer list those that are
  // wrong. Disables these; returns whether there were any.
  bool note_left_out() {
    bool any = false;
    for (uint32_t i = 0; i < facts_.devices.size(); ++i) {
      const auto now = list_kernels(*backend_, i);
      if (!now) continue;
      for (const bitnet_kernel_info& before : facts_.devices[i].kernels) {
        const std::string id = plugin::printable_array(before.id);
        if (lists(*now, id) || std::ranges::find(facts_.disabled, id) != facts_.disabled.end())
          continue;
        const std::string said = services_.warning_about(id);
        facts_.disabled.push_back(id);
        facts_.wrong_results.push_back(
            said.empty() ? fmt::format("the backend leaves it out since device {} was opened", i)
                         : said);
        any = true;
      }
    }
    return any;
  }
  static bool lists(const std::vector<bitnet_kernel_info>& kernels, const std::string& id) {
    return std::ranges::any_of(
        kernels, [&](const bitnet_kernel_info& k) { return plugin::printable_array(k.id) == id; });
  }

  plugin::checked<void> reopen_and_list() {
    backend_.reset();
    if (auto again = reopen(); !again) return again;
    return enumerate();
  }

  plugin::checked<void> reopen() {
    std::vector<std::pair<std::string, std::string>> extra;
    if (!facts_.disabled.empty()) extra.emplace_back("disable", plugin::join(facts_.disabled, ","));
    auto opened = plugin::backend::open(task_.library, task_.name, BITNET_PURPOSE_PROBE, services_,
                                        extra, task_.unloadable);
    if (!opened) return std::unexpected(std::move(opened.error()));
    backend_ = std::move(*opened);
    facts_.version = backend_->version();
    facts_.life_flags = backend_->life_flags();
    return {};
  }

  const task& task_;
  facts& facts_;
  child_services services_;
  static constexpr std::size_t most_remarks = 16;
  std::size_t baseline_;
  process_state state_ = process_state::now();  // at the beginning, then after each stage
  std::shared_ptr<plugin::backend> backend_;
};

// Runs one stage, announced and guarded; returns false if the probe is over.
template <class Part>
bool run_part(stage s, message_sender& out, facts& f, probe_run& run, Part part) {
  out.begin(s);
  plugin::checked<void> fine;
  try {
    fine = part();
    if (auto clean = run.look_around(s); fine) fine = std::move(clean);
  } catch (const std::exception& e) {
    fine = std::unexpected(thrown(s, fmt::format(": {}", plugin::printable(e.what(), 400))));
  } catch (...) {
    fine = std::unexpected(thrown(s, ", which is none of the C++ library's"));
  }
  if (!fine) f.fault = std::move(fine.error());
  f.peak_bytes = peak_bytes();
  out.say(frame_kind::facts, write_facts(f));
  return !f.fault;
}

// Receives the task, the only incoming message.
plugin::checked<task> receive_task(int fd) {
  frame_reader reader;
  for (std::array<std::byte, 4096> buffer{};;) {
    auto one = reader.next();
    if (!one) return std::unexpected(std::move(one.error()));
    if (const auto& whole = *one; whole) return read_task(whole->payload);
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return plugin::reject(code::probe_helper, "the helper was given no task");
    reader.feed({buffer.data(), static_cast<std::size_t>(n)});
  }
}

}  // namespace

int serve(int fd) {
  const auto given = receive_task(fd);
  if (!given) return exit_no_task;
  report_crashes(fd, given->library);
  // These are never destroyed: a backend that must not be closed stays, and may log.
  auto& out = *new message_sender(fd);
  facts f;
  f.sandbox = enter_sandbox(given->parent, given->scratch, given->late_nodes, given->pipes);
  auto& run = *new probe_run(*new task(*given), out, f);
  const bool tested = run_part(stage::open, out, f, run, [&] { return run.open(); }) &&
                      run_part(stage::enumerate, out, f, run, [&] { return run.enumerate(); }) &&
                      run_part(stage::self_test, out, f, run, [&] { return run.self_test(); });
  if (tested) run_part(stage::close, out, f, run, [&] { return run.close(); });
  out.say(frame_kind::done, "");
  if (tested) return 0;  // runs the plugin's exit handlers, as in a program
  _exit(0);
}

}  // namespace bitnet::probe
