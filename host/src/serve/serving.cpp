#include "serve/serving.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "library/engine.hpp"
#include "serve/live_request.hpp"

namespace bitnet::host {
namespace asio = boost::asio;
using clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t most_tasks = 256;  // that wait for the worker
constexpr std::size_t most_admin_tasks = 4;

uint64_t number_in(const nlohmann::json& of, const char* key) {
  const auto found = of.find(key);
  return found != of.end() && found->is_number() ? found->get<uint64_t>() : 0;
}

}  // namespace

http::answer answer_of(const nlohmann::ordered_json& content) {
  return {.body = openai::line_of(content)};
}

http::answer answer_of(const openai::api_error& why) {
  http::answer out = answer_of(openai::error_body(why));
  out.status = why.status;
  return out;
}

serving::serving(asio::io_context& io, const service_life& life, serving_facts about)
    : io_(io),
      life_(life),
      about_(std::move(about)),
      worker_(std::make_unique<worker>(most_tasks)) {}

serving::~serving() {
  worker_.reset();
  admin_.reset();
  end();
}

result<std::unique_ptr<serving>> serving::open(asio::io_context& io, const service_life& life,
                                               serving_facts about) {
  std::unique_ptr<serving> out(new serving(io, life, std::move(about)));
  if (auto ok = out->open_lane(false, out->texts_); !ok) return std::unexpected(ok.error());
  if (auto ok = out->watch(out->texts_); !ok) return std::unexpected(ok.error());
  return out;
}

result<void> serving::open_lane(bool embeds, serving_lane& to) const {
  auto scheduler = about_.open_scheduler(embeds);
  if (!scheduler) return std::unexpected(scheduler.error());
  const auto report = scheduler_report(scheduler->get());
  if (!report) return std::unexpected(report.error());
  to.scheduler = *std::move(scheduler);
  to.limits = {.n_vocab = about_.info.n_vocab,
               .n_embedding = about_.info.n_embedding,
               .n_context = static_cast<uint32_t>(number_in(*report, "n_context"))};
  to.n_parallel = static_cast<uint32_t>(number_in(*report, "max_sequences"));
  return {};
}

result<serving_lane*> serving::lane_for(openai::endpoint to) {
  if (to != openai::endpoint::embeddings) return &texts_;
  if (!embeddings_.scheduler)
    if (auto ok = open_lane(true, embeddings_); !ok) return std::unexpected(ok.error());
  return &embeddings_;
}

result<void> serving::watch(serving_lane& lane) {
  if (lane.events) return {};
  auto events = scheduler_events::open(io_, lane.scheduler.get());
  if (!events) return std::unexpected(events.error());
  lane.events = *std::move(events);
  return {};
}

std::shared_ptr<void> serving::open_work() {
  ++*n_open_;
  return {nullptr, [count = n_open_](void*) { --*count; }};
}

void serving::refuse(const http::exchange_ptr& client, const http::answer& no) {
  counts_.refused(no.status);
  client->reply(no);
}

void serving::answer(const openai::api_form& form, const http::exchange_ptr& client) {
  if (const auto no = life_.refusal(clock::now())) return refuse(client, *no);
  live_request::begin(*this, form, client);
}

void serving::answer_by(const http::exchange_ptr& client, maker make) {
  answer_on(*worker_, client, std::move(make));
}

void serving::administer(const http::exchange_ptr& client, maker make) {
  if (!admin_) admin_ = std::make_unique<worker>(most_admin_tasks);
  answer_on(*admin_, client, std::move(make));
}

void serving::answer_on(worker& by, const http::exchange_ptr& client, maker make) {
  if (const auto no = life_.refusal(clock::now())) return refuse(client, *no);
  // Moved from thread to thread: the last owner of an exchange is the loop's thread.
  auto task = [this, client = client, open = open_work(), make = std::move(make)]() mutable {
    http::answer said = make(*this, client->asked().body);
    asio::post(io_, [client = std::move(client), open = std::move(open), said = std::move(said)] {
      client->reply(said);
    });
  };
  if (!by.post(std::move(task)))
    refuse(client, http::unavailable_answer("too many requests wait; try again", 1));
}

service_work serving::work() const {
  service_work out{.n_unanswered = *n_open_};
  for (const serving_lane* lane : {&texts_, &embeddings_}) {
    if (!lane->events) continue;
    const auto report = scheduler_report(lane->scheduler.get());
    if (!report) continue;
    out.steps += number_in(*report, "steps");
    const nlohmann::json waiting = report->value("waiting", nlohmann::json::object());
    const uint64_t n_work =
        number_in(*report, "running") + number_in(waiting, "new") + number_in(waiting, "preempted");
    out.has_work = out.has_work || n_work != 0;
  }
  return out;
}

std::string serving::metrics(std::size_t n_connections) const {
  const auto report = scheduler_report(texts_.scheduler.get());
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return metrics_of({.model_name = about_.name,
                     .version = bitnet_version(),
                     .load_seconds = about_.load_seconds,
                     .n_connections = n_connections,
                     .now_seconds = now.count()},
                    report ? *report : nlohmann::json::object(), counts_);
}

void serving::end() {
  ended_ = true;
  texts_.events.reset();
  embeddings_.events.reset();
}

}  // namespace bitnet::host
