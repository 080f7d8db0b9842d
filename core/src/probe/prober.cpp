#include "probe/prober.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "plugin/text.hpp"
#include "plugin/trust.hpp"
#include "probe/child.hpp"
#include "probe/frame.hpp"
#include "probe/scratch.hpp"

extern "C" {            // which this header of glibc 2.36 forgets
#include <sys/pidfd.h>  // NOLINT(llvm-include-order)
}

namespace bitnet::probe {
namespace {

using clock = std::chrono::steady_clock;
using plugin::code;
using plugin::file_descriptor;
using std::chrono::milliseconds;

constexpr milliseconds term_grace{1000}, kill_grace{2000};
constexpr std::size_t kept_output = std::size_t{64} << 10;
constexpr uint64_t most_output = uint64_t{1} << 20;
constexpr uint64_t most_received = uint64_t{64} << 20;
constexpr std::size_t most_task_bytes = std::size_t{64} << 10;

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

plugin::defect no_helper(const std::string& why) {
  return {code::probe_helper, BITNET_UNAVAILABLE, "unprobed: not loaded; " + why, ""};
}

plugin::defect broken(code c, std::string why) {
  return {c, BITNET_REJECTED, std::move(why), ""};
}

std::string seconds(uint32_t ms) {
  return std::to_string(ms / 1000) + "." + std::to_string(ms % 1000 / 100) + " s";
}

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name == nullptr ? "signal " + std::to_string(number) : "SIG" + std::string(name);
}

uint32_t ms_since(clock::time_point begin) {
  return static_cast<uint32_t>(
      std::chrono::duration_cast<milliseconds>(clock::now() - begin).count());
}

// Processes that did not die when they were killed, as in a driver that waits for its device. They
// are reaped whenever somebody probes again.
class abandoned_processes {
 public:
  static void add(pid_t pid) {
    const std::scoped_lock lock(mutex());
    all().push_back(pid);
  }
  static void reap() {
    const std::scoped_lock lock(mutex());
    std::erase_if(all(), [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
  }

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::vector<pid_t>& all() {
    static std::vector<pid_t> list;
    return list;
  }
};

// A descriptor that is none of those that a child's are copied onto.
file_descriptor above_standard(int fd) {
  constexpr int first = 10;
  const file_descriptor low(fd);
  return file_descriptor(fcntl(fd, F_DUPFD_CLOEXEC, first));
}

struct child {
  child(ticket t, job j, const std::filesystem::path& place)
      : id(t), what(std::move(j)), scratch(place) {
    if (!scratch.problem().empty()) so_far.notes.push_back(scratch.problem());
  }
  ticket id;
  job what;
  pid_t pid = -1;
  file_descriptor socket, output, process;
  frame_reader reader;
  finding so_far;
  scratch_folder scratch;
  uint64_t received = 0;
  clock::time_point stage_begin = clock::now(), due;
  enum class ending : uint8_t { no, asked, killed } end = ending::no;
  bool done = false, listening = true;

  void begin(stage s) {
    finish_stage();
    so_far.reached = s;
    stage_begin = clock::now();
    due = stage_begin + milliseconds(limit().hard_ms);
  }
  void finish_stage() {
    const uint32_t ms = ms_since(stage_begin);
    so_far.stage_ms[static_cast<std::size_t>(so_far.reached)] = ms;
    if (so_far.reached != stage::start && ms > limit().soft_ms && !so_far.what.fault)
      so_far.notes.push_back("slow: " + stage_name(so_far.reached) + " took " + seconds(ms) +
                             ", where " + seconds(limit().soft_ms) + " is usual");
  }
  [[nodiscard]] const deadline& limit() const {
    return what.limits[static_cast<std::size_t>(so_far.reached)];
  }
  // The first fault is the cause; what follows may be its effect.
  void blame(plugin::defect d) {
    if (!so_far.what.fault) so_far.what.fault = std::move(d);
  }
  void keep_output(std::string_view text) {
    so_far.output += text;
    if (so_far.output.size() > 2 * kept_output)
      so_far.output.erase(0, so_far.output.size() - kept_output);
  }
};

plugin::checked<void> spawn(child& c, const std::filesystem::path& helper) {
  const auto system_error = [](const char* call) {
    return std::unexpected(no_helper(std::string(call) + ": " + reason_of(errno)));
  };
  const auto trusted = plugin::open_trusted(helper);
  if (!trusted) return std::unexpected(no_helper(trusted.error().reason));
  c.what.work.scratch = c.scratch.path();
  if (!c.scratch.path().empty()) {
    // Where drivers keep what they compile.
    std::erase_if(c.what.environment,
                  [](const std::string& one) { return one.starts_with("XDG_CACHE_HOME="); });
    c.what.environment.push_back("XDG_CACHE_HOME=" + c.scratch.path().string());
  }
  const std::string message = encode(frame_kind::task, write_task(c.what.work));
  if (message.size() > most_task_bytes)
    return std::unexpected(no_helper("its settings have more than 64 KiB"));

  int ends[2];
  int pipe_ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return system_error("socketpair");
  c.socket = file_descriptor(ends[0]);
  const file_descriptor theirs = above_standard(ends[1]);
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return system_error("pipe2");
  c.output = file_descriptor(pipe_ends[0]);
  const file_descriptor their_output = above_standard(pipe_ends[1]);
  fcntl(c.output.get(), F_SETFL, O_NONBLOCK);

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, their_output.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, their_output.get(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&files, theirs.get(), task_fd);
  posix_spawn_file_actions_addclosefrom_np(&files, task_fd + 1);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);  // whatever it starts ends with it
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::string name = helper.filename().string();
  std::vector<char*> arguments = {name.data(), c.what.work.name.data(), nullptr};
  std::vector<char*> environment;
  environment.reserve(c.what.environment.size() + 1);
  for (std::string& one : c.what.environment) environment.push_back(one.data());
  environment.push_back(nullptr);
  const int failed = posix_spawn(&c.pid, trusted->path.c_str(), &files, &attributes,
                                 arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0)
    return std::unexpected(no_helper("cannot run " + plugin::printable(helper.string(), 400) +
                                     ": " + reason_of(failed)));
  c.process = file_descriptor(pidfd_open(c.pid, 0));
  if (c.process.get() < 0) {
    const int error = errno;
    kill(c.pid, SIGKILL);
    waitpid(c.pid, nullptr, 0);
    c.pid = -1;
    return std::unexpected(no_helper("pidfd_open: " + reason_of(error)));
  }
  const ssize_t sent =
      send(c.socket.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(message.size()))
    c.blame(no_helper("the helper takes no task: " + reason_of(errno)));
  c.stage_begin = clock::now();
  c.due = c.stage_begin + milliseconds(c.limit().hard_ms);
  return {};
}

// The helper and what the plugin started; its process group has its number until it is reaped.
void signal_all(const child& c, int number) {
  pidfd_send_signal(c.process.get(), number, nullptr, 0);
  kill(-c.pid, number);
}

void understand(child& c, const frame& f) {
  switch (f.kind) {
    case frame_kind::begin: {
      const auto s = f.payload.size() == 1 ? static_cast<uint8_t>(f.payload[0]) : uint8_t{0};
      if (s >= n_stages || s <= static_cast<uint8_t>(c.so_far.reached))
        return c.blame(broken(code::probe_message, "its probe goes from " +
                                                       stage_name(c.so_far.reached) +
                                                       " to a stage that cannot follow"));
      return c.begin(static_cast<stage>(s));
    }
    case frame_kind::log:
      return c.keep_output(
          "log: " +
          plugin::printable(f.payload.substr(std::min<std::size_t>(f.payload.size(), 1)), 1000) +
          "\n");
    case frame_kind::facts: {
      auto told = read_facts(f.payload);
      if (!told) return c.blame(std::move(told.error()));
      if (!c.so_far.what.fault) c.so_far.what = std::move(*told);
      return;
    }
    case frame_kind::done:
      c.done = true;
      return;
    case frame_kind::task:
      c.blame(broken(code::probe_message, "its probe sends a task to the core"));
  }
}

// Reads what is there; false at the end of the stream.
bool listen(child& c) {
  std::array<std::byte, 65536> buffer;
  for (;;) {
    const ssize_t n = recv(c.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    c.received += static_cast<uint64_t>(n);
    if (c.received > most_received) {
      c.blame(broken(code::probe_message, "its probe sends more than 64 MiB"));
      return false;
    }
    c.reader.feed({buffer.data(), static_cast<std::size_t>(n)});
    for (;;) {
      auto one = c.reader.next();
      if (!one) {
        c.blame(std::move(one.error()));
        return false;
      }
      const auto& whole = *one;
      if (!whole) break;
      understand(c, *whole);
    }
  }
}

bool read_output(child& c) {
  std::array<char, 65536> buffer;
  for (int turns = 0; turns < 64; ++turns) {
    const ssize_t n = read(c.output.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    c.so_far.output_bytes += static_cast<uint64_t>(n);
    c.keep_output({buffer.data(), static_cast<std::size_t>(n)});
  }
  return true;
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of("\n ");
  if (end == std::string::npos) return "";
  const std::size_t begin = text.find_last_of('\n', end);
  const std::size_t from = begin == std::string::npos ? 0 : begin + 1;
  return plugin::printable(std::string_view(text).substr(from, end + 1 - from), 120);
}

// What the way in which the process ended says.
void judge_end(child& c, bool reaped, int status) {
  const std::string where = " in " + stage_name(c.so_far.reached);
  const bool started = c.so_far.reached != stage::start;
  const std::string line = last_line(c.so_far.output);
  const std::string last = line.empty() ? "" : "; its last words: " + line;
  const auto by_plugin = [&](code c_code, const std::string& what) {
    if (started)
      c.blame(broken(c_code, what + where + last));
    else
      c.blame(no_helper("the helper " + what + " before it opened the plugin" + last));
  };
  if (reaped && WIFSIGNALED(status))
    return by_plugin(code::probe_crash, "crashed with " + signal_name(WTERMSIG(status)));
  const int exit_status = reaped && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  if (exit_status == exit_cannot_speak)
    return by_plugin(code::probe_exit, "closed the descriptors of its host");
  if (exit_status != 0 || !c.done)
    return by_plugin(code::probe_exit,
                     "ended the process with exit status " + std::to_string(exit_status));
  if (c.so_far.output_bytes > most_output)
    c.blame(broken(code::probe_output, "printed " + std::to_string(c.so_far.output_bytes) +
                                           " bytes, where a plugin prints none" + last));
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

}  // namespace

deadlines deadlines_for(uint32_t most_ms) {
  // Why these: docs/reference/probe.md#stages
  deadlines out = {
      {{5'000, 30'000}, {1'000, 5'000}, {5'000, 60'000}, {5'000, 60'000}, {2'000, 10'000}}};
  for (std::size_t i = 1; i < n_stages; ++i) {
    const bool is_work = i == static_cast<std::size_t>(stage::enumerate) ||
                         i == static_cast<std::size_t>(stage::self_test);
    // A manifest may give drivers more time, and everything less.
    out[i].hard_ms = is_work ? most_ms : std::min(out[i].hard_ms, most_ms);
    out[i].soft_ms = std::min(out[i].soft_ms, out[i].hard_ms);
  }
  return out;
}

struct prober::contents {
  std::filesystem::path helper;
  std::filesystem::path scratch;  // where folders of children are made
  uint32_t most_children = 4;
  file_descriptor wake;

  mutable std::mutex turn;  // guards what follows
  mutable std::condition_variable answered;
  ticket next = 1;
  std::deque<std::pair<ticket, job>> waiting;
  std::map<ticket, finding> running;  // how far they are; also those that wait
  std::map<ticket, finding> answers;
  bool stop = false;

  std::vector<std::unique_ptr<child>> children;  // of the thread alone
  std::thread thread;

  void rouse() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = write(wake.get(), &one, sizeof one);
  }
  void publish(child& c);
  void show(const child& c);
  void abandon_all();
  bool start_more();
  void attend(child& c, const pollfd* events);
  void end_late(child& c, bool& gone);
  void work();
};

// The answer of a child that has ended, or never will.
void prober::contents::publish(child& c) {
  c.finish_stage();
  c.scratch.remove();
  finding out = std::move(c.so_far);
  out.output = clean_lines(out.output);
  if (out.output_bytes != 0 && out.output_bytes <= most_output)
    out.notes.push_back("it printed " + std::to_string(out.output_bytes) + " bytes");
  const std::scoped_lock lock(turn);
  running.erase(c.id);
  answers.emplace(c.id, std::move(out));
  answered.notify_all();
}

void prober::contents::show(const child& c) {
  const std::scoped_lock lock(turn);
  finding& shown = running[c.id];
  shown.reached = c.so_far.reached;
  shown.stage_ms = c.so_far.stage_ms;
}

// False when it is time to stop.
bool prober::contents::start_more() {
  for (;;) {
    std::pair<ticket, job> next_one;
    {
      const std::scoped_lock lock(turn);
      if (stop) return false;
      if (waiting.empty() || children.size() >= most_children) return true;
      next_one = std::move(waiting.front());
      waiting.pop_front();
    }
    auto c = std::make_unique<child>(next_one.first, std::move(next_one.second), scratch);
    if (auto fine = spawn(*c, helper); !fine) {
      c->blame(std::move(fine.error()));
      publish(*c);
    } else {
      children.push_back(std::move(c));
    }
  }
}

void prober::contents::attend(child& c, const pollfd* events) {
  const stage before = c.so_far.reached;
  const bool had_fault = c.so_far.what.fault.has_value();
  if ((events[0].revents != 0) && c.listening && !listen(c)) c.listening = false;
  if (events[1].revents != 0 && c.output.get() >= 0 && !read_output(c))
    c.output = file_descriptor();
  if (c.so_far.reached != before) show(c);
  // Whoever sends nonsense has nothing more to say.
  if (!had_fault && c.so_far.what.fault && c.so_far.what.fault->code == code::probe_message)
    c.due = clock::now();
}

void prober::contents::end_late(child& c, bool& gone) {
  const auto now = clock::now();
  if (now < c.due) return;
  switch (c.end) {
    case child::ending::no: {
      const std::string line = last_line(c.so_far.output);
      c.blame({c.so_far.reached == stage::start ? code::probe_helper : code::probe_timeout,
               BITNET_UNAVAILABLE,
               "hung for " + seconds(ms_since(c.stage_begin)) + " in " +
                   stage_name(c.so_far.reached) + (line.empty() ? "" : "; its last words: " + line),
               ""});
      signal_all(c, SIGTERM);
      c.end = child::ending::asked;
      c.due = now + term_grace;
      return;
    }
    case child::ending::asked:
      signal_all(c, SIGKILL);
      c.end = child::ending::killed;
      c.due = now + kill_grace;
      return;
    case child::ending::killed:
      c.so_far.notes.push_back("process " + std::to_string(c.pid) +
                               " cannot be ended and was left alone");
      abandoned_processes::add(c.pid);
      publish(c);
      gone = true;
  }
}

void prober::contents::abandon_all() {
  for (const auto& c : children) signal_all(*c, SIGKILL);
  for (const auto& c : children) {
    constexpr int patience_ms = 200;
    pollfd ended{c->process.get(), POLLIN, 0};
    if (poll(&ended, 1, patience_ms) != 1 || waitpid(c->pid, nullptr, WNOHANG) == 0)
      abandoned_processes::add(c->pid);
  }
  children.clear();
}

void prober::contents::work() {
  sweep_scratch_folders(scratch);
  std::vector<pollfd> fds;
  while (start_more()) {
    fds.assign(1, {wake.get(), POLLIN, 0});
    auto first_due = clock::time_point::max();
    for (const auto& c : children) {
      fds.push_back({c->listening ? c->socket.get() : -1, POLLIN, 0});
      fds.push_back({c->output.get(), POLLIN, 0});
      fds.push_back({c->process.get(), POLLIN, 0});
      first_due = std::min(first_due, c->due);
    }
    int timeout_ms = -1;
    if (first_due != clock::time_point::max())
      timeout_ms = static_cast<int>(std::clamp<int64_t>(
          std::chrono::ceil<milliseconds>(first_due - clock::now()).count(), 0, 60'000));
    if (poll(fds.data(), fds.size(), timeout_ms) < 0 && errno != EINTR) continue;
    uint64_t ignored = 0;
    if (fds[0].revents != 0 && read(wake.get(), &ignored, sizeof ignored) < 0) continue;

    std::size_t at = 1;
    std::vector<child*> gone;
    for (const auto& c : children) {
      const pollfd* events = &fds[at];
      at += 3;
      attend(*c, events);
      if (events[2].revents != 0) {
        // What it said before it ended is in the sockets still.
        const pollfd all[2] = {{0, 0, POLLIN}, {0, 0, POLLIN}};
        attend(*c, all);
        kill(-c->pid, SIGKILL);
        int status = 0;
        const bool reaped = waitpid(c->pid, &status, 0) == c->pid;
        judge_end(*c, reaped, status);
        publish(*c);
        gone.push_back(c.get());
        continue;
      }
      bool abandoned = false;
      end_late(*c, abandoned);
      if (abandoned) gone.push_back(c.get());
    }
    std::erase_if(children, [&](const auto& c) { return std::ranges::count(gone, c.get()) != 0; });
  }
  abandon_all();
}

prober::prober(std::filesystem::path helper, const std::filesystem::path& scratch,
               uint32_t most_children)
    : contents_(std::make_unique<contents>()) {
  abandoned_processes::reap();
  contents_->helper = std::move(helper);
  contents_->scratch = scratch_place(scratch);
  contents_->most_children = std::max(most_children, 1U);
  contents_->wake = file_descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

prober::~prober() {
  {
    const std::scoped_lock lock(contents_->turn);
    contents_->stop = true;
  }
  contents_->rouse();
  if (contents_->thread.joinable()) contents_->thread.join();
}

ticket prober::start(job what) {
  contents& c = *contents_;
  what.work.parent = getpid();
  const std::scoped_lock lock(c.turn);
  // A run without a single probe has no thread.
  if (!c.thread.joinable()) c.thread = std::thread([&c] { c.work(); });
  const ticket t = c.next++;
  c.running.emplace(t, finding{});
  c.waiting.emplace_back(t, std::move(what));
  c.rouse();
  return t;
}

std::optional<finding> prober::take(ticket t) {
  const std::scoped_lock lock(contents_->turn);
  auto node = contents_->answers.extract(t);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

finding prober::peek(ticket t) const {
  const std::scoped_lock lock(contents_->turn);
  const auto at = contents_->running.find(t);
  return at == contents_->running.end() ? finding{} : at->second;
}

bool prober::wait(const std::vector<ticket>& all, clock::time_point end) const {
  std::unique_lock lock(contents_->turn);
  return contents_->answered.wait_until(lock, end, [&] {
    return std::ranges::none_of(all, [&](ticket t) { return contents_->running.contains(t); });
  });
}

void prober::wait_for_one(const std::vector<ticket>& of) const {
  std::unique_lock lock(contents_->turn);
  contents_->answered.wait(lock, [&] {
    return !std::ranges::all_of(of, [&](ticket t) { return contents_->running.contains(t); });
  });
}

}  // namespace bitnet::probe
