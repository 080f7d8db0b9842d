#include "serve/live_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "http/policy.hpp"
#include "serve/error_answers.hpp"

namespace bitnet::host {
namespace asio = boost::asio;
using clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t most_choices = 2048;  // over all prompts of a body
constexpr std::size_t most_submitted = 32;  // prompts of a body at a scheduler at once
constexpr unsigned retry_s = 1;             // a step, after which requests may end, takes less

int64_t now_s() {
  using std::chrono::system_clock;
  return std::chrono::duration_cast<std::chrono::seconds>(system_clock::now().time_since_epoch())
      .count();
}

openai::api_error unavailable(std::string message) {
  openai::api_error out;
  out.status = 503;
  out.type = "unavailable_error";
  out.message = std::move(message);
  return out;
}

openai::api_error busy() {
  return unavailable("too many requests wait; try again");
}

openai::api_error error_of_event(const bitnet_event& e) {
  std::string message(e.message.data, e.message.size);
  if (e.kind == BITNET_EVENT_END) return unavailable("the server ends; send the request again");
  if (e.status == BITNET_TIMEOUT) return unavailable(std::move(message));
  return openai::error_of(e.status, std::move(message));
}

http::answer error_answer(const openai::api_form& form, const openai::api_error& why) {
  http::answer out = error_answer_of(form, why);
  if (why.status == 503) out.fields.push_back({"Retry-After", fmt::format("{}", retry_s)});
  return out;
}

// Reads the events of one prompt.
class prompt_reader final : public event_reader {
 public:
  prompt_reader(std::shared_ptr<live_request> of, std::size_t prompt, request_times times)
      : of_(std::move(of)), prompt_(prompt), times_(std::move(times)) {}

  [[nodiscard]] bool has_room() const override { return of_->has_room(); }
  void take(const bitnet_event& e) override {
    if (e.kind != BITNET_EVENT_PROMPT) times_.take(e, clock::now());
    of_->take(prompt_, e);
  }
  void ended(request_handle request) override { of_->prompt_ended(prompt_, std::move(request)); }

 private:
  std::shared_ptr<live_request> of_;
  std::size_t prompt_;
  request_times times_;
};

}  // namespace

// ---- the body ----------------------------------------------------------------------------------

live_request::live_request(serving& in, const openai::api_form& form, http::exchange_ptr client)
    : in_(in),
      form_(form),
      client_(std::move(client)),
      open_(in.open_work()),
      facts_(client_->began()) {}

void live_request::begin(serving& in, const openai::api_form& form,
                         const http::exchange_ptr& client) {
  auto one = std::make_shared<live_request>(in, form, client);
  client->on_gone([weak = one->weak_from_this()] {
    if (const auto self = weak.lock()) self->leave();
  });
  client->on_room([weak = one->weak_from_this()] {
    if (const auto self = weak.lock()) self->resume();
  });
  auto task = [one]() mutable { choose_model(std::move(one)); };
  if (!in.tasks().post(std::move(task))) in.reject(client, error_answer(form, busy()));
}

// The request is moved between threads, so that the loop's thread is its last owner.
void live_request::choose_model(std::shared_ptr<live_request> one) {
  const auto name = one->read_body();
  serving& in = one->in_;
  if (!name) return go_on(std::move(one), std::unexpected(name.error()));
  auto later = [one](serving::model_answer model) mutable {
    go_on(std::move(one), std::move(model));
  };
  if (auto now = in.want(*name, later)) return go_on(std::move(one), *std::move(now));
  asio::post(in.io(), [one = std::move(one), later = std::move(later)] {});
}

void live_request::go_on(std::shared_ptr<live_request> one, serving::model_answer model) {
  std::optional<http::answer> no;
  if (model) {
    one->model_ = *std::move(model);
    no = one->prepare();
  } else {
    no = error_answer(one->form_, model.error());
  }
  one->body_.reset();
  asio::io_context& io = one->in_.io();
  asio::post(io, [one = std::move(one), no = std::move(no)]() mutable {
    one->prepared(std::exchange(one->begun_, {}), std::move(no));
  });
}

openai::parsed<std::string> live_request::read_body() {
  auto body = openai::parse_object(client_->asked().body, "the body");
  if (!body) return std::unexpected(body.error());
  body_ = *std::move(body);
  return openai::model_name_in(*body_);
}

std::optional<http::answer> live_request::prepare() {
  if (is_gone_ || !body_) return std::nullopt;
  const auto no = [this](const openai::api_error& why) { return error_answer(form_, why); };
  const auto lane = model_->lane_for(form_.to);
  if (!lane) return no(openai::error_of(BITNET_OUT_OF_MEMORY, lane.error().message));
  lane_ = *lane;
  const model_facts& facts = model_->facts();
  const std::string& template_name = in_.facts().template_name;
  auto asked = form_.read(*body_, client_->asked().body, lane_->limits, facts.defaults);
  if (!asked) return no(asked.error());
  if (asked->model.empty() || !in_.facts().any_name) asked->model = facts.name;
  if (!asked->how.has_seed) asked->how.sampling.seed = in_.new_seed();
  auto prompts = openai::prompts_of(*asked, facts.model.get(), lane_->limits, template_name);
  if (!prompts) return no(prompts.error());
  asked->messages.clear();  // frees memory: the prompts have it all
  asked->tools.clear();
  asked->inputs.clear();
  asked_ = *std::move(asked);
  prompts_ = *std::move(prompts);
  is_stream_ = asked_.stream && form_.to != openai::endpoint::embeddings;
  id_ = std::string(form_.id_prefix) + http::new_id();
  return submit_first({id_, now_s(), asked_.model, facts.fingerprint});
}

std::optional<http::answer> live_request::submit_first(openai::object_facts about) {
  running_.assign(prompts_.size(), nullptr);
  const bool embeds = form_.to == openai::endpoint::embeddings;
  n_open_choices_ = prompts_.size() * (embeds ? 1 : asked_.how.n_choices);
  if (n_open_choices_ > most_choices)
    return error_answer(
        form_, openai::invalid("n", fmt::format("the body asks for {} answers; at most {} are "
                                                "possible",
                                                n_open_choices_, most_choices))
                   .error());
  auto writer = form_.open(asked_, std::move(about), prompts_, model_->facts().model.get());
  if (!writer) return error_answer(form_, writer.error());
  writer_ = *std::move(writer);
  while (n_submitted_ < std::min(prompts_.size(), most_submitted) && !is_gone_) {
    request_handle next;
    const auto taken = submit_next(next);
    if (!taken) return begun_.clear(), error_answer(form_, taken.error());
    if (!*taken) return begun_.empty() ? std::optional(error_answer(form_, busy())) : std::nullopt;
    begun_.push_back(std::move(next));
  }
  return std::nullopt;
}

openai::parsed<bool> live_request::submit_next(request_handle& to) {
  openai::prompt& next = prompts_[n_submitted_];
  const openai::generation_view view(asked_.how, next.ids);
  bitnet_request_options options = view.options();
  if (form_.to == openai::endpoint::embeddings) {
    bitnet_request_defaults(&options, sizeof options);
    options.prompt = next.ids.data();
    options.n_prompt = next.ids.size();
  }
  options.receipt = wants_receipts() ? 1 : 0;
  library_error err;
  bitnet_request* request = nullptr;
  const bitnet_status status =
      bitnet_request_submit(lane_->scheduler.get(), &options, &request, &err);
  if (status == BITNET_BUSY) return false;
  if (status != BITNET_OK)
    return std::unexpected(openai::error_of(status, err.message, openai::prompt_member(form_.to)));
  to.reset(request);
  openai::token_list().swap(next.ids);
  ++n_submitted_;
  return true;
}

// ---- the loop ----------------------------------------------------------------------------------

void live_request::prepared(submitted begun, std::optional<http::answer> no) {
  if (client_->is_over() || in_.has_ended()) return;  // destroying `begun` ends its prompts
  client_->set_model(asked_.model);
  if (no) return in_.reject(client_, *no, model_.get());
  if (auto ok = served_model::watch(in_.io(), *lane_); !ok)
    return in_.reject(client_, error_answer(form_, openai::error_of(BITNET_IO, ok.error().message)),
                      model_.get());
  is_prepared_ = true;
  if (is_stream_) {
    client_->begin_stream({.content_type = "text/event-stream",
                           .fields = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}});
    client_->write(writer_->begin());
  }
  for (std::size_t i = 0; i < begun.size(); ++i) add(std::move(begun[i]), i);
}

void live_request::add(request_handle request, std::size_t prompt) {
  if (client_->is_over()) return;
  running_[prompt] = request.get();
  std::optional<request_params> asked;
  if (form_.to != openai::endpoint::embeddings)
    asked = {asked_.how.n_choices, asked_.how.max_tokens};
  lane_->events->add(std::move(request),
                     std::make_shared<prompt_reader>(
                         shared_from_this(), prompt,
                         request_times(in_.counts(model_.get()), client_->began(), asked)));
}

bool live_request::has_room() const {
  return client_->is_over() || !is_stream_ || client_->has_room();
}

void live_request::take(std::size_t prompt, const bitnet_event& e) {
  if (client_->is_over()) return;
  facts_.take(e, clock::now());
  const bool is_end = e.kind == BITNET_EVENT_END;
  if (is_end || e.kind == BITNET_EVENT_FAILED) client_->set_measured(facts_.fields());
  if (e.kind == BITNET_EVENT_FAILED || (is_end && e.stop_reason == BITNET_STOP_CANCELLED))
    return fail(error_of_event(e));
  if (is_end) took_.take_end(e);
  const bool is_last = is_end && --n_open_choices_ == 0;
  auto text = writer_->take(prompt, e);
  if (text && is_last) {
    auto rest = writer_->end(took_);
    if (rest) return finish(*text + *rest);
    text = std::move(rest);
  }
  if (!text) return fail(text.error());
  // One write per event: has_room() was true before it.
  if (!text->empty() && !client_->write(*text)) leave();
}

bool live_request::wants_receipts() const {
  return in_.facts().receipts != nullptr && form_.to != openai::endpoint::embeddings;
}

void live_request::prompt_ended(std::size_t prompt, request_handle request) {
  running_[prompt] = nullptr;
  if (wants_receipts() && request)
    in_.facts().receipts->add({.request = std::move(request),
                               .n_choices = asked_.how.n_choices,
                               .id = id_,
                               .prompt = prompt,
                               .model = asked_.model,
                               .on = model_,
                               .open_work = open_});
  submit_more();
}

void live_request::submit_more() {
  if (client_->is_over() || n_submitted_ == prompts_.size()) return;
  const std::size_t next = n_submitted_;
  request_handle request;
  const auto taken = submit_next(request);
  if (!taken) return fail(taken.error());
  if (*taken) return add(std::move(request), next);
  const bool others = std::ranges::any_of(running_, [](const auto* one) { return one != nullptr; });
  if (!others) fail(busy());
}

// ---- the answer --------------------------------------------------------------------------------

void live_request::finish(std::string text) {
  if (!is_stream_) return client_->reply({.body = std::move(text)});
  if (!client_->write(text)) return leave();
  client_->finish();
  // Readers of its other prompts may have stopped for lack of room.
  asio::post(in_.io(), [self = shared_from_this()] { self->resume(); });
}

void live_request::fail(const openai::api_error& why) {
  if (is_stream_) {
    client_->write(writer_->fail(why));
    client_->finish();
  } else {
    client_->reply(error_answer(form_, why));
  }
  leave();
}

void live_request::leave() {
  is_gone_ = true;
  if (!is_prepared_ || !lane_->events) return;
  for (const bitnet_request* one : running_)
    if (one != nullptr) lane_->events->cancel(one);
  // Stopped readers take their last events now. Posted, since a reader may be the caller.
  asio::post(in_.io(), [self = shared_from_this()] { self->resume(); });
}

void live_request::resume() {
  if (!is_prepared_ || !lane_->events) return;
  const std::vector<bitnet_request*> all = running_;
  for (const bitnet_request* one : all)
    if (one != nullptr && lane_->events) lane_->events->resume(one);
}

}  // namespace bitnet::host
