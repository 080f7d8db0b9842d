// Bytes become requests, or are rejected: each form that a proxy in front could read differently,
// whole and byte by byte.
#include "http/request_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>

namespace bitnet::host::http {
namespace {

constexpr std::size_t most_body = 1000;

struct outcome {
  int status = 0;  // 200: a request; 0: not whole yet
  request read = {};
  std::string rest = {};  // behind it
  bool operator==(const outcome& other) const {
    return status == other.status && read.body == other.read.body && read.path == other.read.path;
  }
};

outcome fed(std::string_view bytes, std::size_t piece, const limits& bounds = {}) {
  using state = request_reader::state;
  request_reader reader(bounds);
  std::string in;
  outcome out;
  while (out.status == 0 && !bytes.empty()) {
    in += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (bool more = true; more && out.status == 0;) {
      const std::size_t used = reader.take(in);
      in.erase(0, used);
      more = used != 0;
      if (reader.at() == state::decide) {
        reader.go_on(most_body);
        more = true;
      }
      if (reader.at() == state::rejected) out.status = reader.reason().status;
      if (reader.at() != state::done) continue;
      out.status = 200;
      out.read = reader.take_request();
    }
  }
  out.rest = in.append(bytes);
  return out;
}

constexpr std::string_view post = "POST /x HTTP/1.1\r\nHost: a\r\n";

std::string chunked(std::string_view body) {
  return std::string(post) + "Transfer-Encoding: chunked\r\n\r\n" + std::string(body);
}

struct sent {
  const char* why;
  int status;
  std::string bytes;
  std::string_view body = "";
};

// Whole, and in pieces: the same.
void expect(std::span<const sent> rows) {
  for (const sent& row : rows) {
    const outcome whole = fed(row.bytes, row.bytes.size());
    EXPECT_EQ(whole.status, row.status) << row.why;
    EXPECT_EQ(whole.read.body, row.body) << row.why;
    for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{7}})
      EXPECT_EQ(fed(row.bytes, piece), whole) << row.why << ", in pieces of " << piece;
  }
}

TEST(request_reader, accepts_requests) {
  const sent rows[] = {
      {"a GET", 200, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"HTTP/1.0 without Host", 200, "GET / HTTP/1.0\r\n\r\n"},
      {"an empty line before", 200, "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"an absolute target", 200, "GET http://a:1/x HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"an empty Host", 200, "GET / HTTP/1.1\r\nHost:\r\n\r\n"},
      {"Content-Length", 200, std::string(post) + "Content-Length: 3\r\n\r\nabc", "abc"},
      {"Content-Length 0", 200, std::string(post) + "Content-Length: 0\r\n\r\n"},
      {"no length", 200, std::string(post) + "\r\n"},
      {"chunks", 200, chunked("3\r\nabc\r\n0A\r\n0123456789\r\n0\r\n\r\n"), "abc0123456789"},
      {"Chunked", 200, std::string(post) + "Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n"},
  };
  expect(rows);
}

TEST(request_reader, rejects_lengths_with_two_meanings) {
  const sent rows[] = {
      {"both lengths", 400,
       std::string(post) + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"two lengths", 400, std::string(post) + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"},
      {"a list of lengths", 400, std::string(post) + "Content-Length: 3, 3\r\n\r\nabc"},
      {"a signed length", 400, std::string(post) + "Content-Length: +3\r\n\r\nabc"},
      {"a negative length", 400, std::string(post) + "Content-Length: -3\r\n\r\nabc"},
      {"a hexadecimal length", 400, std::string(post) + "Content-Length: 0x3\r\n\r\nabc"},
      {"an empty length", 400, std::string(post) + "Content-Length:\r\n\r\nabc"},
      {"an endless length", 400,
       std::string(post) + "Content-Length: 99999999999999999999\r\n\r\nabc"},
      {"another coding", 501, std::string(post) + "Transfer-Encoding: gzip\r\n\r\n"},
      {"two codings", 501, std::string(post) + "Transfer-Encoding: gzip, chunked\r\n\r\n"},
      {"chunked twice", 501,
       std::string(post) + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {"a coding with a control character", 400,
       std::string(post) + "Transfer-Encoding: \vchunked\r\n\r\n"},
      {"chunks of HTTP/1.0", 400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
  };
  expect(rows);
}

TEST(request_reader, rejects_lines_with_two_meanings) {
  const sent rows[] = {
      {"two empty lines before", 400, "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"LF alone", 400, "GET / HTTP/1.1\nHost: a\n\n"},
      {"LF alone in a field", 400, "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"},
      {"CR alone", 400, "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"},
      {"a folded field", 400, "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n"},
      {"a blank before the colon", 400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"},
      {"a field without name", 400, "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"},
      {"a field without colon", 400, "GET / HTTP/1.1\r\nHost: a\r\nabc\r\n\r\n"},
      {"a NUL", 400, std::string("GET / HTTP/1.1\r\nHost: a\r\nX: b\0c\r\n\r\n", 35)},
      {"no Host", 400, "GET / HTTP/1.1\r\n\r\n"},
      {"two Hosts", 400, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
      {"two blanks", 400, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"a tab", 400, "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"no version", 400, "GET /\r\n\r\n"},
      {"a target without '/'", 400, "GET x HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"CONNECT", 400, "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"HTTP/2", 505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
      {"Expect", 417, std::string(post) + "Content-Length: 3\r\nExpect: miracles\r\n\r\n"},
  };
  expect(rows);
}

TEST(request_reader, rejects_chunks_with_two_meanings_and_long_bodies) {
  const sent rows[] = {
      {"an extension", 400, chunked("3;a=b\r\nabc\r\n0\r\n\r\n")},
      {"an extension of the last chunk", 400, chunked("3\r\nabc\r\n0;a\r\n\r\n")},
      {"trailing fields", 400, chunked("3\r\nabc\r\n0\r\nX: y\r\n\r\n")},
      {"a chunk's line with LF", 400, chunked("3\nabc\r\n0\r\n\r\n")},
      {"a chunk's end with LF", 400, chunked("3\r\nabc\n0\r\n\r\n")},
      {"a chunk that is longer", 400, chunked("3\r\nabcd\r\n0\r\n\r\n")},
      {"a chunk that is shorter", 400, chunked("3\r\nab\r\n0\r\n\r\n")},
      {"a chunk's size with 0x", 400, chunked("0x3\r\nabc\r\n0\r\n\r\n")},
      {"a chunk's size with a sign", 400, chunked("-3\r\nabc\r\n0\r\n\r\n")},
      {"a chunk's size with a blank", 400, chunked("3 \r\nabc\r\n0\r\n\r\n")},
      {"a chunk's size of 17 digits", 400, chunked("00000000000000003\r\nabc\r\n0\r\n\r\n")},
      {"a chunk's size past the bound with CR alone", 400, chunked("3abc\r.")},
      {"a chunk's size past the bound", 413, chunked("ffffffffffffffff\r\nabc")},
      {"chunks past the bound", 413, chunked("3e8\r\n" + std::string(1000, 'x') + "\r\n1\r\n")},
      {"a length past the bound", 413, std::string(post) + "Content-Length: 1001\r\n\r\n"},
  };
  expect(rows);
}

TEST(request_reader, leaves_what_follows_a_request) {
  const std::string next = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_EQ(fed(std::string(post) + "Content-Length: 3\r\n\r\nabc" + next, 1000).rest, next);
  EXPECT_EQ(fed(chunked("3\r\nabc\r\n0\r\n\r\n") + next, 1000).rest, next);
  EXPECT_EQ(fed(next + next, 1000).rest, next);
}

TEST(request_reader, bounds_head_and_fields) {
  limits bounds;
  bounds.head_bytes = 300;
  bounds.fields = 4;
  const std::string begin = "GET / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(fed(begin + "X: " + std::string(1000, 'x'), 1, bounds).status, 431);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{1000}})
    EXPECT_EQ(fed("GET / HTTP/1.1\nX: " + std::string(1000, 'x'), piece, bounds).status, 400);
  EXPECT_EQ(fed(begin + "A:\r\nB:\r\nC:\r\n\r\n", 1, bounds).status, 200);
  EXPECT_EQ(fed(begin + "A:\r\nB:\r\nC:\r\nD:\r\n\r\n", 1, bounds).status, 431);
}

TEST(request_reader, reads_target_and_fields) {
  const request got =
      fed("GET /a/b%20c?d=e&f HTTP/1.1\r\nHOST: a\r\nX-Y: \t b c \r\nx-y: d\r\n\r\n", 1000).read;
  EXPECT_EQ(got.path, "/a/b%20c");
  EXPECT_EQ(got.query, "d=e&f");
  EXPECT_EQ(got.value_of("x-y"), "b c");
  EXPECT_EQ(got.value_of("host"), "a");
  EXPECT_EQ(got.value_of("none"), "");
}

}  // namespace
}  // namespace bitnet::host::http
