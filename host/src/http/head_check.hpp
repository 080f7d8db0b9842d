#pragma once
// Accepts the head of a request only if every reader understands it in the same way.
//
// If a proxy and a server read a head differently, a client can smuggle a second request behind the
// first. RFC 9112 allows a server to accept several ambiguous forms; this one rejects all of them:
// a line that ends with LF alone, a field folded over two lines, blanks before a colon,
// Content-Length twice or beside Transfer-Encoding, codings other than `chunked`.

#include <cstdint>
#include <string_view>

#include "http/limits.hpp"
#include "http/request.hpp"

namespace bitnet::host::http {

struct rejection {
  int status = 0;  // 0: accepted
  std::string message;
  [[nodiscard]] explicit operator bool() const { return status != 0; }
};

struct body_framing {
  bool chunked = false;
  uint64_t length = 0;  // unless it is chunked
};

// `head`: from the request line's first byte to the final CRLF CRLF, both included. Fills method,
// path, query, version and fields of `out`, and `body`.
[[nodiscard]] rejection check_head(std::string_view head, const limits& bounds, request& out,
                                   body_framing& body);

}  // namespace bitnet::host::http
