#include "http/listeners.hpp"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "text/printable.hpp"

namespace bitnet::host::http {
namespace asio = boost::asio;
namespace {

using tcp = asio::ip::tcp;
using error_code = boost::system::error_code;

std::unexpected<failure> unusable(const std::string& address, const std::string& why) {
  return fail(exit_code::usage,
              fmt::format("cannot listen on {}: {}", text::printable(address), why));
}

std::string text_of(const tcp::endpoint& at) {
  const std::string host = at.address().to_string();
  return at.address().is_v6() ? fmt::format("[{}]:{}", host, at.port())
                              : fmt::format("{}:{}", host, at.port());
}

result<void> check_exposure(const tcp::endpoint& at, bool has_keys, bool allowed) {
  if (has_keys || allowed || at.address().is_loopback()) return {};
  return fail(exit_code::usage,
              fmt::format("{} can be reached from other machines, and clients need no key: give "
                          "--api-key-file or --api-key, or --allow-unauthenticated where "
                          "something else keeps others out",
                          text_of(at)));
}

result<void> listen_at(stream_acceptor& acceptor,
                       const asio::generic::stream_protocol::endpoint& at, bool is_v6,
                       const std::string& name) {
  error_code ec;
  static_cast<void>(acceptor.open(at.protocol(), ec));
  if (!ec) static_cast<void>(acceptor.set_option(asio::socket_base::reuse_address(true), ec));
  // Separate sockets per family, so that 0.0.0.0 and :: can both be given.
  if (!ec && is_v6) static_cast<void>(acceptor.set_option(asio::ip::v6_only(true), ec));
  if (!ec) static_cast<void>(acceptor.bind(at, ec));
  if (!ec) static_cast<void>(acceptor.listen(asio::socket_base::max_listen_connections, ec));
  if (ec) return unusable(name, ec.message());
  return {};
}

result<void> add_tcp(asio::io_context& io, const listen_options& where, bool has_keys,
                     std::vector<listener>& out) {
  error_code ec;
  tcp::resolver resolver(io);
  const auto found =
      resolver.resolve(where.host, fmt::format("{}", where.port), tcp::resolver::passive, ec);
  if (ec) return unusable(where.host, ec.message());
  uint16_t port = where.port;
  for (const auto& one : found) {
    tcp::endpoint at = one.endpoint();
    if (auto ok = check_exposure(at, has_keys, where.allow_unauthenticated); !ok) return ok;
    at.port(port);  // for port 0 all use the first one's port
    listener made{.acceptor = stream_acceptor(io), .is_tcp = true, .port = 0, .address = {}};
    if (auto ok = listen_at(made.acceptor, at, at.address().is_v6(), text_of(at)); !ok) return ok;
    const auto bound = made.acceptor.local_endpoint();
    std::memcpy(at.data(), bound.data(), bound.size());
    made.port = port = at.port();
    made.address = text_of(at);
    out.push_back(std::move(made));
  }
  return {};
}

// Removes the socket of an ended process, which refuses connections. One in use is kept.
result<void> make_way(const std::string& path) {
  struct stat about{};
  if (::lstat(path.c_str(), &about) != 0) return {};
  if (!S_ISSOCK(about.st_mode)) return unusable(path, "there is a file that is no socket");
  asio::io_context probe_io;
  asio::local::stream_protocol::socket probe(probe_io);
  error_code ec;
  static_cast<void>(probe.connect(path, ec));
  if (!ec) return unusable(path, "another process listens there");
  if (::unlink(path.c_str()) != 0) return unusable(path, std::strerror(errno));
  return {};
}

result<void> add_unix(asio::io_context& io, const std::string& path, std::vector<listener>& out) {
  if (path.size() >= sizeof(sockaddr_un{}.sun_path))
    return unusable(path, fmt::format("a path of a socket has at most {} bytes",
                                      sizeof(sockaddr_un{}.sun_path) - 1));
  if (auto ok = make_way(path); !ok) return ok;
  listener made{.acceptor = stream_acceptor(io), .is_tcp = false, .port = 0, .address = path};
  const mode_t before = ::umask(0177);  // mode 0600: only this user may connect
  auto ok = listen_at(made.acceptor, asio::local::stream_protocol::endpoint(path), false, path);
  ::umask(before);
  if (!ok) return ok;
  out.push_back(std::move(made));
  return {};
}

result<void> add_inherited(asio::io_context& io, const listen_options& where, int fd, bool has_keys,
                           std::vector<listener>& out) {
  const std::string name = fmt::format("descriptor {}", fd);
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) != 0)
    return unusable(name, std::strerror(errno));
  const bool is_tcp = at.ss_family == AF_INET || at.ss_family == AF_INET6;
  listener made{.acceptor = stream_acceptor(io), .is_tcp = is_tcp, .port = 0, .address = name};
  if (is_tcp) {
    tcp::endpoint endpoint;
    std::memcpy(endpoint.data(), &at, std::min<std::size_t>(size, endpoint.capacity()));
    if (auto ok = check_exposure(endpoint, has_keys, where.allow_unauthenticated); !ok) return ok;
    made.port = endpoint.port();
    made.address = text_of(endpoint);
  }
  error_code ec;
  static_cast<void>(made.acceptor.assign(asio::generic::stream_protocol(at.ss_family, 0), fd, ec));
  if (ec) return unusable(name, ec.message());
  out.push_back(std::move(made));
  return {};
}

}  // namespace

result<std::vector<listener>> open_listeners(asio::io_context& io, const listen_options& where,
                                             bool has_keys) {
  std::vector<listener> out;
  for (const int fd : where.inherited)
    if (auto ok = add_inherited(io, where, fd, has_keys, out); !ok)
      return std::unexpected(ok.error());
  if (!where.host.empty())
    if (auto ok = add_tcp(io, where, has_keys, out); !ok) return std::unexpected(ok.error());
  if (!where.unix_path.empty())
    if (auto ok = add_unix(io, where.unix_path, out); !ok) return std::unexpected(ok.error());
  if (out.empty()) return fail(exit_code::usage, "there is no address to listen on: give --host");
  return out;
}

result<std::unique_ptr<asio::ssl::context>> open_tls(const listen_options& where) {
  if (where.certificate_file.empty() && where.key_file.empty()) return nullptr;
  if (where.certificate_file.empty() || where.key_file.empty())
    return fail(exit_code::usage,
                "TLS needs both --ssl-cert-file and --ssl-key-file, each a PEM file");
  auto out = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(out->native_handle(), TLS1_2_VERSION);
  const auto unusable_file = [](const std::string& file, const error_code& ec) {
    return fail(exit_code::usage,
                fmt::format("{} cannot be used for TLS: {}", text::printable(file), ec.message()));
  };
  error_code ec;
  static_cast<void>(out->use_certificate_chain_file(where.certificate_file, ec));
  if (ec) return unusable_file(where.certificate_file, ec);
  // OpenSSL would ask for a key's password on the terminal, which a server may not have.
  SSL_CTX_set_default_passwd_cb(out->native_handle(), [](char*, int, int, void*) { return 0; });
  static_cast<void>(out->use_private_key_file(where.key_file, asio::ssl::context::pem, ec));
  if (ec) return unusable_file(where.key_file, ec);
  if (SSL_CTX_check_private_key(out->native_handle()) != 1)
    return fail(exit_code::usage, "the key of --ssl-key-file is not that of the certificate");
  return out;
}

result<std::vector<int>> inherited_sockets(const std::string& listen_pid,
                                           const std::string& listen_fds) {
  // By the protocol of systemd (sd_listen_fds) the sockets come after the standard descriptors.
  constexpr int first = 3;
  // Sockets. A unit has a few; the bound rejects a damaged number before so many are examined.
  constexpr int most = 64;
  const auto number = [](const std::string& text) {
    long out = -1;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
    return read.ptr == text.data() + text.size() ? out : -1;
  };
  std::vector<int> out;
  if (listen_pid.empty() || number(listen_pid) != static_cast<long>(::getpid())) return out;
  const long n = number(listen_fds);
  if (n < 0 || n > most)
    return fail(exit_code::usage, fmt::format("LISTEN_FDS is '{}'; it is a number of at most {}",
                                              text::printable(listen_fds), most));
  for (int fd = first; fd < first + n; ++fd) {
    int listens = 0;
    socklen_t size = sizeof listens;
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0)
      return fail(exit_code::usage,
                  fmt::format("descriptor {} of LISTEN_FDS is no socket that listens", fd));
    out.push_back(fd);
  }
  return out;
}

}  // namespace bitnet::host::http
