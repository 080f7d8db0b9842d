#pragma once
// The bytes of one connection, plain or over TLS.
//
// Threads: the I/O thread. It calls the completion handlers, never from within the initiating call.

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>
#include <functional>
#include <memory>
#include <string>

namespace bitnet::host::http {

class transport {
 public:
  using error_code = boost::system::error_code;
  using call = std::function<void(const error_code&, std::size_t)>;

  virtual ~transport() = default;
  virtual void handshake(std::function<void(const error_code&)> done) = 0;
  virtual void read_some(boost::asio::mutable_buffer to, call done) = 0;
  virtual void write_some(boost::asio::const_buffer from, call done) = 0;
  // Announces that no byte follows. With TLS nothing can be read from here on, and `done` is called
  // after the peer's own end. Without TLS, reads continue and `done` is not called.
  virtual void shut_down(std::function<void()> done) = 0;
  virtual void close() = 0;
};

using stream_socket = boost::asio::generic::stream_protocol::socket;

[[nodiscard]] std::unique_ptr<transport> plain_transport(stream_socket&& socket);
// `context` outlives the transport.
[[nodiscard]] std::unique_ptr<transport> tls_transport(stream_socket&& socket,
                                                       boost::asio::ssl::context& context);

}  // namespace bitnet::host::http
