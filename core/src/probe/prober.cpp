#include "probe/prober.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <span>
#include <thread>
#include <utility>

#include "base/new_thread.hpp"
#include "probe/broker.hpp"
#include "probe/frame.hpp"
#include "probe/helper_process.hpp"
#include "system/limits.hpp"

namespace bitnet::probe {
namespace {

using clock = std::chrono::steady_clock;
using plugin::file_descriptor;

// A broker that is running.
struct broker {
  ticket id = 0;
  bool outlives = false;  // it has a cache for its answer
  helper_process process;
  frame_reader reader;
  stage reached = stage::start;
  std::optional<outcome> answer;

  bool short_of_memory = false;  // its answer could not be read for lack of memory

  // Reads available bytes. Returns false at the end of the stream, after invalid data, and if
  // memory runs out.
  bool listen();

 private:
  bool read_frames(std::span<const std::byte> bytes);
};

bool broker::listen() {
  std::array<std::byte, 16384> buffer;
  for (;;) {
    const ssize_t n = recv(process.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    try {
      if (!read_frames({buffer.data(), static_cast<std::size_t>(n)})) return false;
    } catch (const std::bad_alloc&) {
      short_of_memory = true;
      return false;
    }
  }
}

// Returns false after invalid data.
bool broker::read_frames(std::span<const std::byte> bytes) {
  reader.feed(bytes);
  for (;;) {
    auto one = reader.next();
    if (!one) return false;
    const auto& whole = *one;
    if (!whole) return true;
    if (whole->kind == frame_kind::begin && whole->payload.size() == 1)
      reached = static_cast<stage>(std::min<uint8_t>(static_cast<uint8_t>(whole->payload[0]),
                                                     static_cast<uint8_t>(n_stages - 1)));
    if (whole->kind == frame_kind::answer)
      if (auto read = read_answer(whole->payload)) answer = std::move(*read);
  }
}

outcome without_answer(plugin::defect why) {
  outcome out;
  out.what.fault = std::move(why);
  return out;
}

plugin::defect ended_early(bool short_of_memory) {
  if (short_of_memory)
    return no_helper("there is no memory for the answer of bitnet-backend-probe" +
                     limits::of_memory());
  // For instance without memory for its libraries: the linker ends it before it can answer.
  return no_helper("bitnet-backend-probe ended without an answer" + limits::of_memory());
}

constexpr std::size_t message_room = std::size_t{64} * 1024;  // bytes

// Throws std::bad_alloc unless the heap has room for a message. When memory runs out, noexcept
// constructors of nlohmann-json end the process; with this much room they do not.
void check_room_for_message() {
  void* volatile room =
      std::malloc(message_room);  // volatile, so that the pair of calls is not optimised away
  if (room == nullptr) throw std::bad_alloc();
  std::free(room);
}

}  // namespace

struct prober::contents {
  // Freed when memory runs out, so that this can be reported.
  std::unique_ptr<char[]> reserve = std::make_unique<char[]>(message_room);
  uint32_t most_children = 1;
  file_descriptor wake;

  mutable std::mutex mutex;  // guards what follows
  mutable std::condition_variable answered;
  ticket next = 1;
  std::deque<std::pair<ticket, job>> waiting;
  std::map<ticket, outcome> running;  // progress of running and waiting probes
  std::map<ticket, outcome> answers;
  std::set<ticket> to_calm;
  bool stop = false;

  std::vector<std::unique_ptr<broker>> brokers;  // used only by the thread
  std::jthread thread;

  void rouse() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(wake.get(), &one, sizeof one);
  }
  void publish(ticket t, outcome f);
  bool take_next(std::pair<ticket, job>& out);
  bool start_more();
  void start(ticket id, const job& what);
  void calm_down();
  bool attend(broker& b, bool said, bool ended);
  void let_go();
  void work();
};

void prober::contents::publish(ticket t, outcome f) {
  const std::scoped_lock lock(mutex);
  running.erase(t);
  answers.emplace(t, std::move(f));
  answered.notify_all();
}

// Takes the first job that may start now.
bool prober::contents::take_next(std::pair<ticket, job>& out) {
  const bool full =
      stop ||  // jobs with a cache start even then
      std::ranges::count_if(brokers, [](const auto& b) { return !b->outlives; }) >= most_children;
  const auto first = std::ranges::find_if(
      waiting, [&](const auto& one) { return !full || !one.second.memory.empty(); });
  if (first == waiting.end()) return false;
  out = std::move(*first);
  waiting.erase(first);
  return true;
}

void prober::contents::start(ticket id, const job& what) {
  check_room_for_message();
  auto started = start_helper({what.helper, broker_argument, what.environment, true, false},
                              encode(frame_kind::job, write_job(what)));
  if (!started) return publish(id, without_answer(std::move(started.error())));
  auto b = std::make_unique<broker>();
  b->id = id;
  b->outlives = !what.memory.empty();
  b->process = std::move(*started);
  brokers.push_back(std::move(b));
}

// Returns false when it is time to stop.
bool prober::contents::start_more() {
  for (;;) {
    std::pair<ticket, job> one;
    {
      const std::scoped_lock lock(mutex);
      if (!take_next(one)) return !stop;
    }
    // Only this job fails: an exception in a thread would end the process.
    try {
      start(one.first, one.second);
    } catch (const std::bad_alloc&) {
      reserve.reset();
      publish(one.first, without_answer(ended_early(true)));
    }
  }
}

void prober::contents::calm_down() {
  std::set<ticket> which;
  {
    const std::scoped_lock lock(mutex);
    which.swap(to_calm);
  }
  // The end of the stream reports it.
  for (const auto& b : brokers)
    if (which.contains(b->id)) shutdown(b->process.socket.get(), SHUT_WR);
}

// Returns true when it has ended.
bool prober::contents::attend(broker& b, bool said, bool ended) {
  if (b.process.socket.get() >= 0 && (said || ended)) {
    const stage before = b.reached;
    const bool more = b.listen();
    if (b.reached != before) {
      const std::scoped_lock lock(mutex);
      if (const auto at = running.find(b.id); at != running.end()) at->second.reached = b.reached;
    }
    if (b.answer || !more) {
      publish(b.id,
              b.answer ? std::move(*b.answer) : without_answer(ended_early(b.short_of_memory)));
      b.process.socket = file_descriptor();
    }
  }
  if (!ended) return false;
  if (b.process.socket.get() >= 0) publish(b.id, without_answer(ended_early(b.short_of_memory)));
  waitpid(b.process.pid, nullptr, WNOHANG);
  return true;
}

// Brokers with a cache continue. Others notice the closed stream and end, with their children.
void prober::contents::let_go() {
  constexpr int patience_ms = 5000;
  const auto end = clock::now() + std::chrono::milliseconds(patience_ms);
  for (const auto& b : brokers) b->process.socket = file_descriptor();
  for (const auto& b : brokers) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - clock::now()).count();
    pollfd ended{b->process.process.get(), POLLIN, 0};
    const int wait_ms = b->outlives ? 0 : static_cast<int>(std::max<int64_t>(left, 0));
    if (poll(&ended, 1, wait_ms) != 1 || waitpid(b->process.pid, nullptr, WNOHANG) == 0)
      leave_alone(b->process.pid);
  }
  brokers.clear();
}

void prober::contents::work() {
  std::vector<pollfd> fds;
  while (start_more()) {
    calm_down();
    fds.assign(1, {wake.get(), POLLIN, 0});
    for (const auto& b : brokers) {
      fds.push_back({b->process.socket.get(), POLLIN, 0});
      fds.push_back({b->process.process.get(), POLLIN, 0});
    }
    // Sleeps for a limited time, and also if poll() fails: the program may have closed these
    // descriptors, and then poll() would return at once each time.
    constexpr int longest_sleep_ms = 500;
    constexpr std::chrono::milliseconds breath{20};
    if (poll(fds.data(), fds.size(), longest_sleep_ms) < 0) std::this_thread::sleep_for(breath);
    uint64_t ignored = 0;
    if (fds[0].revents != 0 && read(wake.get(), &ignored, sizeof ignored) < 0)
      std::this_thread::sleep_for(breath);
    std::size_t at = 1;
    std::erase_if(brokers, [&](const auto& b) {
      const bool said = fds[at].revents != 0;
      const bool ended = fds[at + 1].revents != 0;
      at += 2;
      return attend(*b, said, ended);
    });
  }
  let_go();
}

prober::prober(uint32_t most_children) : contents_(std::make_unique<contents>()) {
  reap_left_alone();
  contents_->most_children = std::max(most_children, 1U);
  contents_->wake = file_descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

prober::~prober() {
  {
    const std::scoped_lock lock(contents_->mutex);
    contents_->stop = true;
  }
  contents_->rouse();
  if (contents_->thread.joinable()) contents_->thread.join();
}

ticket prober::start(job what) {
  contents& c = *contents_;
  const std::scoped_lock lock(c.mutex);
  const ticket t = c.next++;
  // Without any probe there is no thread.
  if (!c.thread.joinable()) {
    auto made = new_thread([&c] { c.work(); });
    if (!made) {
      c.answers.emplace(
          t, without_answer(no_helper(fmt::format("nothing listens to bitnet-backend-probe: {}",
                                                  made.error().message))));
      return t;
    }
    c.thread = std::move(*made);
  }
  c.running.emplace(t, outcome{});
  c.waiting.emplace_back(t, std::move(what));
  c.rouse();
  return t;
}

std::optional<outcome> prober::take(ticket t) {
  const std::scoped_lock lock(contents_->mutex);
  auto node = contents_->answers.extract(t);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

outcome prober::peek(ticket t) const {
  const std::scoped_lock lock(contents_->mutex);
  const auto at = contents_->running.find(t);
  return at == contents_->running.end() ? outcome{} : at->second;
}

void prober::calm(ticket t) {
  const std::scoped_lock lock(contents_->mutex);
  if (!contents_->running.contains(t)) return;
  contents_->to_calm.insert(t);
  contents_->rouse();
}

bool prober::wait(const std::vector<ticket>& all, clock::time_point end) const {
  std::unique_lock lock(contents_->mutex);
  return contents_->answered.wait_until(lock, end, [&] {
    return std::ranges::none_of(all, [&](ticket t) { return contents_->running.contains(t); });
  });
}

bool prober::wait_for_one(const std::vector<ticket>& of, clock::time_point end) const {
  std::unique_lock lock(contents_->mutex);
  const auto has_answered = [&] {
    return !std::ranges::all_of(of, [&](ticket t) { return contents_->running.contains(t); });
  };
  // The system cannot wait until time_point::max().
  if (end != clock::time_point::max())
    return contents_->answered.wait_until(lock, end, has_answered);
  contents_->answered.wait(lock, has_answered);
  return true;
}

}  // namespace bitnet::probe
