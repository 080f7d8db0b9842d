#pragma once
// One request of a client, from its body to the last byte of its answer.
//
// The worker thread reads the body and submits the first prompts; all else happens in the loop. The
// answer is whole, or a stream of events. A client that goes ends its prompts within one step.

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "openai/api_form.hpp"
#include "serve/request_facts.hpp"
#include "serve/serving.hpp"

namespace bitnet::host {

class live_request : public std::enable_shared_from_this<live_request> {
 public:
  static void begin(serving& in, const openai::api_form& form, const http::exchange_ptr& client);

  live_request(serving& in, const openai::api_form& form, http::exchange_ptr client);

  // ---- for the readers of its prompts ----
  [[nodiscard]] bool has_room() const;
  void take(std::size_t prompt, const bitnet_event& e);
  void prompt_ended(std::size_t prompt, request_handle request);

 private:
  // A prompt that is at the scheduler and that the loop does not know yet.
  using submitted = std::vector<request_handle>;

  // The worker thread.
  static void choose_model(std::shared_ptr<live_request> one);
  static void go_on(std::shared_ptr<live_request> one, serving::model_answer model);
  // The name of the model that the body has; "": none.
  [[nodiscard]] openai::parsed<std::string> read_body();
  [[nodiscard]] std::optional<http::answer> prepare();
  [[nodiscard]] std::optional<http::answer> submit_first(openai::object_facts about);
  // Any thread. The next prompt; false: the scheduler takes no more now.
  [[nodiscard]] openai::parsed<bool> submit_next(request_handle& to);

  [[nodiscard]] bool wants_receipts() const;

  // The loop.
  void prepared(submitted begun, std::optional<http::answer> no);
  void add(request_handle request, std::size_t prompt);
  void submit_more();
  void finish(std::string text);
  void fail(const openai::api_error& why);
  void leave();   // cancels its prompts
  void resume();  // takes events that wait

  serving& in_;
  const openai::api_form& form_;
  http::exchange_ptr client_;
  std::shared_ptr<void> open_;  // counts it as a request that a drain waits for
  std::atomic<bool> is_gone_ = false;
  bool is_prepared_ = false;  // true: members below belong to the loop; before, to the worker

  std::optional<nlohmann::json> body_;
  served_model_ptr model_;  // before what refers to it
  std::string id_;          // of the answer
  serving_lane* lane_ = nullptr;
  openai::request asked_;
  std::vector<openai::prompt> prompts_;
  std::size_t n_submitted_ = 0;           // prompts
  std::size_t n_open_choices_ = 0;        // of all prompts
  std::vector<bitnet_request*> running_;  // of each prompt; NULL: it does not run
  submitted begun_;                       // until the loop knows them
  openai::timings took_;
  request_facts facts_;  // of all prompts
  std::unique_ptr<openai::answer_writer> writer_;
  bool is_stream_ = false;  // of its answer
};

}  // namespace bitnet::host
