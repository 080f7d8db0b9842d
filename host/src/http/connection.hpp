#pragma once
// One client connection: its requests one after the other, each with its answer.
//
// A read is always pending, so that a client's leaving is noticed while an answer is computed. A
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

// Facts of an answer, for the log and for metrics.
struct access_line {
  const request& asked;
  int status = 0;  // 0: the client left before the answer began
  std::size_t body_bytes = 0;
  std::chrono::nanoseconds took{0};
  bool is_whole = false;                     // false: the client left, or the answer was broken off
  std::string_view model = {};               // the answering model; "": unknown
  std::span<const log_field> measured = {};  // by its handler
};

// What all connections share; the server implements it.
class connection_owner {
 public:
  virtual ~connection_owner() = default;
  [[nodiscard]] virtual const policy& rules() const = 0;
  virtual void handle(const route& row, const exchange_ptr& given) = 0;
  virtual void log(const access_line& line) = 0;
  virtual void forget(connection& one) = 0;  // it has ended
  // Reserves bytes of the budget for all bodies being read; false if they exceed it.
  [[nodiscard]] virtual bool take_body_bytes(std::size_t n) = 0;
  virtual void give_body_bytes(std::size_t n) = 0;
  [[nodiscard]] virtual bool is_draining() const = 0;
};

class connection final : public answer_sink, public std::enable_shared_from_this<connection> {
 public:
  using clock = std::chrono::steady_clock;

  // `owner` outlives the connection. Continuations of a request are posted to `executor`.
  connection(connection_owner& owner, std::unique_ptr<transport> io, std::string peer,
             stream_socket::executor_type executor);

  void begin();
  void look_at_clock(clock::time_point now);
  // Since when it waits for a complete request; none while one is being answered.
  [[nodiscard]] std::optional<clock::time_point> waits_since() const;
  // Closes it now if no request is running, else after its answer.
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
    drain,   // the answer is complete, but too much of it is unsent for another
    linger,  // the last answer is sent; further input is discarded
    closed,
  };

  void read();
  void has_read(const transport::error_code& ec, std::size_t n);
  void keep_ahead(std::string_view bytes);
  void process();
  [[nodiscard]] bool step();
  void decide_head();
  void dispatch(request asked);
  void reject(const rejection& why);
  void next_request();
  void begin_linger();
  void shut_down();
  void write();
  void write_rest();
  void has_written(const transport::error_code& ec, std::size_t n);
  void log(const exchange& ended, bool is_whole);
  [[nodiscard]] bool count_body();

  connection_owner& owner_;
  std::unique_ptr<transport> io_;
  std::string peer_;
  stream_socket::executor_type executor_;
  stage stage_ = stage::handshake;
  request_reader reader_;
  decision decision_;
  exchange_ptr exchange_;
  std::array<char, 16384> piece_{};
  std::string in_;                 // received, not yet taken by the reader
  std::string pending_, writing_;  // queued after `writing_`; being sent
  std::size_t n_written_ = 0;      // bytes of writing_ that are sent
  std::size_t n_body_ = 0;         // body bytes reserved at the owner
  bool keeps_alive_ = true, is_reading_ = false, is_writing_ = false, is_processing_ = false;
  bool has_dropped_ = false;  // early bytes were discarded
  bool end_when_idle_ = false, is_shut_ = false;
  clock::time_point waits_since_, deadline_, write_deadline_, last_sent_;
};

}  // namespace bitnet::host::http
