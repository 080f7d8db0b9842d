#pragma once
// A client that sends exactly the bytes it is given, for tests of host/src/http: no library of HTTP
// would send what these tests send.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace bitnet::host::http {

class raw_client {
 public:
  explicit raw_client(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
  }
  explicit raw_client(const std::string& path)
      : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
  }
  ~raw_client() { close(); }
  raw_client(const raw_client&) = delete;
  raw_client& operator=(const raw_client&) = delete;

  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] int fd() const { return fd_; }

  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  // Until the server's end, or `text` has come, or `timeout_ms` without a byte.
  std::string read_until(std::string_view text, int timeout_ms = 3000) {
    while (text.empty() || got_.find(text) == std::string::npos) {
      pollfd watched{fd_, POLLIN, 0};
      if (::poll(&watched, 1, timeout_ms) != 1) break;
      std::array<char, 65536> part{};
      const ssize_t n = ::recv(fd_, part.data(), part.size(), 0);
      was_reset_ = n < 0;
      has_ended_ = n <= 0;
      if (n <= 0) break;
      got_.append(part.data(), static_cast<std::size_t>(n));
    }
    const auto at = text.empty() ? std::string::npos : got_.find(text);
    const std::size_t end = at == std::string::npos ? got_.size() : at + text.size();
    std::string out = got_.substr(0, end);
    got_.erase(0, end);
    return out;
  }
  std::string read_to_end(int timeout_ms = 3000) { return read_until("", timeout_ms); }
  // An answer with Content-Length.
  std::string read_answer() {
    std::string head = read_until("\r\n\r\n");
    const auto at = head.find("Content-Length: ");
    if (at == std::string::npos) return head;
    const std::size_t length = std::stoul(head.substr(at + 16));
    while (got_.size() < length && !has_ended_) {
      const std::size_t before = got_.size();
      std::string more = read_until(std::string_view("\xff\xff\xff", 3), 500);
      got_ = more + got_;
      if (got_.size() == before) break;
    }
    head += got_.substr(0, length);
    got_.erase(0, length);
    return head;
  }

  [[nodiscard]] bool has_ended() const { return has_ended_; }
  [[nodiscard]] bool was_reset() const { return was_reset_; }

  void shut_down_sending() const { ::shutdown(fd_, SHUT_WR); }
  void reset() {  // RST in place of FIN
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
  bool connected_ = false, has_ended_ = false, was_reset_ = false;
  std::string got_;
};

}  // namespace bitnet::host::http
