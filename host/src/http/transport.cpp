#include "http/transport.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <utility>

namespace bitnet::host::http {
namespace asio = boost::asio;
namespace {

class plain final : public transport {
 public:
  explicit plain(stream_socket&& socket) : socket_(std::move(socket)) {}
  void handshake(std::function<void(const error_code&)> done) override {
    asio::post(socket_.get_executor(), [done = std::move(done)] { done({}); });
  }
  void read_some(asio::mutable_buffer to, call done) override {
    socket_.async_read_some(to, std::move(done));
  }
  void write_some(asio::const_buffer from, call done) override {
    socket_.async_write_some(from, std::move(done));
  }
  void shut_down(std::function<void()>) override {
    error_code ignored;
    socket_.shutdown(stream_socket::shutdown_send, ignored);
  }
  void close() override {
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  stream_socket socket_;
};

class tls final : public transport, public std::enable_shared_from_this<tls> {
 public:
  tls(stream_socket&& socket, asio::ssl::context& context) : stream_(std::move(socket), context) {}
  void handshake(std::function<void(const error_code&)> done) override {
    stream_.async_handshake(asio::ssl::stream_base::server, std::move(done));
  }
  void read_some(asio::mutable_buffer to, call done) override {
    // The connection must not see the read that shut_down() cancels.
    stream_.async_read_some(to, [self = shared_from_this(), done = std::move(done)](
                                    const error_code& ec, std::size_t n) {
      self->is_reading_ = false;
      if (self->shut_) return self->say_goodbye();
      done(ec, n);
    });
    is_reading_ = true;
  }
  void write_some(asio::const_buffer from, call done) override {
    stream_.async_write_some(from, std::move(done));
  }
  void shut_down(std::function<void()> done) override {
    shut_ = std::move(done);
    error_code ignored;
    if (!is_reading_) return say_goodbye();
    stream_.next_layer().cancel(ignored);  // TLS allows one operation besides a write
  }
  void close() override {
    error_code ignored;
    stream_.next_layer().close(ignored);
  }

 private:
  void say_goodbye() {
    stream_.async_shutdown([self = shared_from_this()](const error_code&) {
      if (const auto done = std::exchange(self->shut_, nullptr)) done();
    });
  }

  asio::ssl::stream<stream_socket> stream_;
  bool is_reading_ = false;
  std::function<void()> shut_;
};

// A transport whose pending operations keep it alive.
class kept final : public transport {
 public:
  explicit kept(std::shared_ptr<tls> inner) : inner_(std::move(inner)) {}
  void handshake(std::function<void(const error_code&)> done) override {
    inner_->handshake(std::move(done));
  }
  void read_some(asio::mutable_buffer to, call done) override {
    inner_->read_some(to, std::move(done));
  }
  void write_some(asio::const_buffer from, call done) override {
    inner_->write_some(from, std::move(done));
  }
  void shut_down(std::function<void()> done) override { inner_->shut_down(std::move(done)); }
  void close() override { inner_->close(); }

 private:
  std::shared_ptr<tls> inner_;
};

}  // namespace

std::unique_ptr<transport> plain_transport(stream_socket&& socket) {
  return std::make_unique<plain>(std::move(socket));
}

std::unique_ptr<transport> tls_transport(stream_socket&& socket, asio::ssl::context& context) {
  return std::make_unique<kept>(std::make_shared<tls>(std::move(socket), context));
}

}  // namespace bitnet::host::http
