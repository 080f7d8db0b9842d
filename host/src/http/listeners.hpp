#pragma once
// Listening sockets: TCP addresses, a UNIX socket, and inherited ones.

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

// `has_keys`: clients need an API key. Exit code 2 for an address that cannot be used, or that
// would serve other machines without a key.
[[nodiscard]] result<std::vector<listener>> open_listeners(boost::asio::io_context& io,
                                                           const listen_options& where,
                                                           bool has_keys);

// nullptr if no certificate is given. Exit code 2 if the files cannot be used.
[[nodiscard]] result<std::unique_ptr<boost::asio::ssl::context>> open_tls(
    const listen_options& where);

}  // namespace bitnet::host::http
