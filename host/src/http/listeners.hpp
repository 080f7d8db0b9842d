#pragma once
// Sockets that listen: TCP addresses, a UNIX socket, and those that the process was given.

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "http/server.hpp"

namespace bitnet::host::http {

using stream_acceptor = boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol>;

struct listener {
  stream_acceptor acceptor;
  bool is_tcp = true;
  uint16_t port = 0;
  std::string address;  // "127.0.0.1:8080", "/run/bitnet.sock"
};

// `has_keys`: whether clients need one. Exit code 2 where an address cannot be used, or would serve
// other machines without a key.
[[nodiscard]] result<std::vector<listener>> open_listeners(boost::asio::io_context& io,
                                                           const listen_options& where,
                                                           bool has_keys);

// nullptr without certificate. Exit code 2 where the files cannot be used.
[[nodiscard]] result<std::unique_ptr<boost::asio::ssl::context>> open_tls(
    const listen_options& where);

}  // namespace bitnet::host::http
