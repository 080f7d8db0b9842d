#pragma once
// Shared state of the routes of a server of OpenAI's API: models, a worker thread and the counts of
// all requests.
//
// Threads: the one that runs `io`, unless stated otherwise.

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "http/exchange.hpp"
#include "models/model_table.hpp"
#include "openai/api_form.hpp"
#include "serve/receipt_folder.hpp"
#include "serve/served_model.hpp"
#include "service/life.hpp"
#include "service/metrics.hpp"
#include "service/supervisor.hpp"
#include "service/worker.hpp"

namespace bitnet::host {

struct serving_facts {
  bitnet_runtime* runtime = nullptr;   // borrowed
  std::string template_name;           // as in bitnet_chat_format; "": the model's
  bool any_name = true;                // the one model answers to any name
  std::string first_name = {};         // model of requests that name none; "": none
  receipt_folder* receipts = nullptr;  // borrowed; nullptr: none are written
  // Any thread. Receives the JSON of a reload's result.
  std::function<void(const std::string&)> on_backend_reload = {};
  // Any thread. Receives the result of a preference for a device.
  std::function<void(const std::string&)> on_preference = {};
};

using served_model_ptr = std::shared_ptr<served_model>;

class serving {
 public:
  // All but `about` outlive it. The models in `models` are of type served_model.
  serving(boost::asio::io_context& io, const service_life& life, model_table& models,
          serving_facts about);
  ~serving();
  serving(const serving&) = delete;
  serving& operator=(const serving&) = delete;

  // Answers a completion, a chat or embeddings.
  void answer(const openai::api_form& form, const http::exchange_ptr& client);
  // Answers with the result of `make`, which runs on the worker thread.
  using maker = std::function<http::answer(const serving&, const std::string& body)>;
  void answer_by(const http::exchange_ptr& client, maker make);
  // The same, with the model that the body names.
  using model_maker =
      std::function<http::answer(const serving&, const served_model&, const std::string& body)>;
  void answer_with_model(const http::exchange_ptr& client, model_maker make);
  // Like answer_by, but on a separate thread, for slow tasks.
  void administer(const http::exchange_ptr& client, maker make);

  [[nodiscard]] const serving_facts& facts() const { return about_; }
  [[nodiscard]] model_table& models() const { return models_; }
  // Any thread. Like model_table::loaded.
  [[nodiscard]] served_model_ptr loaded(std::string_view name = {}) const;
  [[nodiscard]] std::vector<served_model_ptr> all_loaded() const;
  [[nodiscard]] service_work work() const;
  [[nodiscard]] std::string metrics(std::size_t n_connections);
  // Cancels running requests and lets `io` run out of work.
  void end();

  // ---- for its requests ----
  [[nodiscard]] boost::asio::io_context& io() { return io_; }
  [[nodiscard]] worker& tasks() { return *worker_; }
  // Counts of requests to a model; NULL: of those rejected before a model was known.
  [[nodiscard]] request_metrics& counts(const served_model* of);
  // On the worker thread. Returns the model that a body names; nothing: the worker thread calls
  // `later` when it is loaded or failed to load.
  using model_answer = openai::parsed<served_model_ptr>;
  [[nodiscard]] std::optional<model_answer> want(std::string_view name,
                                                 std::function<void(model_answer)> later);
  [[nodiscard]] uint32_t new_seed() { return seeds_(); }  // the worker thread
  void reject(const http::exchange_ptr& client, const http::answer& no,
              const served_model* of = nullptr);
  // Registers a request. A drain waits until the returned pointer is released.
  [[nodiscard]] std::shared_ptr<void> open_work();
  [[nodiscard]] bool has_ended() const { return ended_; }

 private:
  // A task whose exchange and open work are released in the loop.
  struct asked;
  void answer_on(worker& by, const http::exchange_ptr& client, maker make);
  void reply_in_loop(asked&& what, http::answer said);

  // The counts stay when their model is unloaded.
  struct model_counts {
    request_metrics requests;
    uint32_t n_context = 0;
  };

  boost::asio::io_context& io_;
  const service_life& life_;
  model_table& models_;
  serving_facts about_;
  std::shared_ptr<std::size_t> n_open_ = std::make_shared<std::size_t>(0);
  std::map<std::string, model_counts, std::less<>> counts_;  // by the model's name
  std::random_device seeds_;
  bool ended_ = false;
  std::unique_ptr<worker> worker_, admin_;  // last: their tasks use all other members
};

// {"error": ...} with the status of the error.
[[nodiscard]] http::answer answer_of(const openai::api_error& why);
// JSON in one line; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] http::answer answer_of(const nlohmann::ordered_json& content);
// The error of a route about a loaded model, if no model of that name is loaded.
[[nodiscard]] http::answer not_loaded_answer();
// Why a model cannot answer.
[[nodiscard]] openai::api_error error_of(const model_rejection& why);

}  // namespace bitnet::host
