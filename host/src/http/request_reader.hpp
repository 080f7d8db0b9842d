#pragma once
// Turns a connection's bytes into a request: head_check checks the head, then Boost.Beast's parser
// reads head and body. It has no socket, so the fuzz target can feed it.

#include <memory>
#include <string_view>

#include "http/head_check.hpp"
#include "http/limits.hpp"
#include "http/request.hpp"

namespace bitnet::host::http {

class request_reader {
 public:
  enum class state : uint8_t {
    head,      // reads the head
    decide,    // the head is complete: check it, then call go_on()
    body,      // reads the body
    done,      // the request is complete
    rejected,  // reason() says why; nothing more of the connection can be read
  };

  explicit request_reader(const limits& bounds);
  request_reader(request_reader&&) noexcept;
  request_reader& operator=(request_reader&&) noexcept;
  ~request_reader();

  // Consumes bytes and returns how many; pass the rest again, with more bytes after it. Stops in
  // `decide` and `done`. At most limits::head_bytes remain with the caller.
  std::size_t take(std::string_view bytes);
  // Call it in `decide`: reads the body, of at most `body_bytes`.
  void go_on(std::size_t body_bytes);

  [[nodiscard]] state at() const { return at_; }
  [[nodiscard]] const rejection& reason() const { return reason_; }
  [[nodiscard]] const request& read() const { return request_; }
  [[nodiscard]] request take_request();  // in `done`; the reader starts over
  // Whether the client wants the connection kept open after the answer.
  [[nodiscard]] bool keeps_alive() const { return keeps_alive_; }
  // Whether the client waits for 100 Continue before it sends the body.
  [[nodiscard]] bool expects_continue() const { return expects_continue_; }
  [[nodiscard]] bool has_body() const { return framing_.chunked || framing_.length != 0; }
  // Body bytes read so far.
  [[nodiscard]] std::size_t body_size() const;
  // Whether a request has begun and is incomplete.
  [[nodiscard]] bool has_begun() const { return has_begun_; }

 private:
  struct beast;
  std::size_t take_head(std::string_view bytes);
  std::size_t take_body(std::string_view bytes);
  std::size_t chunk_line(std::string_view rest);
  void give(std::string_view part);
  void read_head(std::string_view head);
  void reject(rejection why);

  limits bounds_;
  state at_ = state::head;
  rejection reason_;
  request request_;
  body_framing framing_;
  bool keeps_alive_ = false, expects_continue_ = false, has_begun_ = false;
  bool has_skipped_ = false;  // skipped an empty line before the request
  bool is_first_chunk_ = true;
  std::size_t searched_ = 0;    // the head's end is not in the first bytes
  std::size_t body_bytes_ = 0;  // limit of the body
  uint64_t left_ = 0;           // until the end of the body, or of the chunk
  std::unique_ptr<beast> beast_;
};

}  // namespace bitnet::host::http
