#pragma once
// Whether the head of a request has one meaning for every reader of it.
//
// A proxy and a server that read a head differently let a client smuggle a second request behind
// the first. RFC 9112 lets a server accept several of these forms; this one refuses all of them:
// a line that ends with LF alone, a field that is folded over two lines, blanks before a colon,
// Content-Length twice or beside Transfer-Encoding, codings other than `chunked`.

#include <cstdint>
#include <string_view>

#include "http/limits.hpp"
#include "http/request.hpp"

namespace bitnet::host::http {

struct refusal {
  int status = 0;  // 0: none
  std::string message;
  [[nodiscard]] explicit operator bool() const { return status != 0; }
};

struct body_framing {
  bool chunked = false;
  uint64_t length = 0;  // where it is not chunked
};

// `head`: from the first byte of the request line to the CRLF CRLF that ends it, both included.
// Fills method, path, query, version and fields of `out`, and `body`.
[[nodiscard]] refusal check_head(std::string_view head, const limits& bounds, request& out,
                                 body_framing& body);

}  // namespace bitnet::host::http
