#pragma once
// An HTTP/1.1 server: addresses, connections, and routes.
//
// Threads: open() and all other calls come from the thread that runs `io`, or while no thread runs
// it.

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "basic/result.hpp"
#include "http/connection.hpp"
#include "http/policy.hpp"

namespace bitnet::host::http {

struct listen_options {
  std::string host = "127.0.0.1";                    // a name or an address; "": no TCP address
  uint16_t port = 8080;                              // 0: any free port
  std::string unix_path = {};                        // "": no UNIX socket
  std::vector<int> inherited = {};                   // listening sockets; the server closes them
  bool allow_unauthenticated = false;                // serve other machines without a key
  std::string certificate_file = {}, key_file = {};  // PEM, both or none: TLS on TCP
};

struct server_hooks {
  std::function<void(const access_line&)> on_answer = {};
  std::function<void(const std::string&)> on_trouble = {};  // a warning for the log
};

class server {
 public:
  // Opens the listening sockets. Exit code 2 for unusable addresses or files, with advice.
  [[nodiscard]] static result<std::unique_ptr<server>> open(boost::asio::io_context& io,
                                                            policy rules,
                                                            const listen_options& where,
                                                            server_hooks hooks);
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  [[nodiscard]] const std::vector<std::string>& addresses() const;  // "http://127.0.0.1:8080"
  [[nodiscard]] uint16_t port() const;                              // 0: none
  [[nodiscard]] std::size_t n_connections() const;
  void set_keys(api_keys keys, api_keys admin_keys);
  // Reloads the TLS files, for new connections. An error changes nothing. Returns false if there is
  // no TLS.
  [[nodiscard]] result<bool> read_certificate();

  // New connections are still accepted, but each connection ends after its next answer.
  void drain();
  // Accepts no new connection; idle ones are closed, the others after their answer.
  void stop();
  // Closes all connections at once.
  void abort();

 private:
  struct contents;
  explicit server(std::shared_ptr<contents> c);
  std::shared_ptr<contents> contents_;
};

// The sockets that systemd passes (sd_listen_fds(3)), by LISTEN_PID and LISTEN_FDS; none if they
// are meant for another process. Exit code 2 for one that is not a listening stream socket.
[[nodiscard]] result<std::vector<int>> inherited_sockets(const std::string& listen_pid,
                                                         const std::string& listen_fds);

}  // namespace bitnet::host::http
