#pragma once
// One connection of a client: its requests one after the other, each with its answer.
//
// A read is always pending, so that the end of the client is seen while an answer is computed: a
// client that closes, resets, or shuts down its sending half gets no answer, and the exchange's
// on_gone is called.
//
// Threads: the I/O thread.

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "http/exchange.hpp"
#include "http/policy.hpp"
#include "http/request_reader.hpp"
#include "http/transport.hpp"

namespace bitnet::host::http {

class connection;

// What an answer was, for the log and for counting.
struct access_line {
  const request& asked;
  int status = 0;  // 0: the client went before it was answered
  std::size_t body_bytes = 0;
  std::chrono::nanoseconds took{0};
  bool is_whole = false;                     // false: the client went, or the answer was broken off
  std::string_view model = {};               // that answered; "": not known
  std::span<const log_field> measured = {};  // by its handler
};

// What connections share: the server.
class connection_host {
 public:
  virtual ~connection_host() = default;
  [[nodiscard]] virtual const policy& rules() const = 0;
  virtual void handle(const route& row, const exchange_ptr& given) = 0;
  virtual void log(const access_line& line) = 0;
  virtual void forget(connection& one) = 0;  // it has ended
  // Of all bodies that are being read; may refuse more.
  [[nodiscard]] virtual bool take_body_bytes(std::size_t n) = 0;
  virtual void give_body_bytes(std::size_t n) = 0;
  [[nodiscard]] virtual bool is_draining() const = 0;
};

class connection final : public answer_sink, public std::enable_shared_from_this<connection> {
 public:
  using clock = std::chrono::steady_clock;

  // `host` outlives it. `executor` is where what continues a request is posted.
  connection(connection_host& host, std::unique_ptr<transport> io, std::string peer,
             stream_socket::executor_type executor);

  void begin();
  void look_at_clock(clock::time_point now);
  // Since when it waits for its client's next request to be whole; none while it has one.
  [[nodiscard]] std::optional<clock::time_point> waits_since() const;
  // Ends it now if no request is under way, else behind its answer.
  void end_when_idle();
  void close();

  // ---- answer_sink ----
  void send(std::string_view bytes) override;
  [[nodiscard]] bool has_room() const override;
  void answer_is_complete() override;
  void break_off() override;

 private:
  enum class stage : uint8_t {
    handshake,
    head,
    body,
    answer,
    drain,   // the answer is whole, and the client has not taken enough of it for another
    linger,  // the last answer is sent; what the client still sends is dropped
    closed,
  };

  void read();
  void has_read(const transport::error_code& ec, std::size_t n);
  void keep_ahead(std::string_view bytes);
  void process();
  [[nodiscard]] bool step();
  void decide_head();
  void dispatch(request asked);
  void refuse(const refusal& why);
  void next_request();
  void begin_linger();
  void shut_down();
  void write();
  void write_rest();
  void has_written(const transport::error_code& ec, std::size_t n);
  void log(const exchange& ended, bool is_whole);
  [[nodiscard]] bool count_body();

  connection_host& host_;
  std::unique_ptr<transport> io_;
  std::string peer_;
  stream_socket::executor_type executor_;
  stage stage_ = stage::handshake;
  request_reader reader_;
  decision decision_;
  exchange_ptr exchange_;
  std::array<char, 16384> piece_{};
  std::string in_;                 // read, and not yet taken by the reader
  std::string pending_, writing_;  // to send behind `writing_`; being sent
  std::size_t n_written_ = 0;      // of writing_
  std::size_t n_body_ = 0;         // counted by the host
  bool keeps_alive_ = true, is_reading_ = false, is_writing_ = false, is_processing_ = false;
  bool has_dropped_ = false;  // bytes that came ahead of their turn
  bool end_when_idle_ = false, is_shut_ = false;
  clock::time_point waits_since_, deadline_, write_deadline_, last_sent_;
};

}  // namespace bitnet::host::http
