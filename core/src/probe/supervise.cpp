#include "probe/supervise.hpp"

#include <fmt/core.h>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include "plugin/codes/text.hpp"
#include "probe/child.hpp"
#include "probe/frame.hpp"
#include "probe/helper_process.hpp"
#include "probe/priority.hpp"

namespace bitnet::probe {
namespace {

using clock = std::chrono::steady_clock;
using plugin::code;
using plugin::file_descriptor;
using std::chrono::milliseconds;

constexpr milliseconds term_grace{1000}, kill_grace{2000};
// A stage's clock stops while the child waits for a CPU, but at most until this limit.
constexpr std::chrono::minutes longest_stage{30};
constexpr std::size_t kept_output = std::size_t{64} << 10;
constexpr uint64_t most_output = uint64_t{1} << 20;
constexpr uint64_t most_received = uint64_t{64} << 20;

plugin::defect broken(code c, std::string why) {
  return {c, BITNET_REJECTED, std::move(why), ""};
}

std::string seconds(uint32_t ms) {
  return fmt::format("{}.{} s", ms / 1000, ms % 1000 / 100);
}

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : "SIG" + std::string(name);
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of("\n ");
  if (end == std::string::npos) return "";
  const std::size_t begin = text.find_last_of('\n', end);
  const std::size_t from = begin == std::string::npos ? 0 : begin + 1;
  return plugin::printable(std::string_view(text).substr(from, end + 1 - from), 120);
}

std::string clean_lines(const std::string& text) {
  std::string out;
  const std::size_t from = text.size() > kept_output ? text.size() - kept_output : 0;
  for (std::size_t begin = from; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    out += plugin::printable(std::string_view(text).substr(begin, end - begin), kept_output) + "\n";
    begin = end + 1;
  }
  return out;
}

// A child and its outcome so far.
class supervised {
 public:
  supervised(const job& j, helper_process p) : job_(j), process_(std::move(p)) {
    waiting_.begin(process_.pid);
    due_ = stage_begin_ + milliseconds(limit().hard_ms);
  }
  outcome run(audience& to, bool& left);

 private:
  enum class ending : uint8_t { no, asked, killed };

  [[nodiscard]] const deadline& limit() const {
    return job_.limits[static_cast<std::size_t>(so_far_.reached)];
  }
  // Duration of the stage, without the time that the child waited for a CPU.
  [[nodiscard]] uint32_t stage_ms() const;
  void begin(stage s);
  void finish_stage();
  // Keeps the first fault as the cause; later ones may be its effects.
  void blame(plugin::defect d) {
    if (!so_far_.what.fault) so_far_.what.fault = std::move(d);
  }
  void keep_output(std::string_view text);
  void understand(const frame& f);
  bool listen();
  bool read_output();
  void read_all();
  void judge_end(bool reaped, int status);
  bool end_late();
  outcome result();

  const job& job_;
  helper_process process_;
  waiting_for_cpu waiting_;
  frame_reader reader_;
  outcome so_far_;
  uint64_t received_ = 0;
  clock::time_point stage_begin_ = clock::now(), due_;
  ending end_ = ending::no;
  bool done_ = false, listening_ = true;
  std::string crash_;  // the child's report: ", in queue_submit(), ..."
};

uint32_t supervised::stage_ms() const {
  const auto wall = std::chrono::duration_cast<milliseconds>(clock::now() - stage_begin_);
  const auto ms = static_cast<uint64_t>(wall.count());
  return static_cast<uint32_t>(ms - std::min(ms, waiting_.ms(process_.pid)));
}

void supervised::begin(stage s) {
  finish_stage();
  so_far_.reached = s;
  stage_begin_ = clock::now();
  waiting_.begin(process_.pid);
  due_ = stage_begin_ + milliseconds(limit().hard_ms);
}

void supervised::finish_stage() {
  const uint32_t ms = stage_ms();
  so_far_.stage_ms[static_cast<std::size_t>(so_far_.reached)] = ms;
  if (so_far_.reached != stage::start && ms > limit().soft_ms && !so_far_.what.fault)
    so_far_.notes.push_back(fmt::format("slow: {} took {}, where {} is usual",
                                        stage_name(so_far_.reached), seconds(ms),
                                        seconds(limit().soft_ms)));
}

void supervised::keep_output(std::string_view text) {
  so_far_.output += text;
  if (so_far_.output.size() > 2 * kept_output)
    so_far_.output.erase(0, so_far_.output.size() - kept_output);
}

void supervised::understand(const frame& f) {
  switch (f.kind) {
    case frame_kind::begin: {
      const auto s = f.payload.size() == 1 ? static_cast<uint8_t>(f.payload[0]) : uint8_t{0};
      if (s >= n_stages || s <= static_cast<uint8_t>(so_far_.reached))
        return blame(broken(code::probe_message,
                            fmt::format("its probe goes from {} to a stage that cannot follow",
                                        stage_name(so_far_.reached))));
      return begin(static_cast<stage>(s));
    }
    case frame_kind::log:
      return keep_output(fmt::format(
          "log: {}\n",
          plugin::printable(f.payload.substr(std::min<std::size_t>(f.payload.size(), 1)), 1000)));
    case frame_kind::facts: {
      auto facts = read_facts(f.payload);
      if (!facts) return blame(std::move(facts.error()));
      if (!so_far_.what.fault) so_far_.what = std::move(*facts);
      return;
    }
    case frame_kind::done:
      done_ = true;
      return;
    case frame_kind::crash:
      crash_ = plugin::printable(f.payload, 1000);
      return;
    case frame_kind::task:
    case frame_kind::job:
    case frame_kind::answer:
      blame(broken(code::probe_message, "its probe sends what only the core sends"));
  }
}

// Reads available bytes; returns false at the end of the stream.
bool supervised::listen() {
  std::array<std::byte, 16384> buffer;
  for (;;) {
    const ssize_t n = recv(process_.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    received_ += static_cast<uint64_t>(n);
    if (received_ > most_received) {
      blame(broken(code::probe_message, "its probe sends more than 64 MiB"));
      return false;
    }
    reader_.feed({buffer.data(), static_cast<std::size_t>(n)});
    for (;;) {
      auto one = reader_.next();
      if (!one) {
        blame(std::move(one.error()));
        return false;
      }
      const auto& whole = *one;
      if (!whole) break;
      understand(*whole);
    }
  }
}

bool supervised::read_output() {
  std::array<char, 16384> buffer;
  for (int reads = 0; reads < 64; ++reads) {
    const ssize_t n = read(process_.output.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    so_far_.output_bytes += static_cast<uint64_t>(n);
    keep_output({buffer.data(), static_cast<std::size_t>(n)});
  }
  return true;
}

void supervised::read_all() {
  const bool had_fault = so_far_.what.fault.has_value();
  if (listening_ && !listen()) listening_ = false;
  if (process_.output.get() >= 0 && !read_output()) process_.output = file_descriptor();
  // Nothing more is read from the child after a malformed message.
  if (!had_fault && so_far_.what.fault && so_far_.what.fault->code == code::probe_message) {
    end_ = ending::asked;
    due_ = clock::now();
  }
}

// Derives the fault from how the process ended.
void supervised::judge_end(bool reaped, int status) {
  const std::string where = fmt::format(" in {}", stage_name(so_far_.reached));
  const bool started = so_far_.reached != stage::start;
  const std::string line = last_line(so_far_.output);
  const std::string last = line.empty() ? "" : fmt::format("; its last words: {}", line);
  const auto by_plugin = [&](code c, const std::string& what) {
    if (started)
      blame(broken(c, what + where + (c == code::probe_crash ? crash_ : "") + last));
    else
      blame(no_helper(fmt::format("the helper {} before it opened the plugin{}", what, last)));
  };
  if (reaped && WIFSIGNALED(status))
    return by_plugin(code::probe_crash,
                     fmt::format("crashed with {}", signal_name(WTERMSIG(status))));
  const int exit_status = reaped && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  if (exit_status == exit_cannot_speak)
    return by_plugin(code::probe_exit, "closed the descriptors of its host");
  if (exit_status != 0 || !done_)
    return by_plugin(code::probe_exit,
                     fmt::format("ended the process with exit status {}", exit_status));
  if (so_far_.output_bytes > most_output)
    blame(broken(code::probe_output, fmt::format("printed {} bytes, where a plugin prints none{}",
                                                 so_far_.output_bytes, last)));
}

// Asks it to end, then kills it; returns true if it does not die and is left alone.
bool supervised::end_late() {
  const auto now = clock::now();
  if (now < due_) return false;
  switch (end_) {
    case ending::no: {
      const uint32_t ms = stage_ms();
      if (ms < limit().hard_ms && now < stage_begin_ + longest_stage) {
        due_ = now + milliseconds(limit().hard_ms - ms);
        return false;
      }
      const std::string line = last_line(so_far_.output);
      if (ms < limit().hard_ms)
        blame(no_helper(
            fmt::format("it got too little of a CPU to end {}", stage_name(so_far_.reached))));
      blame({so_far_.reached == stage::start ? code::probe_helper : code::probe_timeout,
             BITNET_UNAVAILABLE,
             fmt::format("hung for {} in {}{}", seconds(ms), stage_name(so_far_.reached),
                         line.empty() ? "" : fmt::format("; its last words: {}", line)),
             ""});
      signal_all(process_, SIGTERM);
      end_ = ending::asked;
      due_ = now + term_grace;
      return false;
    }
    case ending::asked:
      signal_all(process_, SIGKILL);
      end_ = ending::killed;
      due_ = now + kill_grace;
      return false;
    case ending::killed:
      so_far_.notes.push_back(
          fmt::format("process {} cannot be ended and was left alone", process_.pid));
      leave_alone(process_.pid);
      return true;
  }
  return false;
}

outcome supervised::result() {
  finish_stage();
  outcome out = std::move(so_far_);
  out.notes.insert(out.notes.end(), out.what.remarks.begin(), out.what.remarks.end());
  out.what.remarks.clear();
  out.output = clean_lines(out.output);
  if (out.output_bytes != 0 && out.output_bytes <= most_output)
    out.notes.push_back(fmt::format("it printed {} bytes", out.output_bytes));
  return out;
}

outcome supervised::run(audience& to, bool& left) {
  for (stage reported = stage::start;;) {
    pollfd fds[4] = {{listening_ ? process_.socket.get() : -1, POLLIN, 0},
                     {process_.output.get(), POLLIN, 0},
                     {process_.process.get(), POLLIN, 0},
                     to.wake()};
    const auto until_due = std::chrono::ceil<milliseconds>(due_ - clock::now()).count();
    constexpr int64_t longest_sleep_ms = 1000;
    poll(fds, 4, static_cast<int>(std::clamp<int64_t>(until_due, 0, longest_sleep_ms)));
    const bool ended = fds[2].revents != 0;
    read_all();  // its last messages are still in the sockets
    if (so_far_.reached != reported) to.reached(reported = so_far_.reached);
    if (ended) {
      kill(-process_.pid, SIGKILL);  // processes that it started
      int status = 0;
      const bool reaped = waitpid(process_.pid, &status, 0) == process_.pid;
      judge_end(reaped, status);
      return result();
    }
    if (!to.attend()) {
      left = true;
      signal_all(process_, SIGKILL);
      end_ = ending::killed;
      due_ = clock::now() + kill_grace;
      pollfd gone{process_.process.get(), POLLIN, 0};
      if (poll(&gone, 1, static_cast<int>(kill_grace.count())) == 1)
        waitpid(process_.pid, nullptr, 0);
      return result();
    }
    if (end_late()) return result();
  }
}

std::vector<pid_t> own_children() {
  namespace fs = std::filesystem;
  std::vector<pid_t> out;
  std::error_code ignored;
  fs::directory_iterator all("/proc/self/task", ignored);
  for (; !ignored && all != fs::directory_iterator(); all.increment(ignored)) {
    std::ifstream of_thread(all->path() / "children");
    for (pid_t child = 0; of_thread >> child;) out.push_back(child);
  }
  return out;
}

// Kills all processes that the child left, in any group or session: they are this process's
// children now. Returns false if some do not die.
bool end_orphans() {
  const auto end = clock::now() + kill_grace;
  constexpr milliseconds pause{5};
  for (;;) {
    for (const pid_t orphan : own_children()) kill(orphan, SIGKILL);
    const pid_t reaped = waitpid(-1, nullptr, WNOHANG);
    if (reaped < 0 && errno == ECHILD) return true;
    if (clock::now() > end) return false;
    if (reaped == 0) std::this_thread::sleep_for(pause);
  }
}

// Sets a folder for the drivers' caches in place of the user's.
std::vector<std::string> with_cache_home(std::vector<std::string> variables,
                                         const std::filesystem::path& folder) {
  if (folder.empty()) return variables;
  std::erase_if(variables,
                [](const std::string& one) { return one.starts_with("XDG_CACHE_HOME="); });
  variables.push_back("XDG_CACHE_HOME=" + folder.string());
  return variables;
}

// The outcome of one child; nullopt if the audience left.
std::optional<outcome> run_child(const job& j, audience& to) {
  auto started = start_helper(
      {j.helper, j.work.name, with_cache_home(j.environment, j.work.scratch), false, true},
      encode(frame_kind::task, write_task(j.work)));
  if (!started) {
    outcome out;
    out.what.fault = std::move(started.error());
    return out;
  }
  bool left = false;
  outcome out = supervised(j, std::move(*started)).run(to, left);
  if (!end_orphans()) out.notes.push_back("what it started cannot be ended and was left alone");
  if (left) return std::nullopt;
  return out;
}

// Adds the times, the output and the notes of earlier children of the same probe. A note that is
// made again appears once.
void add_earlier(outcome& to, outcome earlier) {
  for (std::size_t i = 0; i < n_stages; ++i) to.stage_ms[i] += earlier.stage_ms[i];
  std::erase_if(earlier.notes, [&](const std::string& one) {
    return std::ranges::find(to.notes, one) != to.notes.end();
  });
  to.notes.insert(to.notes.begin(), earlier.notes.begin(), earlier.notes.end());
  to.output_bytes += earlier.output_bytes;
  to.output.insert(0, earlier.output);
  if (to.output.size() <= kept_output) return;
  const std::size_t from = to.output.size() - kept_output;
  // Whole lines, unless the last one is longer.
  const std::size_t line = std::min(to.output.find('\n', from), to.output.size() - 1) + 1;
  to.output.erase(0, line < to.output.size() ? line : from);
}

}  // namespace

std::optional<outcome> supervise(job j, const std::filesystem::path& writable, audience& to) {
  // Processes that the child leaves become children of this process.
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  j.work.parent = getpid();
  j.work.scratch = writable;
  // Each kernel that ends a child may take as long as a stage.
  constexpr int most_children = 8;
  outcome earlier;
  for (int n = 1;; ++n) {
    auto out = run_child(j, to);
    if (!out) return std::nullopt;
    add_earlier(*out, std::move(earlier));
    const facts& said = out->what;
    if (!said.again || !said.fault || said.disabled.size() <= j.work.disabled.size() ||
        n == most_children)
      return out;
    j.work.disabled = said.disabled;
    j.work.wrong_results = said.wrong_results;
    earlier = std::move(*out);
    earlier.notes.push_back(
        fmt::format("the probe began again without kernel {}", j.work.disabled.back()));
  }
}

}  // namespace bitnet::probe
