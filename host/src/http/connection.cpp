#include "http/connection.hpp"

#include <boost/asio/post.hpp>
#include <utility>

namespace bitnet::host::http {
namespace asio = boost::asio;

connection::connection(connection_owner& owner, std::unique_ptr<transport> io, std::string peer,
                       stream_socket::executor_type executor)
    : owner_(owner),
      io_(std::move(io)),
      peer_(std::move(peer)),
      executor_(std::move(executor)),
      reader_(owner.rules().bounds) {}

void connection::begin() {
  waits_since_ = clock::now();
  deadline_ = waits_since_ + owner_.rules().bounds.head_time;
  io_->handshake([self = shared_from_this()](const transport::error_code& ec) {
    if (self->stage_ == stage::closed) return;
    if (ec) return self->close();
    self->stage_ = stage::head;
    self->read();
  });
}

// ---- reading -----------------------------------------------------------------------------------

void connection::read() {
  if (is_reading_ || is_shut_ || stage_ == stage::closed) return;
  is_reading_ = true;
  io_->read_some(asio::buffer(piece_),
                 [self = shared_from_this()](const transport::error_code& ec, std::size_t n) {
                   self->has_read(ec, n);
                 });
}

void connection::has_read(const transport::error_code& ec, std::size_t n) {
  is_reading_ = false;
  if (stage_ == stage::closed) return;
  if (ec) return close();
  const std::string_view bytes(piece_.data(), n);
  if (stage_ == stage::answer || stage_ == stage::drain) {
    keep_ahead(bytes);
  } else if (stage_ != stage::linger) {
    in_ += bytes;
    process();
  }
  read();
}

// Buffers requests that arrive before the previous answer is complete. Beyond the limit it drops
// them and closes the connection after the answer; it does not stop reading, since it would then
// not notice that the client left.
void connection::keep_ahead(std::string_view bytes) {
  if (has_dropped_ || in_.size() + bytes.size() > owner_.rules().bounds.ahead_bytes) {
    has_dropped_ = true;
    keeps_alive_ = false;
    return;
  }
  in_ += bytes;
}

void connection::process() {
  if (is_processing_) return;
  is_processing_ = true;
  const auto self = shared_from_this();
  while (step()) {
  }
  is_processing_ = false;
}

// Returns whether buffered bytes need further work.
bool connection::step() {
  if (stage_ != stage::head && stage_ != stage::body) return false;
  const bool had_begun = reader_.has_begun();
  const std::size_t used = reader_.take(in_);
  in_.erase(0, used);
  if (!had_begun && reader_.has_begun()) deadline_ = clock::now() + owner_.rules().bounds.head_time;
  switch (reader_.at()) {
    case request_reader::state::decide:
      decide_head();
      return true;
    case request_reader::state::done:
      dispatch(reader_.take_request());
      return true;
    case request_reader::state::rejected:
      reject(reader_.reason());
      return false;
    default:
      if (stage_ == stage::body && !count_body()) return false;
      return used != 0 && !in_.empty();
  }
}

void connection::decide_head() {
  const request& asked = reader_.read();
  decision_ = decide(owner_.rules(), asked);
  keeps_alive_ = reader_.keeps_alive() && !end_when_idle_ && !owner_.is_draining();
  if (reader_.has_body() && !decision_.at_once && decision_.body_bytes == 0)
    decision_.at_once = error_answer({.status = 400, .message = "this request has no body"});
  if (decision_.at_once && reader_.has_body()) {
    // The body is not read, so later bytes of this connection are not a request.
    keeps_alive_ = false;
    return dispatch(asked);
  }
  reader_.go_on(decision_.body_bytes);
  if (reader_.at() == request_reader::state::rejected) return;
  stage_ = stage::body;
  deadline_ = clock::now() + owner_.rules().bounds.body_time;
  if (reader_.expects_continue() && in_.empty()) send("HTTP/1.1 100 Continue\r\n\r\n");
}

// Reserves memory for the body bytes received so far; false if all bodies together exceed the
// limit.
bool connection::count_body() {
  const std::size_t now = reader_.body_size();
  if (now <= n_body_) return true;
  if (owner_.take_body_bytes(now - n_body_)) {
    n_body_ = now;
    return true;
  }
  keeps_alive_ = false;
  decision_.at_once =
      unavailable_answer("the bodies of other requests take all room; try again", 1);
  dispatch(reader_.read());
  return false;
}

// ---- answering ---------------------------------------------------------------------------------

void connection::dispatch(request asked) {
  const decision how = std::exchange(decision_, {});
  owner_.give_body_bytes(std::exchange(n_body_, 0));
  asked.peer = peer_;
  asked.id = how.id;
  asked.path_values = how.path_values;
  const bool is_head_method = asked.method == "HEAD";
  stage_ = stage::answer;
  exchange_ = std::make_shared<exchange>(std::move(asked),
                                         exchange::facts{.keeps_alive = keeps_alive_,
                                                         .is_head_method = is_head_method,
                                                         .fields = how.fields,
                                                         .errors = how.errors},
                                         weak_from_this());
  const exchange_ptr given = exchange_;  // keeps it alive if the handler drops it
  if (how.at_once)
    given->reply(*how.at_once);
  else
    owner_.handle(*how.row, given);
}

// Rejects bytes that are not a request; nothing after them can be read.
void connection::reject(const rejection& why) {
  keeps_alive_ = false;
  if (decision_.id.empty()) decision_ = decide_rejection(owner_.rules(), reader_.read());
  decision_.at_once = error_answer({.status = why.status, .message = why.message});
  dispatch({.method = reader_.read().method, .path = reader_.read().path});
}

void connection::answer_is_complete() {
  if (stage_ != stage::answer || !exchange_) return;
  log(*exchange_, true);
  keeps_alive_ = exchange_->keeps_alive() && keeps_alive_ && !end_when_idle_;
  exchange_.reset();
  if (!keeps_alive_) return begin_linger();
  stage_ = stage::drain;
  next_request();
}

// Begins the next request once the client has taken enough of the previous answers.
void connection::next_request() {
  if (stage_ != stage::drain || !has_room()) return;
  if (end_when_idle_ || !keeps_alive_) return begin_linger();
  stage_ = stage::head;
  waits_since_ = clock::now();
  deadline_ = waits_since_ + owner_.rules().bounds.idle_time;
  if (in_.empty() || is_processing_) return;
  asio::post(executor_, [self = shared_from_this()] { self->process(); });
}

// Linger first: closing with unread bytes would reset the connection, and the client could lose the
// answer.
void connection::begin_linger() {
  stage_ = stage::linger;
  in_.clear();
  deadline_ = clock::now() + owner_.rules().bounds.linger_time;
  if (!is_writing_ && pending_.empty()) shut_down();
}

void connection::shut_down() {
  if (std::exchange(is_shut_, true)) return;
  deadline_ = clock::now() + owner_.rules().bounds.linger_time;
  io_->shut_down([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->close();
  });
}

void connection::break_off() {
  if (stage_ != stage::answer || !exchange_) return;
  log(*exchange_, false);
  exchange_.reset();
  close();
}

void connection::log(const exchange& ended, bool is_whole) {
  owner_.log({.asked = ended.asked(),
              .status = ended.status(),
              .body_bytes = ended.body_bytes(),
              .took = clock::now() - ended.began(),
              .is_whole = is_whole,
              .model = ended.model(),
              .measured = ended.measured()});
}

// ---- writing -----------------------------------------------------------------------------------

void connection::send(std::string_view bytes) {
  if (stage_ == stage::closed) return;
  pending_ += bytes;
  write();
}

bool connection::has_room() const {
  return pending_.size() + writing_.size() - n_written_ < owner_.rules().bounds.output_bytes;
}

void connection::write() {
  if (is_writing_ || pending_.empty() || stage_ == stage::closed) return;
  writing_.clear();
  writing_.swap(pending_);
  n_written_ = 0;
  write_rest();
}

void connection::write_rest() {
  is_writing_ = true;
  last_sent_ = clock::now();
  write_deadline_ = last_sent_ + owner_.rules().bounds.write_time;
  io_->write_some(asio::buffer(writing_.data() + n_written_, writing_.size() - n_written_),
                  [self = shared_from_this()](const transport::error_code& ec, std::size_t n) {
                    self->has_written(ec, n);
                  });
}

void connection::has_written(const transport::error_code& ec, std::size_t n) {
  is_writing_ = false;
  if (stage_ == stage::closed) return;
  if (ec) return close();
  const bool had_room = has_room();
  n_written_ += n;
  if (n_written_ < writing_.size()) {
    write_rest();
  } else {
    std::string().swap(writing_);
    n_written_ = 0;
    write();
  }
  if (!is_writing_ && stage_ == stage::linger) return shut_down();
  if (stage_ == stage::drain) return next_request();
  if (!had_room && has_room() && exchange_) exchange_ptr(exchange_)->room_is_made();
}

// ---- time --------------------------------------------------------------------------------------

void connection::look_at_clock(clock::time_point now) {
  if (is_writing_ && now >= write_deadline_) return close();
  if (stage_ == stage::answer && exchange_) {
    if (now - last_sent_ >= owner_.rules().bounds.ping_time) exchange_->ping();
    return;
  }
  const bool sends_its_last = stage_ == stage::linger && !is_shut_;
  if (now < deadline_ || stage_ == stage::drain || sends_its_last) return;
  const bool is_late = stage_ == stage::body || (stage_ == stage::head && reader_.has_begun());
  if (is_late) return reject({408, "the request did not come whole in time"});
  close();
}

std::optional<connection::clock::time_point> connection::waits_since() const {
  const bool waits = stage_ == stage::handshake || stage_ == stage::head || stage_ == stage::body;
  return waits ? std::optional(waits_since_) : std::nullopt;
}

void connection::end_when_idle() {
  end_when_idle_ = true;
  if (exchange_) exchange_->end_connection_behind();
  if (stage_ == stage::handshake) close();
  if (stage_ == stage::head && !reader_.has_begun()) begin_linger();
}

// From here on `owner_` is not used: it may be destroyed before the last handlers run.
void connection::close() {
  if (stage_ == stage::closed) return;
  stage_ = stage::closed;
  if (const exchange_ptr unanswered = std::exchange(exchange_, nullptr)) {
    log(*unanswered, false);
    unanswered->client_is_gone();
  }
  io_->close();
  owner_.give_body_bytes(std::exchange(n_body_, 0));
  owner_.forget(*this);
}

}  // namespace bitnet::host::http
