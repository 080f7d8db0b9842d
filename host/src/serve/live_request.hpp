#pragma once
// One request of a client, from its body to the last byte of its answer.
//
// The worker thread reads the body and submits the first prompts; everything else runs in the loop.
// The answer is complete at its end, or a stream of events. If the client leaves, its prompts end
// within one step.

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
  // Submitted prompts that the loop does not know yet.
  using submitted = std::vector<request_handle>;

  // On the worker thread:
  static void choose_model(std::shared_ptr<live_request> one);
  static void go_on(std::shared_ptr<live_request> one, serving::model_answer model);
  // Returns the model's name in the body; "": none.
  [[nodiscard]] openai::parsed<std::string> read_body();
  [[nodiscard]] std::optional<http::answer> prepare();
  [[nodiscard]] std::optional<http::answer> submit_first(openai::object_facts about);
  // Any thread. Submits the next prompt; false: the scheduler's queue is full.
  [[nodiscard]] openai::parsed<bool> submit_next(request_handle& to);

  [[nodiscard]] bool wants_receipts() const;

  // In the loop:
  void prepared(submitted begun, std::optional<http::answer> no);
  void add(request_handle request, std::size_t prompt);
  void submit_more();
  void finish(std::string text);
  void fail(const openai::api_error& why);
  void leave();   // cancels its prompts
  void resume();  // takes waiting events

  serving& in_;
  const openai::api_form& form_;
  http::exchange_ptr client_;
  std::shared_ptr<void> open_;  // while it lives, a drain waits for this request
  std::atomic<bool> is_gone_ = false;
  bool is_prepared_ = false;  // members below belong to the loop if true, else to the worker

  std::optional<nlohmann::json> body_;
  served_model_ptr model_;  // declared before its users
  std::string id_;          // of the answer
  serving_lane* lane_ = nullptr;
  openai::request asked_;
  std::vector<openai::prompt> prompts_;
  std::size_t n_submitted_ = 0;           // prompts
  std::size_t n_open_choices_ = 0;        // of all prompts
  std::vector<bitnet_request*> running_;  // one per prompt; NULL: not running
  submitted begun_;                       // until the loop takes them
  openai::timings took_;
  request_facts facts_;  // over all prompts
  std::unique_ptr<openai::answer_writer> writer_;
  bool is_stream_ = false;  // the answer is a stream
};

}  // namespace bitnet::host
