#include "client/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

namespace bitnet::host::client {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using error_code = boost::system::error_code;
using steady_clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds slice{100};  // interval between calls of is_ended()
constexpr std::size_t read_at_once = 65536;

// Beast's parser; passes the body on as it comes.
class answer_parser : public http::basic_parser<false> {
 public:
  explicit answer_parser(const std::function<bool(std::string_view)>& piece) : piece_(piece) {
    eager(true);
    body_limit(UINT64_MAX);  // some versions of Beast take `none` as 0
  }
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] bool broken_off() const { return broken_off_; }

 private:
  using view = beast::string_view;
  void on_request_impl(http::verb, view, view, int, error_code&) override {}
  void on_response_impl(int code, view, int, error_code&) override { status_ = code; }
  void on_field_impl(http::field, view, view, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(view body, error_code& error) override { return give(body, error); }
  void on_chunk_header_impl(uint64_t, view, error_code&) override {}
  std::size_t on_chunk_body_impl(uint64_t, view body, error_code& error) override {
    return give(body, error);
  }
  void on_finish_impl(error_code&) override {}

  std::size_t give(view body, error_code& error) {
    if (!piece_({body.data(), body.size()})) {
      broken_off_ = true;
      error = http::error::end_of_stream;
    }
    return body.size();
  }

  const std::function<bool(std::string_view)>& piece_;
  int status_ = 0;
  bool broken_off_ = false;
};

class connection {
 public:
  connection(const http_url& with, const exchange_limits& limits)
      : with_(with), limits_(limits), begun_(steady_clock::now()) {}

  // Each of these returns "" on success, else the reason.
  std::string open() {
    asio::ip::tcp::resolver names(io_);
    asio::ip::tcp::resolver::results_type found;
    names.async_resolve(with_.host, with_.port, [&](const error_code& error, auto all) {
      error_ = error;
      found = std::move(all);
    });
    if (auto why = wait(); !why.empty()) return "looking up its name: " + why;
    stream_.async_connect(found, [&](const error_code& error, const auto&) { error_ = error; });
    if (auto why = wait(); !why.empty()) return "connecting: " + why;
    error_code ignored;  // failing does no harm
    (void)stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
    return "";
  }

  std::string send(const sent_request& what) {
    http::request<http::string_body> asked;
    asked.method_string(what.method);
    asked.target(what.target);
    asked.version(11);
    asked.set(http::field::host, with_.authority());
    asked.set(http::field::user_agent, what.user_agent);
    asked.set(http::field::connection, "close");
    if (!what.key.empty()) asked.set(http::field::authorization, "Bearer " + what.key);
    if (!what.body.empty()) {
      asked.set(http::field::content_type, "application/json");
      asked.body() = what.body;
      asked.prepare_payload();
    }
    http::async_write(stream_, asked, done_);
    return wait();
  }

  std::string read(answer_parser& parser) {
    beast::flat_buffer buffer(read_at_once);
    while (!parser.is_done() && !parser.broken_off()) {
      http::async_read_some(stream_, buffer, parser, done_);
      auto why = wait();
      if (parser.broken_off()) return "";
      if (error_ == http::error::end_of_stream || error_ == http::error::partial_message)
        return "the server closed the connection before the end";
      if (error_ && error_.category() == http::make_error_code(http::error{}).category())
        return "the answer is no HTTP/1.1: " + why;
      if (!why.empty()) return why;
    }
    return "";
  }

 private:
  // Runs the started operation to its end, or cancels it.
  std::string wait() {
    io_.restart();
    const auto until = std::min(steady_clock::now() + limits_.without_a_byte, end_of_all());
    while (!io_.stopped()) {
      const auto now = steady_clock::now();
      const bool is_ended = limits_.is_ended && limits_.is_ended();
      if (is_ended || now >= until) {
        stream_.close();
        return is_ended ? "interrupted"
                        : fmt::format("no byte in {:.3g} s",
                                      std::chrono::duration<double>(waited(now)).count());
      }
      io_.run_for(std::min<steady_clock::duration>(slice, until - now));
    }
    return error_ ? error_.message() : "";
  }
  [[nodiscard]] steady_clock::time_point end_of_all() const {
    return limits_.in_all == std::chrono::nanoseconds::max() ? steady_clock::time_point::max()
                                                             : begun_ + limits_.in_all;
  }
  [[nodiscard]] steady_clock::duration waited(steady_clock::time_point now) const {
    return std::min<steady_clock::duration>(now - begun_, limits_.without_a_byte);
  }

  const http_url& with_;
  const exchange_limits& limits_;
  steady_clock::time_point begun_;
  error_code error_;  // of the last operation
  std::function<void(const error_code&, std::size_t)> done_ =
      [this](const error_code& error, std::size_t) { error_ = error; };
  asio::io_context io_;
  beast::tcp_stream stream_{io_};
};

}  // namespace

std::expected<int, std::string> exchange(const http_url& with, const sent_request& what,
                                         const exchange_limits& limits,
                                         const std::function<bool(std::string_view)>& piece) {
  connection to(with, limits);
  answer_parser parser(piece);
  std::string why = to.open();
  if (why.empty()) why = to.send(what);
  if (why.empty()) why = to.read(parser);
  if (!why.empty()) return std::unexpected(std::move(why));
  return parser.status();
}

}  // namespace bitnet::host::client
