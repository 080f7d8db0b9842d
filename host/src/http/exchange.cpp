#include "http/exchange.hpp"

#include <fmt/format.h>

#include <utility>

namespace bitnet::host::http {

exchange::exchange(request asked, facts how, std::weak_ptr<answer_sink> to)
    : asked_(std::move(asked)), how_(std::move(how)), to_(std::move(to)) {}

exchange::~exchange() {
  break_off();  // the handler forgot to answer: the client must not wait
}

void exchange::reply(const answer& whole) {
  const auto to = to_.lock();
  if (stage_ != stage::open || !to) return;
  if (how_.errors != nullptr && whole.error) {
    answer formed = whole;
    formed.body = how_.errors->body(*whole.error, asked_.id);
    formed.error.reset();
    return reply(formed);
  }
  status_ = whole.status;
  body_bytes_ = how_.is_head_method ? 0 : whole.body.size();
  std::vector<field> fields = whole.fields;
  fields.insert(fields.end(), how_.fields.begin(), how_.fields.end());
  std::string bytes = head_text({.status = whole.status,
                                 .content_type = whole.body.empty() ? "" : whole.content_type,
                                 .end = body_end::length,
                                 .length = whole.body.size(),
                                 .keeps_alive = how_.keeps_alive,
                                 .is_1_1 = asked_.is_1_1,
                                 .id = asked_.id},
                                fields);
  if (!how_.is_head_method) bytes += whole.body;
  to->send(bytes);
  end();
}

void exchange::begin_stream(const answer& head) {
  const auto to = to_.lock();
  if (stage_ != stage::open || !to) return;
  status_ = head.status;
  in_chunks_ = asked_.is_1_1;
  is_events_ = head.content_type == "text/event-stream";
  if (!in_chunks_) how_.keeps_alive = false;
  std::vector<field> fields = head.fields;
  fields.insert(fields.end(), how_.fields.begin(), how_.fields.end());
  to->send(head_text({.status = head.status,
                      .content_type = head.content_type,
                      .end = in_chunks_ ? body_end::chunks : body_end::close,
                      .keeps_alive = how_.keeps_alive,
                      .is_1_1 = asked_.is_1_1,
                      .id = asked_.id},
                     fields));
  if (how_.is_head_method) return end();
  stage_ = stage::streaming;
}

void exchange::send_part(std::string_view part) {
  const auto to = to_.lock();
  if (!to) return;
  if (!in_chunks_) return to->send(part);
  std::string chunk = fmt::format("{:x}\r\n", part.size());
  chunk.append(part).append("\r\n");
  to->send(chunk);
}

bool exchange::write(std::string_view part) {
  if (stage_ != stage::streaming) return false;
  if (part.empty()) return true;  // an empty chunk would be the last one
  if (!has_room()) return break_off(), false;
  body_bytes_ += part.size();
  send_part(part);
  return stage_ == stage::streaming;
}

bool exchange::has_room() const {
  const auto to = to_.lock();
  return to && to->has_room();
}

void exchange::ping() {
  if (stage_ == stage::streaming && is_events_ && has_room()) send_part(": ping\n\n");
}

void exchange::finish() {
  if (stage_ != stage::streaming) return;
  if (const auto to = to_.lock(); to && in_chunks_) to->send("0\r\n\r\n");
  end();
}

void exchange::end() {
  stage_ = stage::over;
  on_gone_ = on_room_ = nullptr;
  const auto to = std::exchange(to_, {}).lock();
  if (to) to->answer_is_complete();
}

void exchange::break_off() {
  if (stage_ == stage::over) return;
  stage_ = stage::over;
  on_gone_ = on_room_ = nullptr;
  const auto to = std::exchange(to_, {}).lock();
  if (to) to->break_off();
}

void exchange::client_is_gone() {
  if (stage_ == stage::over) return;
  stage_ = stage::over;
  to_.reset();
  on_room_ = nullptr;
  if (const auto call = std::exchange(on_gone_, nullptr)) call();
}

void exchange::room_is_made() {
  if (const auto call = on_room_) call();  // a copy: the call may end the exchange
}

}  // namespace bitnet::host::http
