#include "harness/supervise.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "harness/channel.hpp"

namespace bitnet::conformance {
namespace {

using clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr off_t most_output = 1 << 20;  // bytes that a child can print

struct child {
  pid_t pid = -1;
  int records = -1;  // read end
  int output = -1;   // what it printed
};

child start(const options& o, const std::string& role, const std::string& filter) {
  int ends[2] = {};
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe is left");
  child c;
  // Of a fixed size: endless output must not take the machine's memory.
  c.output = memfd_create("output", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (c.output < 0 || ftruncate(c.output, most_output) != 0 ||
      fcntl(c.output, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) != 0)
    throw std::runtime_error("no memory for the output of a child");
  c.records = ends[0];
  // Built before the fork: between fork and exec nothing may allocate.
  std::vector<std::string> words = child_arguments(o, role, filter, ends[1]);
  words.insert(words.begin(), "bitnet-backend-conformance");
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  c.pid = fork();
  if (c.pid < 0) throw std::runtime_error("no process could be started");
  if (c.pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    const int nothing = ::open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, 0);
    dup2(c.output, 1);
    dup2(c.output, 2);
    fcntl(ends[1], F_SETFD, 0);
    execv("/proc/self/exe", argv.data());
    _exit(127);
  }
  close(ends[1]);
  return c;
}

// Takes one line apart.
void hear(const std::string& line, child_end& end, findings& out) {
  const json r = json::parse(line, nullptr, false);
  if (!r.is_object()) return;
  const auto text = [&](const char* key) {
    return r.contains(key) && r[key].is_string() ? r[key].get<std::string>() : std::string();
  };
  if (r.contains("began")) {
    end.running = text("began");
  } else if (r.contains("ended")) {
    end.running.clear();
    test_result ended{text("ended"), text("status"), text("text"), r.value("ms", uint64_t{0})};
    if (r.contains("weights") && r["weights"].is_array())
      for (const json& how : r["weights"])
        if (how.is_string()) ended.weights.push_back(how.get<std::string>());
    out.add(std::move(ended));
  } else if (r.contains("breach")) {
    end.breached = true;
    std::string where = end.running.empty() ? end.stage : end.running;
    out.add({text("breach") + "." + text("rule"), "failed", text("text") + " in " + where, 0});
  } else if (r.contains("slot")) {
    end.slot = text("slot");
  } else if (r.contains("stage")) {
    end.stage = text("stage");
  } else if (r.contains("fact") && r["fact"].is_object()) {
    out.facts.update(r["fact"]);
  } else if (r.contains("rows") && r["rows"].is_array()) {
    for (const json& row : r["rows"]) out.rows.push_back(row);
  } else if (r.contains("done")) {
    end.done = true;
    end.exit_status = r["done"].is_number_integer() ? r["done"].get<int>() : -1;
  }
}

// Hears the child to its end or to a test's deadline.
void listen(const child& c, uint32_t timeout_s, child_end& end, findings& out) {
  std::string pending;
  auto deadline = clock::now() + std::chrono::seconds(timeout_s);
  constexpr int look_ms = 100;
  for (;;) {
    pollfd ready{c.records, POLLIN, 0};
    const int n = poll(&ready, 1, look_ms);
    if (n > 0) {
      char bytes[65536];
      const ssize_t got = read(c.records, bytes, sizeof bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return;
      pending.append(bytes, static_cast<std::size_t>(got));
      for (std::size_t at = 0; (at = pending.find('\n')) != std::string::npos;) {
        hear(pending.substr(0, at), end, out);
        pending.erase(0, at + 1);
        deadline = clock::now() + std::chrono::seconds(timeout_s);
      }
    }
    siginfo_t ended{};
    // A process that it left behind may hold the other end open.
    if (n == 0 &&
        waitid(P_PID, static_cast<id_t>(c.pid), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        ended.si_pid == c.pid)
      return;
    if (clock::now() > deadline) {
      end.timed_out = true;
      return;
    }
  }
}

// Children of ours that the child left, which come to us.
std::vector<pid_t> orphans() {
  std::vector<pid_t> out;
  std::ifstream list("/proc/self/task/" + std::to_string(getpid()) + "/children");
  for (pid_t pid = 0; list >> pid;) out.push_back(pid);
  return out;
}

std::string death_of(int status) {
  if (WIFSIGNALED(status)) return std::string("SIG") + sigabbrev_np(WTERMSIG(status));
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

std::string last_words(int output) {
  constexpr off_t most = 300;
  const off_t size = lseek(output, 0, SEEK_CUR);  // which it shares with the child
  std::string out(static_cast<std::size_t>(std::min(size, most)), '\0');
  const ssize_t n = pread(output, out.data(), out.size(), std::max<off_t>(0, size - most));
  out.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

void look_at_leavings(const child& c, const child_end& end, findings& out) {
  for (const pid_t pid : orphans()) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    if (!end.timed_out) out.add({"lifecycle.processes", "failed", "it left a process running", 0});
  }
  const off_t printed = lseek(c.output, 0, SEEK_CUR);
  // What a crash prints is not the plugin's chatter, and neither is a sanitizer's warning.
#if defined(BITNET_SANITIZED)
  constexpr bool listens = false;
#else
  constexpr bool listens = true;
#endif
  if (listens && printed > 0 && end.death.empty() && !end.timed_out)
    out.add({"hygiene.silent", "failed",
             "it printed " + std::to_string(printed) +
                 (printed == most_output ? " bytes or more" : " bytes") +
                 ", the last of them: " + end.printed,
             0});
}

}  // namespace

void findings::add(test_result r) {
  const auto same = std::ranges::find(tests, r.name, &test_result::name);
  if (same == tests.end())
    tests.push_back(std::move(r));
  else if (r.status == "failed" && same->status != "failed")
    *same = std::move(r);
}

bool findings::failed(const std::string& suite) const {
  return std::ranges::any_of(
      tests, [&](const test_result& t) { return t.status == "failed" && t.suite() == suite; });
}

child_end run_child(const options& o, const std::string& role, const std::string& filter,
                    findings& out) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const child c = start(o, role, filter);
  child_end end;
  listen(c, o.timeout_s, end, out);
  if (end.timed_out) kill(-c.pid, SIGKILL);
  int status = 0;
  // It may hang in what runs at exit, its records being closed already.
  const auto deadline = clock::now() + std::chrono::seconds(o.timeout_s);
  constexpr useconds_t look_us = 2000;
  while (waitpid(c.pid, &status, WNOHANG) == 0) {
    if (clock::now() > deadline) {
      end.timed_out = true;
      kill(-c.pid, SIGKILL);
      kill(c.pid, SIGKILL);
    }
    usleep(look_us);
  }
  end.printed = last_words(c.output);
  // What runs at exit, a leak search for instance, may end it otherwise than it said.
  const bool clean = end.done && WIFEXITED(status) && WEXITSTATUS(status) == end.exit_status;
  if (end.timed_out) {
    end.death = "it did not end within " + std::to_string(o.timeout_s) + " s";
  } else if (WIFEXITED(status) && WEXITSTATUS(status) == channel::lost) {
    end.breached = true;
    end.death = "it closed the descriptors of its host";
    out.add({"hygiene.descriptors", "failed",
             end.death + " in " + (end.running.empty() ? end.stage : end.running), 0});
  } else if (!clean) {
    end.death = death_of(status);
  }
  look_at_leavings(c, end, out);
  close(c.records);
  close(c.output);
  return end;
}

}  // namespace bitnet::conformance
