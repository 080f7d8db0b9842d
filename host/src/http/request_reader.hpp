#pragma once
// Bytes of a connection become a request: the head is checked (head_check), then Boost.Beast's
// parser reads head and body. No socket: the fuzz target feeds it bytes.

#include <memory>
#include <string_view>

#include "http/head_check.hpp"
#include "http/limits.hpp"
#include "http/request.hpp"

namespace bitnet::host::http {

class request_reader {
 public:
  enum class state : uint8_t {
    head,     // reads the head
    decide,   // the head is there: check it, then call go_on()
    body,     // reads the body
    done,     // the request is whole
    refused,  // reason() says why; what follows on the connection cannot be read
  };

  explicit request_reader(const limits& bounds);
  request_reader(request_reader&&) noexcept;
  request_reader& operator=(request_reader&&) noexcept;
  ~request_reader();

  // Takes bytes and returns how many; the others come first the next time, with more behind them.
  // Stops in `decide` and `done`. At most limits::head_bytes stay with the caller.
  std::size_t take(std::string_view bytes);
  // Behind `decide`: reads the body, of at most `body_bytes`.
  void go_on(std::size_t body_bytes);

  [[nodiscard]] state at() const { return at_; }
  [[nodiscard]] const refusal& reason() const { return reason_; }
  [[nodiscard]] const request& read() const { return request_; }
  [[nodiscard]] request take_request();  // in `done`; the reader begins the next one
  // Whether the client lets the connection live on behind the answer.
  [[nodiscard]] bool keeps_alive() const { return keeps_alive_; }
  // Whether a body follows that the client has not begun to send (Expect: 100-continue).
  [[nodiscard]] bool expects_continue() const { return expects_continue_; }
  [[nodiscard]] bool has_body() const { return framing_.chunked || framing_.length != 0; }
  // Bytes of the body that are here.
  [[nodiscard]] std::size_t body_size() const;
  // Whether bytes of a request have come that is not whole.
  [[nodiscard]] bool has_begun() const { return has_begun_; }

 private:
  struct beast;
  std::size_t take_head(std::string_view bytes);
  std::size_t take_body(std::string_view bytes);
  std::size_t chunk_line(std::string_view rest);
  void give(std::string_view part);
  void read_head(std::string_view head);
  void refuse(refusal why);

  limits bounds_;
  state at_ = state::head;
  refusal reason_;
  request request_;
  body_framing framing_;
  bool keeps_alive_ = false, expects_continue_ = false, has_begun_ = false;
  bool has_skipped_ = false;  // an empty line before the request
  bool is_first_chunk_ = true;
  std::size_t searched_ = 0;    // bytes of the head in which its end is not
  std::size_t body_bytes_ = 0;  // the most that the body may have
  uint64_t left_ = 0;           // bytes of data until its end, or that of the chunk
  std::unique_ptr<beast> beast_;
};

}  // namespace bitnet::host::http
