#include "trace/span_exporter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

namespace bitnet::host::trace {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http_of = boost::beast::http;
using exporter_clock = std::chrono::steady_clock;

constexpr std::size_t most_waiting = 4096;
constexpr std::size_t most_sent = 512;
constexpr std::chrono::milliseconds longest_wait{1000};  // until a span is sent
constexpr std::chrono::seconds longest_exchange{2};      // an end waits for one that runs
constexpr std::chrono::seconds longest_end{2};
constexpr std::chrono::milliseconds first_pause{500}, longest_pause{30'000};
constexpr std::size_t longest_answer = std::size_t{64} * 1024;

// What became of a request.
struct exchange_result {
  unsigned status = 0;  // 0: there was no answer
  std::string trouble = {};
};

// One request on a connection of its own. Takes at most `most`, which bounds the names' look-up,
// too.
class collector_client {
 public:
  collector_client(const collector_address& to, std::chrono::nanoseconds most)
      : to_(to), until_(exporter_clock::now() + most) {}

  exchange_result post(const std::string& user_agent, std::string body) {
    asio::ip::tcp::resolver names(io_);
    asio::ip::tcp::resolver::results_type found;
    names.async_resolve(to_.host, to_.port, [&](const error_code& error, auto all) {
      error_ = error;
      found = std::move(all);
    });
    if (!run()) return trouble("looking up its name");
    stream_.async_connect(found, [&](const error_code& error, const auto&) { error_ = error; });
    if (!run()) return trouble("connecting");
    http_of::request<http_of::string_body> asked(http_of::verb::post, to_.target, 11);
    asked.set(http_of::field::host, to_.named);
    asked.set(http_of::field::user_agent, user_agent);
    asked.set(http_of::field::content_type, "application/json");
    asked.set(http_of::field::connection, "close");
    asked.body() = std::move(body);
    asked.prepare_payload();
    const auto done = [&](const error_code& error, std::size_t) { error_ = error; };
    http_of::async_write(stream_, asked, done);
    if (!run()) return trouble("sending");
    http_of::response_parser<http_of::string_body> answer;
    answer.body_limit(longest_answer);
    beast::flat_buffer buffer(longest_answer);
    http_of::async_read(stream_, buffer, answer, done);
    if (!run()) return trouble("waiting for its answer");
    return {.status = answer.get().result_int()};
  }

 private:
  using error_code = boost::system::error_code;

  // Whether what was begun ended well and in time.
  bool run() {
    io_.restart();
    const auto left = std::max(until_ - exporter_clock::now(), exporter_clock::duration(0));
    io_.run_for(left);
    if (!io_.stopped()) {
      stream_.close();
      error_ = beast::error::timeout;
    }
    return !error_;
  }
  [[nodiscard]] exchange_result trouble(std::string_view doing) const {
    return {.trouble = fmt::format("{}: {}", doing, error_.message())};
  }

  const collector_address& to_;
  exporter_clock::time_point until_;
  asio::io_context io_;
  beast::tcp_stream stream_{io_};
  error_code error_;
};

bool is_for_a_time(unsigned status) {
  return status == 0 || status == 429 || (status >= 502 && status <= 504);
}

}  // namespace

struct span_exporter::contents {
  collector_address to;
  std::string version;
  std::function<void(const std::string&)> on_trouble;
  std::atomic<uint64_t> n_sent{0}, n_dropped{0};
  std::mutex guard;  // of what follows
  std::condition_variable changed;
  std::deque<span> waiting;
  bool ends = false;

  // ---- the exporter's thread ----
  std::chrono::milliseconds pause{0};  // before the next request; 0: the last one went well

  // The next spans to send; none: it ends, and nothing is left.
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

  // Where there is room: newer ones count more.
  void put_back(std::vector<span> spans) {
    const std::lock_guard lock(guard);
    while (!spans.empty() && waiting.size() < most_waiting) {
      waiting.push_front(std::move(spans.back()));
      spans.pop_back();
    }
    n_dropped += spans.size();
  }

  // Whether the collector answered.
  bool send(std::vector<span> spans, std::chrono::nanoseconds most) {
    const exchange_result got = collector_client(to, most).post(fmt::format("bitnet/{}", version),
                                                                otlp_body(version, spans));
    if (is_for_a_time(got.status)) {
      report_outage(got);
      put_back(std::move(spans));
      pause = std::clamp(pause * 2, first_pause, longest_pause);
      return false;
    }
    if (std::exchange(pause, std::chrono::milliseconds(0)).count() != 0)
      on_trouble(fmt::format("the collector of traces at {} answers again", to.named));
    if (got.status / 100 == 2) {
      n_sent += spans.size();
    } else {
      n_dropped += spans.size();
      on_trouble(
          fmt::format("the collector of traces at {} refuses {} spans with status {}; does "
                      "{} take OTLP in JSON?",
                      to.named, spans.size(), got.status, to.target));
    }
    return true;
  }

  void report_outage(const exchange_result& got) const {
    if (pause.count() != 0) return;
    on_trouble(fmt::format(
        "the collector of traces at {} takes no spans ({}); they are kept and sent again", to.named,
        got.status == 0 ? got.trouble : fmt::format("status {}", got.status)));
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

span_exporter::span_exporter(collector_address to, std::string version,
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
