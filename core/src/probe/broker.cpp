#include "probe/broker.hpp"

#include <fmt/core.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "probe/child.hpp"
#include "probe/driver_cache.hpp"
#include "probe/frame.hpp"
#include "probe/job.hpp"
#include "probe/priority.hpp"
#include "probe/probe_lock.hpp"
#include "probe/scratch.hpp"
#include "probe/supervise.hpp"

namespace bitnet::probe {
namespace {

namespace fs = std::filesystem;
using clock = std::chrono::steady_clock;

// The program that requested the probe. It may close the connection. It may also stop waiting: then
// it closes its sending side, and can still get the answer.
class waiting_program final : public audience {
 public:
  // `outlives`: the job continues without it.
  waiting_program(int fd, bool outlives) : fd_(fd), outlives_(outlives) {}

  [[nodiscard]] pollfd wake() const override {
    return {gone_ ? -1 : fd_, static_cast<short>(hushed_ ? 0 : POLLRDHUP), 0};
  }
  [[nodiscard]] bool attend() override {
    look(0);
    return outlives_ || !gone_;
  }
  void reached(stage s) override {
    const char number = static_cast<char>(s);
    say(frame_kind::begin, {&number, 1});
  }

  void say(frame_kind kind, std::string_view payload) const {
    const std::string bytes = encode(kind, payload);
    for (std::size_t done = 0; !gone_ && done < bytes.size();) {
      const ssize_t n = send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;  // it is gone; the answer is cached all the same
      done += static_cast<std::size_t>(n);
    }
  }

  // Checks whether it is there and still waits. Sleeps up to `ms` if neither changes.
  void look(int ms) {
    pollfd one = wake();
    if (poll(&one, 1, ms) != 1) return;
    gone_ = (one.revents & (POLLHUP | POLLERR)) != 0;
    if (hushed_) return;
    hushed_ = true;
    be_idle();  // also the child, if it runs by now
  }
  [[nodiscard]] bool gone() const { return gone_; }

 private:
  int fd_;
  bool outlives_;
  bool hushed_ = false, gone_ = false;
};

// The folder that the child of one job can write to.
class writable_folder {
 public:
  writable_folder(const job& j, bool remembers) {
    if (remembers) kept_ = open_driver_cache(cache(j.memory).drivers_of(j.key));
    if (!kept_.empty()) return;
    const fs::path place = scratch_place(j.scratch);
    sweep_scratch_folders(place);
    passing_.emplace(place);
  }
  [[nodiscard]] const fs::path& path() const { return passing_ ? passing_->path() : kept_; }
  [[nodiscard]] std::string problem() const { return passing_ ? passing_->problem() : ""; }
  // Call it before the answer is sent. Files that a crash left are not used.
  void settle(const outcome& f) {
    if (passing_) return passing_->remove();
    const bool broke = f.what.fault && (f.what.fault->code == plugin::code::probe_crash ||
                                        f.what.fault->code == plugin::code::probe_exit);
    bound_driver_cache(kept_, broke ? 0 : most_driver_cache_bytes);
  }

 private:
  fs::path kept_;
  std::optional<scratch_folder> passing_;
};

std::optional<job> receive_job(int fd) {
  frame_reader reader;
  for (std::array<std::byte, 4096> buffer{};;) {
    auto one = reader.next();
    if (!one) return std::nullopt;
    if (const auto& whole = *one; whole) {
      auto read = read_job(whole->payload);
      return read ? std::optional(std::move(*read)) : std::nullopt;
    }
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    reader.feed({buffer.data(), static_cast<std::size_t>(n)});
  }
}

std::optional<outcome> probe(const job& j, bool remembers, waiting_program& who) {
  writable_folder writable(j, remembers);
  auto out = supervise(j, writable.path(), who);
  if (!out) {
    writable.settle({});
    return out;
  }
  if (const std::string problem = writable.problem(); !problem.empty())
    out->notes.insert(out->notes.begin(), problem);
  writable.settle(*out);
  return out;
}

// Probes without a cache if that cannot be used: the question is answered all the same.
std::optional<outcome> probe_without_memory(const job& j, const std::string& problem,
                                            waiting_program& who) {
  auto out = probe(j, false, who);
  if (out) out->notes.push_back(fmt::format("the answer is not remembered: {}", problem));
  return out;
}

// Lets one process probe when several want the same answer. Returns nullopt if the program has
// ended or the wait took too long.
std::optional<outcome> probe_under_lock(const job& j, const cache& memory, waiting_program& who) {
  std::string problem;
  constexpr int look_ms = 20;
  constexpr std::chrono::minutes longest{30};
  const auto end = clock::now() + longest;
  // The holder of the build's lock does not need this process.
  const auto build = probe_lock::take(
      memory.lock_of(j.key),
      [&] {
        who.look(look_ms);
        return who.gone() || clock::now() > end;
      },
      &problem);
  if (!build && !problem.empty()) return probe_without_memory(j, problem, who);
  if (!build) return std::nullopt;
  std::vector<std::string> ignored;
  if (!j.fresh)
    if (auto known = memory.recall(j.key, std::time(nullptr), ignored)) return known;
  std::optional<probe_lock> common;
  if (!j.needed) {
    common = probe_lock::take(
        memory.common_lock(),
        [&] {
          who.look(look_ms);
          return clock::now() > end;
        },
        &problem);
    if (!common && !problem.empty()) return probe_without_memory(j, problem, who);
    if (!common) return std::nullopt;
  }
  build->mark(true);
  auto out = probe(j, true, who);
  // Does not store the answer if the cache folder was removed meanwhile.
  std::error_code none;
  if (out && fs::exists(j.memory, none)) memory.remember(j.key, std::time(nullptr), j.fresh, *out);
  build->mark(false);
  return out;
}

}  // namespace

int serve_as_broker(int fd) {
  // A limit for file sizes then acts like a full disk: the cache is not written, and the question
  // is answered.
  std::signal(SIGXFSZ, SIG_IGN);
  const auto given = receive_job(fd);
  if (!given) return exit_no_task;
  const job& j = *given;
  const cache memory(j.memory);
  const bool remembers = !j.memory.empty() && memory.prepare();
  waiting_program who(fd, remembers);
  if (!j.needed) be_idle();
  const auto out = remembers ? probe_under_lock(j, memory, who) : probe(j, false, who);
  if (out) who.say(frame_kind::answer, write_answer(*out));
  return 0;
}

}  // namespace bitnet::probe
