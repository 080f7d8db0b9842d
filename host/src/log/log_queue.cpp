#include "log/log_queue.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <deque>
#include <mutex>
#include <system_error>
#include <utility>

namespace bitnet::host {
namespace {

using queue_clock = std::chrono::steady_clock;

// Limits of waiting at the end: for a target that blocks, and for one that is slow.
constexpr std::chrono::seconds longest_pause{1};
constexpr std::chrono::seconds longest_close{5};
constexpr int longest_settle_ms = 1000;

// Sums over all queues. A signal handler reads them.
std::atomic<int64_t> n_pending{0};
std::atomic<uint64_t> n_dropped{0};
static_assert(std::atomic<int64_t>::is_always_lock_free);

// Bytes of a line: its texts and its own size.
std::size_t size_of(const log_line& line) {
  std::size_t out = sizeof line + line.text.size();
  for (const log_field& one : line.facts.fields)
    if (const auto* text = std::get_if<std::string>(&one.value)) out += text->size();
  return out;
}

log_line report_of(uint64_t n) {
  return {.level = log_level::warning,
          .at = std::chrono::system_clock::now(),
          .text = fmt::format(
              "{} lines of the log were dropped: they came faster than they could be written", n),
          .facts = {.message = "lines of the log were dropped",
                    .fields = {{"dropped", static_cast<int64_t>(n)}}}};
}

}  // namespace

struct log_queue::contents {
  contents(writer call, const bounds& the_most) : write(std::move(call)), most(the_most) {}

  void take(log_line line) {
    n_bytes += size_of(line);
    lines.push_back(std::move(line));
    ++n_pending;
    while (lines.size() > 1 && (lines.size() > most.lines || n_bytes > most.bytes)) {
      drop_oldest();
      ++n_unreported;
    }
  }
  void drop_oldest() {
    n_bytes -= size_of(lines.front());
    lines.pop_front();
    --n_pending;
    ++n_dropped;
  }
  [[nodiscard]] bool has_room() const {
    return lines.size() <= most.lines / 2 && n_bytes <= most.bytes / 2;
  }
  // The next line to write. Call it if there is a line or a number to report.
  log_line next() {
    if (n_unreported != 0 && (lines.empty() || has_room())) {
      ++n_pending;
      return report_of(std::exchange(n_unreported, 0));
    }
    log_line out = std::move(lines.front());
    n_bytes -= size_of(out);
    lines.pop_front();
    return out;
  }

  writer write;
  bounds most;
  std::mutex guard;  // guards the members below
  std::condition_variable added, written;
  std::deque<log_line> lines;
  std::size_t n_bytes = 0;
  uint64_t n_unreported = 0;  // dropped lines, not yet reported
  uint64_t n_written = 0;
  bool ends = false;                  // the thread ends when all is written
  std::atomic<bool> is_left = false;  // ... or after its current line; add() drops lines
  bool is_over = false;
};

log_queue::log_queue(writer write) : log_queue(std::move(write), bounds{}) {}
log_queue::log_queue(writer write, const bounds& most)
    : contents_(std::make_shared<contents>(std::move(write), most)) {}

log_queue::~log_queue() {
  close();
}

void log_queue::start() {
  if (thread_.joinable()) return;
  // Block signals in the thread: a handler may wait for it.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([of = contents_] { write_all_of(of); });
  } catch (const std::system_error&) {
    thread_ = {};  // no thread available: add() writes itself
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void log_queue::add(log_line line) {
  if (!thread_.joinable() && !contents_->is_left) return contents_->write(line);
  {
    const std::lock_guard lock(contents_->guard);
    if (contents_->is_left) return;
    contents_->take(std::move(line));
  }
  contents_->added.notify_one();
}

void log_queue::write_all_of(const std::shared_ptr<contents>& of) {
  contents& in = *of;
  std::unique_lock lock(in.guard);
  const auto has_some = [&in] { return !in.lines.empty() || in.n_unreported != 0; };
  for (;;) {
    in.added.wait(lock, [&] { return in.ends || has_some(); });
    if (in.is_left || !has_some()) break;
    const log_line next = in.next();
    lock.unlock();
    in.write(next);
    lock.lock();
    --n_pending;
    ++in.n_written;
    in.written.notify_all();
  }
  in.is_over = true;
  in.written.notify_all();
}

uint64_t log_queue::close() {
  if (!thread_.joinable()) return 0;
  contents& in = *contents_;
  std::unique_lock lock(in.guard);
  in.ends = true;
  in.added.notify_all();
  const auto last = queue_clock::now() + longest_close;
  bool goes_on = true;
  while (!in.is_over && goes_on) {
    const uint64_t before = in.n_written;
    const auto until = std::min(last, queue_clock::now() + longest_pause);
    goes_on =
        in.written.wait_until(lock, until, [&] { return in.is_over || in.n_written != before; });
    goes_on = goes_on && queue_clock::now() < last;
  }
  if (in.is_over) {
    lock.unlock();
    thread_.join();
    return 0;
  }
  in.is_left = true;
  const uint64_t n_lost = in.lines.size() + 1;  // and the one that is being written
  while (!in.lines.empty()) in.drop_oldest();
  lock.unlock();
  thread_.detach();
  return n_lost;
}

uint64_t n_log_lines_dropped() {
  return n_dropped.load();
}

void settle_logs() noexcept {
  constexpr timespec a_while{.tv_sec = 0, .tv_nsec = 1'000'000};
  for (int i = 0; i < longest_settle_ms && n_pending.load() > 0; ++i)
    ::nanosleep(&a_while, nullptr);
}

namespace {

constexpr std::array fatal_signals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
std::array<struct sigaction, fatal_signals.size()> before_us{};

// Restores the previous handler. A fault then happens again on return; a signal that was sent is
// raised again.
extern "C" void settle_and_die(int number, siginfo_t* about, void*) {
  const int saved = errno;
  settle_logs();
  for (std::size_t i = 0; i < fatal_signals.size(); ++i)
    if (fatal_signals[i] == number) (void)::sigaction(number, &before_us[i], nullptr);
  if (about->si_code <= 0) (void)::raise(number);
  errno = saved;
}

}  // namespace

void settle_logs_on_fatal_signals() {
  struct sigaction ours{};
  ours.sa_sigaction = settle_and_die;
  ours.sa_flags = SA_SIGINFO;
  sigemptyset(&ours.sa_mask);
  for (std::size_t i = 0; i < fatal_signals.size(); ++i)
    (void)::sigaction(fatal_signals[i], &ours, &before_us[i]);
}

}  // namespace bitnet::host
