#pragma once
// A server of HTTP/1.1: addresses, connections, and the routes that answer.
//
// Threads: open() and all other calls come from the thread that runs `io`, or while no thread does.

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http/connection.hpp"
#include "http/policy.hpp"
#include "result.hpp"

namespace bitnet::host::http {

struct listen_options {
  std::string host = "127.0.0.1";      // a name or an address; "": no TCP address
  uint16_t port = 8080;                // 0: a free one
  std::string unix_path = {};          // "": no UNIX socket
  std::vector<int> inherited = {};     // sockets that listen already; the server closes them
  bool allow_unauthenticated = false;  // beyond this machine, without a key
  std::string certificate_file = {}, key_file = {};  // PEM, both or none: TLS on TCP
};

struct server_hooks {
  std::function<void(const access_line&)> on_answer = {};
  std::function<void(const std::string&)> on_trouble = {};  // a warning for the log
};

class server {
 public:
  // Listens. Exit code 2 for addresses and files that cannot be used, with what to do.
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
  // Reads the files of TLS again, for connections that come. An error changes nothing. False: there
  // is no TLS.
  [[nodiscard]] result<bool> read_certificate();

  // New connections still come; each answer is the last of its connection.
  void drain();
  // No new connection; those without a request end, the others behind their answer.
  void stop();
  // Ends all connections at once.
  void abort();

 private:
  struct contents;
  explicit server(std::shared_ptr<contents> c);
  std::shared_ptr<contents> contents_;
};

// The sockets that systemd gave (sd_listen_fds(3)), of LISTEN_PID and LISTEN_FDS; none where they
// are not this process's. Exit code 2 for one that is no stream socket that listens.
[[nodiscard]] result<std::vector<int>> inherited_sockets(const std::string& listen_pid,
                                                         const std::string& listen_fds);

}  // namespace bitnet::host::http
