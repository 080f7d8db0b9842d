#include "load/exchange.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <cerrno>
#include <cstring>
#include <memory>

#include "files/descriptor.hpp"

namespace bitnet::host::load {
namespace {

namespace http = boost::beast::http;
using error_code = boost::beast::error_code;

constexpr int slice_ms = 100;  // after which is_ended() is asked again

std::string reason_of(int number) {
  return std::generic_category().message(number);
}

// Waits for the descriptor; nothing once it is ready, else why not.
std::string wait_for(int fd, short what, const exchange_limits& limits) {
  for (int waited_ms = 0; waited_ms < limits.timeout_ms; waited_ms += slice_ms) {
    if (limits.is_ended && limits.is_ended()) return "interrupted";
    pollfd watched{fd, what, 0};
    const int n = ::poll(&watched, 1, slice_ms);
    if (n > 0) return "";
    if (n < 0 && errno != EINTR) return reason_of(errno);
  }
  return fmt::format("no byte in {} s", limits.timeout_ms / 1000);
}

using connected = std::expected<files::descriptor, std::string>;

connected connect_to(const addrinfo& at, const exchange_limits& limits) {
  files::descriptor out(
      ::socket(at.ai_family, at.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at.ai_protocol));
  if (!out) return std::unexpected(reason_of(errno));
  if (::connect(out.get(), at.ai_addr, at.ai_addrlen) == 0) return out;
  if (errno != EINPROGRESS) return std::unexpected(reason_of(errno));
  if (auto why = wait_for(out.get(), POLLOUT, limits); !why.empty()) return std::unexpected(why);
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(out.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return std::unexpected(reason_of(error));
  return out;
}

connected open_connection(const server_address& with, const exchange_limits& limits) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int why = ::getaddrinfo(with.host.c_str(), with.port.c_str(), &hints, &found); why != 0)
    return std::unexpected(fmt::format("{}: {}", with.host, ::gai_strerror(why)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  connected out = std::unexpected(std::string("no address"));
  for (const addrinfo* one = found; one != nullptr && !out; one = one->ai_next)
    out = connect_to(*one, limits);
  if (!out) return std::unexpected(fmt::format("{}: {}", with.authority(), out.error()));
  const int on = 1;
  (void)::setsockopt(out->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // a wish
  return out;
}

std::string text_of(const server_address& with, const sent_request& what) {
  std::string out =
      fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: bitnet-bench\r\nConnection: close\r\n",
                  what.method, what.path, with.authority());
  if (!what.key.empty()) out += fmt::format("Authorization: Bearer {}\r\n", what.key);
  if (!what.body.empty())
    out +=
        fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", what.body.size());
  return out + "\r\n" + what.body;
}

std::string send_all(int fd, std::string_view text, const exchange_limits& limits) {
  while (!text.empty()) {
    const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n > 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
      continue;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR) return reason_of(errno);
    if (auto why = wait_for(fd, POLLOUT, limits); !why.empty()) return why;
  }
  return "";
}

// Beast's parser, with the body given on as it comes.
class answer_parser : public http::basic_parser<false> {
 public:
  explicit answer_parser(const std::function<bool(std::string_view)>& piece) : piece_(piece) {
    eager(true);
    body_limit(UINT64_MAX);  // none is 0 for some versions of Beast
  }
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] bool broken_off() const { return broken_off_; }

 private:
  using view = boost::beast::string_view;
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

// The parser wants bytes again that it did not take: `kept` has them.
std::string feed(answer_parser& parser, std::string& kept) {
  while (!kept.empty() && !parser.is_done()) {
    error_code error;
    const std::size_t n = parser.put(boost::asio::buffer(kept), error);
    kept.erase(0, n);
    if (error == http::error::need_more) return "";
    if (parser.broken_off()) return "";
    if (error) return "the answer is no HTTP/1.1: " + error.message();
    if (n == 0) return "";
  }
  return "";
}

std::string read_answer(int fd, answer_parser& parser, const exchange_limits& limits) {
  std::array<char, 65536> part{};
  std::string kept;
  while (!parser.is_done() && !parser.broken_off()) {
    const ssize_t n = ::recv(fd, part.data(), part.size(), 0);
    if (n == 0) {
      error_code error;
      if (parser.got_some()) parser.put_eof(error);
      return error || !parser.is_done() ? "the server closed the connection before the end" : "";
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR) return reason_of(errno);
    if (n < 0) {
      if (auto why = wait_for(fd, POLLIN, limits); !why.empty()) return why;
      continue;
    }
    kept.append(part.data(), static_cast<std::size_t>(n));
    if (auto why = feed(parser, kept); !why.empty()) return why;
  }
  return "";
}

}  // namespace

std::expected<int, std::string> exchange(const server_address& with, const sent_request& what,
                                         const exchange_limits& limits,
                                         const std::function<bool(std::string_view)>& piece) {
  const auto to = open_connection(with, limits);
  if (!to) return std::unexpected(to.error());
  if (auto why = send_all(to->get(), text_of(with, what), limits); !why.empty())
    return std::unexpected(why);
  answer_parser parser(piece);
  if (auto why = read_answer(to->get(), parser, limits); !why.empty()) return std::unexpected(why);
  return parser.status();
}

}  // namespace bitnet::host::load
