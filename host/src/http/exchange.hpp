#pragma once
// One request and its answer, as its handler sees them.
//
// Threads: the server's I/O thread calls everything. A handler may keep its exchange and answer
// later. Once the client has left, calls do nothing and is_over() is true.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/answer.hpp"
#include "http/request.hpp"
#include "log/log_line.hpp"

namespace bitnet::host::http {

// Receives an answer's bytes: a connection, or a test.
class answer_sink {
 public:
  virtual ~answer_sink() = default;
  virtual void send(std::string_view bytes) = 0;
  // Whether a stream may continue: the client has taken enough of what was sent.
  [[nodiscard]] virtual bool has_room() const = 0;
  virtual void answer_is_complete() = 0;
  // Closes the connection before the answer's end, so that the client sees it is incomplete.
  virtual void break_off() = 0;
};

class exchange {
 public:
  struct facts {
    bool keeps_alive = true;             // the connection stays open afterwards
    bool is_head_method = false;         // HEAD: the answer has no body
    std::vector<field> fields = {};      // added to each answer, such as those of CORS
    const error_form* errors = nullptr;  // nullptr: errors stay in OpenAI's form
  };
  exchange(request asked, facts how, std::weak_ptr<answer_sink> to);
  ~exchange();
  exchange(const exchange&) = delete;
  exchange& operator=(const exchange&) = delete;

  [[nodiscard]] const request& asked() const { return asked_; }
  [[nodiscard]] bool is_over() const { return stage_ == stage::over; }

  // Sends a complete answer.
  void reply(const answer& whole);

  // A stream: begin, write any number of times, finish. In HTTP/1.1 each write is a chunk.
  void begin_stream(const answer& head);  // ignores its body
  // False: the exchange is over. A write without has_room() closes the connection, so that a slow
  // client costs one buffer at most.
  bool write(std::string_view part);
  [[nodiscard]] bool has_room() const;
  void finish();
  // Closes the connection, for a stream that cannot be completed.
  void break_off();

  // `call` is called once, from the connection's code, if the client leaves before the answer is
  // complete; not if the handler itself ended the answer.
  void on_gone(std::function<void()> call) { on_gone_ = std::move(call); }
  // `call` is called each time has_room() becomes true again.
  void on_room(std::function<void()> call) { on_room_ = std::move(call); }

  // Names the answering model, for the log.
  void set_model(std::string name) { model_ = std::move(name); }
  [[nodiscard]] const std::string& model() const { return model_; }
  // Sets the request's measurements, for traces.
  void set_measured(std::vector<log_field> what) { measured_ = std::move(what); }
  [[nodiscard]] const std::vector<log_field>& measured() const { return measured_; }

  // ---- for the connection ----
  void client_is_gone();
  void room_is_made();
  // Sends a comment line, which readers of events ignore, if this is a stream of events.
  void ping();
  [[nodiscard]] bool keeps_alive() const { return how_.keeps_alive; }
  void end_connection_behind() { how_.keeps_alive = false; }
  [[nodiscard]] int status() const { return status_; }  // 0: not answered
  [[nodiscard]] std::size_t body_bytes() const { return body_bytes_; }
  [[nodiscard]] std::chrono::steady_clock::time_point began() const { return began_; }

 private:
  enum class stage : uint8_t { open, streaming, over };
  void send_part(std::string_view part);
  void end();

  request asked_;
  facts how_;
  std::weak_ptr<answer_sink> to_;
  stage stage_ = stage::open;
  bool in_chunks_ = false, is_events_ = false;
  int status_ = 0;
  std::size_t body_bytes_ = 0;
  std::string model_;  // "": unknown
  std::vector<log_field> measured_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::function<void()> on_gone_, on_room_;
};

using exchange_ptr = std::shared_ptr<exchange>;

}  // namespace bitnet::host::http
