#include "serve/serving.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "serve/error_answers.hpp"
#include "serve/live_request.hpp"
#include "session/engine.hpp"
#include "session/shadow.hpp"

namespace bitnet::host {
namespace asio = boost::asio;
using clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t most_tasks = 256;  // queued for the worker
constexpr std::size_t most_admin_tasks = 4;

served_model_ptr served_of(const model_use& use) {
  return std::static_pointer_cast<served_model>(use);
}

// The model that a body names; "": none.
openai::parsed<std::string> model_named_in(const std::string& body) {
  const auto read = openai::parse_object(body, "the body");
  if (!read) return std::unexpected(read.error());
  return openai::model_name_in(*read);
}

}  // namespace

http::answer answer_of(const nlohmann::ordered_json& content) {
  return {.body = openai::line_of(content)};
}

http::answer answer_of(const openai::api_error& why) {
  return error_answer_of(openai::form_of(openai::endpoint::chat), why);
}

http::answer not_loaded_answer() {
  return http::error_answer({.status = 404,
                             .message = "no such model is loaded; GET /v1/models lists them",
                             .param = "model",
                             .code = "model_not_loaded"});
}

openai::api_error error_of(const model_rejection& why) {
  openai::api_error out;
  out.message = why.message;
  switch (why.what) {
    case model_rejection::kind::unknown:
      out.status = 404;
      out.code = "model_not_found";
      out.param = "model";
      break;
    case model_rejection::kind::not_loaded:
      out.code = "model_not_loaded";
      out.param = "model";
      break;
    case model_rejection::kind::no_room:
      out.status = 503;
      out.type = "unavailable_error";
      out.code = "no_room_for_model";
      break;
    case model_rejection::kind::failed:
      out.status = 500;
      out.type = "server_error";
      out.code = "model_load_failed";
      break;
    case model_rejection::kind::busy:
      out.status = 503;
      out.type = "unavailable_error";
      break;
  }
  return out;
}

serving::serving(asio::io_context& io, const service_life& life, model_table& models,
                 serving_facts about)
    : io_(io),
      life_(life),
      models_(models),
      about_(std::move(about)),
      worker_(std::make_unique<worker>(most_tasks)) {}

serving::~serving() {
  worker_.reset();
  admin_.reset();
  end();
}

// ---- models ------------------------------------------------------------------------------------

served_model_ptr serving::loaded(std::string_view name) const {
  return served_of(models_.loaded(name));
}

std::vector<served_model_ptr> serving::all_loaded() const {
  std::vector<served_model_ptr> out;
  for (const model_row& row : models_.list())
    if (row.use) out.push_back(served_of(row.use));
  return out;
}

std::optional<serving::model_answer> serving::want(std::string_view name,
                                                   std::function<void(model_answer)> later) {
  const auto answer_of_table = [](const model_found& found) -> model_answer {
    if (!found) return std::unexpected(error_of(found.error()));
    return served_of(*found);
  };
  // The table's thread only passes the result on.
  auto receive = [this, answer_of_table, later = std::move(later)](model_found found) mutable {
    const auto call = std::make_shared<std::function<void(model_answer)>>(std::move(later));
    auto task = [call, said = answer_of_table(found)]() mutable {
      std::exchange(*call, nullptr)(std::move(said));
    };
    found = std::unexpected(model_rejection{});
    if (worker_->post(std::move(task))) return;
    (*call)(std::unexpected(error_of(
        model_rejection{model_rejection::kind::busy, "too many requests wait; try again"})));
  };
  const auto now = models_.want(name, std::move(receive));
  if (!now) return std::nullopt;
  return answer_of_table(*now);
}

// ---- requests ----------------------------------------------------------------------------------

std::shared_ptr<void> serving::open_work() {
  ++*n_open_;
  return {nullptr, [count = n_open_](void*) { --*count; }};
}

request_metrics& serving::counts(const served_model* of) {
  return counts_[of != nullptr ? of->facts().name : about_.first_name].requests;
}

void serving::reject(const http::exchange_ptr& client, const http::answer& no,
                     const served_model* of) {
  counts(of).rejected(no.status);
  client->reply(no);
}

void serving::answer(const openai::api_form& form, const http::exchange_ptr& client) {
  if (const auto no = life_.rejection(clock::now())) return reject(client, *no);
  live_request::begin(*this, form, client);
}

// The exchange is moved between threads, so that the loop's thread is its last owner.
struct serving::asked {
  http::exchange_ptr client;
  std::shared_ptr<void> open;
};

void serving::reply_in_loop(asked&& what, http::answer said) {
  asio::post(io_, [what = std::move(what), said = std::move(said)] { what.client->reply(said); });
}

void serving::answer_by(const http::exchange_ptr& client, maker make) {
  answer_on(*worker_, client, std::move(make));
}

void serving::administer(const http::exchange_ptr& client, maker make) {
  if (!admin_) admin_ = std::make_unique<worker>(most_admin_tasks);
  answer_on(*admin_, client, std::move(make));
}

void serving::answer_on(worker& by, const http::exchange_ptr& client, maker make) {
  if (const auto no = life_.rejection(clock::now())) return reject(client, *no);
  auto task = [this, what = asked{client, open_work()}, make = std::move(make)]() mutable {
    http::answer said = make(*this, what.client->asked().body);
    reply_in_loop(std::move(what), std::move(said));
  };
  if (!by.post(std::move(task)))
    reject(client, http::unavailable_answer("too many requests wait; try again", 1));
}

void serving::answer_with_model(const http::exchange_ptr& client, model_maker make) {
  if (const auto no = life_.rejection(clock::now())) return reject(client, *no);
  auto task = [this, what = asked{client, open_work()}, make = std::move(make)]() mutable {
    const auto name = about_.any_name ? "" : model_named_in(what.client->asked().body);
    if (!name) return reply_in_loop(std::move(what), answer_of(name.error()));
    std::function<void(model_answer)> later =
        [this, what, make = std::move(make)](const model_answer& model) mutable {
          http::answer said =
              model ? make(*this, **model, what.client->asked().body) : answer_of(model.error());
          reply_in_loop(std::move(what), std::move(said));
        };
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): the function owns its copy
    if (auto now = want(*name, later)) later(*std::move(now));
    asio::post(io_, [what = std::move(what), later = std::move(later)] {});
  };
  if (!worker_->post(std::move(task)))
    reject(client, http::unavailable_answer("too many requests wait; try again", 1));
}

// ---- the service -------------------------------------------------------------------------------

service_work serving::work() const {
  service_work out{.engines = {}, .n_unanswered = *n_open_};
  for (const served_model_ptr& one : all_loaded()) {
    const model_work now = one->work();
    out.engines.push_back({one->facts().name, now.steps, now.has_work, now.is_lost});
  }
  return out;
}

std::string serving::metrics(std::size_t n_connections) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  std::vector<model_metrics> all;
  for (const served_model_ptr& one : all_loaded()) {
    const auto report = scheduler_report(one->texts().scheduler.get());
    model_counts& counted = counts_[one->facts().name];
    counted.n_context = one->texts().limits.n_context;
    bitnet_shadow* const shadow = one->facts().shadow.get();
    const auto compared = shadow == nullptr ? result<nlohmann::json>() : shadow_report(shadow);
    all.push_back({.model_name = one->facts().name,
                   .load_seconds = one->facts().load_seconds,
                   .report = report ? *report : nlohmann::json::object(),
                   .shadow = compared ? *compared : nlohmann::json()});
  }
  std::vector<request_counts> requests;
  requests.reserve(counts_.size());
  for (const auto& [name, counted] : counts_)
    requests.push_back({name, counted.n_context, &counted.requests});
  return metrics_of(
      {.version = bitnet_version(), .n_connections = n_connections, .now_seconds = now.count()},
      all, requests);
}

void serving::end() {
  ended_ = true;
  models_.end();
}

}  // namespace bitnet::host
