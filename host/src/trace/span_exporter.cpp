#include "trace/span_exporter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <expected>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "client/exchange.hpp"
#include "trace/otlp.hpp"

namespace bitnet::host::trace {
namespace {

using exporter_clock = std::chrono::steady_clock;

constexpr std::size_t most_waiting = 4096;
constexpr std::size_t most_sent = 512;
constexpr std::chrono::milliseconds longest_wait{1000};  // longest delay of a span
constexpr std::chrono::seconds longest_exchange{2};      // which the destructor awaits
constexpr std::chrono::seconds longest_end{2};
constexpr std::chrono::milliseconds first_pause{500}, longest_pause{30'000};
constexpr std::size_t longest_answer = std::size_t{64} * 1024;

// The collector's HTTP status, or why there is none.
using collector_answer = std::expected<int, std::string>;

// Sends a request on a new connection.
collector_answer post(const client::http_url& to, const std::string& version, std::string body,
                      std::chrono::nanoseconds most) {
  std::size_t n_read = 0;
  return client::exchange(to,
                          {.target = to.path,
                           .body = std::move(body),
                           .key = "",
                           .user_agent = fmt::format("bitnet/{}", version)},
                          {.in_all = most, .is_ended = nullptr}, [&](std::string_view bytes) {
                            n_read += bytes.size();
                            return n_read <= longest_answer;
                          });
}

bool is_for_a_time(const collector_answer& got) {
  return !got || *got == 429 || (*got >= 502 && *got <= 504);
}

}  // namespace

struct span_exporter::contents {
  client::http_url to;
  std::string version;
  std::function<void(const std::string&)> on_trouble;
  std::atomic<uint64_t> n_sent{0}, n_dropped{0};
  std::mutex guard;  // guards the members below
  std::condition_variable changed;
  std::deque<span> waiting;
  bool ends = false;

  // ---- the exporter's thread ----
  std::chrono::milliseconds pause{0};  // before the next request; 0: the last one succeeded

  // Returns the next spans to send; none: the thread ends, and no span is left.
  std::vector<span> next(bool& is_last) {
    std::unique_lock lock(guard);
    const auto has_enough = [this] { return ends || waiting.size() >= most_sent; };
    if (pause.count() != 0)
      changed.wait_for(lock, pause, [this] { return ends; });
    else
      changed.wait(lock, [this] { return ends || !waiting.empty(); });
    if (pause.count() == 0) changed.wait_for(lock, longest_wait, has_enough);
    is_last = ends;
    const auto end =
        waiting.begin() + static_cast<std::ptrdiff_t>(std::min(waiting.size(), most_sent));
    std::vector<span> out(std::move_iterator(waiting.begin()), std::move_iterator(end));
    waiting.erase(waiting.begin(), end);
    return out;
  }

  // Puts spans back while there is room; newer spans have priority.
  void put_back(std::vector<span> spans) {
    const std::lock_guard lock(guard);
    while (!spans.empty() && waiting.size() < most_waiting) {
      waiting.push_front(std::move(spans.back()));
      spans.pop_back();
    }
    n_dropped += spans.size();
  }

  // Returns whether the collector answered.
  bool send(std::vector<span> spans, std::chrono::nanoseconds most) {
    const collector_answer got = post(to, version, otlp_body(version, spans), most);
    if (is_for_a_time(got)) {
      report_outage(got);
      put_back(std::move(spans));
      pause = std::clamp(pause * 2, first_pause, longest_pause);
      return false;
    }
    if (std::exchange(pause, std::chrono::milliseconds(0)).count() != 0)
      on_trouble(fmt::format("the collector of traces at {} answers again", to.authority()));
    if (*got / 100 == 2) {
      n_sent += spans.size();
    } else {
      n_dropped += spans.size();
      on_trouble(
          fmt::format("the collector of traces at {} rejects {} spans with status {}; does "
                      "{} take OTLP in JSON?",
                      to.authority(), spans.size(), *got, to.path));
    }
    return true;
  }

  void report_outage(const collector_answer& got) const {
    if (pause.count() != 0) return;
    on_trouble(fmt::format(
        "the collector of traces at {} takes no spans ({}); they are kept and sent again",
        to.authority(), got ? fmt::format("status {}", *got) : got.error()));
  }

  void work() {
    bool is_last = false;
    exporter_clock::time_point until = exporter_clock::time_point::max();
    for (;;) {
      std::vector<span> spans = next(is_last);
      if (is_last && until == exporter_clock::time_point::max())
        until = exporter_clock::now() + longest_end;
      if (spans.empty() && is_last) return;
      if (spans.empty()) continue;
      const auto left = until - exporter_clock::now();
      const bool went =
          send(std::move(spans), is_last ? std::chrono::nanoseconds(left)
                                         : std::chrono::nanoseconds(longest_exchange));
      if (is_last && !went) return;
    }
  }
};

span_exporter::span_exporter(client::http_url to, std::string version,
                             std::function<void(const std::string&)> on_trouble)
    : contents_(std::make_unique<contents>()) {
  contents_->to = std::move(to);
  contents_->version = std::move(version);
  contents_->on_trouble = std::move(on_trouble);
  try {
    thread_ = std::thread([this] { contents_->work(); });
  } catch (const std::system_error& error) {
    contents_->on_trouble(fmt::format(
        "no thread is to be had that sends traces ({}); they are dropped", error.what()));
    contents_->ends = true;
  }
}

span_exporter::~span_exporter() {
  {
    const std::lock_guard lock(contents_->guard);
    contents_->ends = true;
  }
  contents_->changed.notify_all();
  if (thread_.joinable()) thread_.join();
}

void span_exporter::add(span one) {
  {
    const std::lock_guard lock(contents_->guard);
    if (!thread_.joinable()) {
      ++contents_->n_dropped;
      return;
    }
    if (contents_->waiting.size() == most_waiting) {
      contents_->waiting.pop_front();
      ++contents_->n_dropped;
    }
    contents_->waiting.push_back(std::move(one));
  }
  contents_->changed.notify_one();
}

uint64_t span_exporter::n_sent() const {
  return contents_->n_sent;
}

uint64_t span_exporter::n_dropped() const {
  return contents_->n_dropped;
}

}  // namespace bitnet::host::trace
