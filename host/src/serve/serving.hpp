#pragma once
// What the routes of a server of OpenAI's API work with: a model, its schedulers, a worker thread
// and the counts of all requests.
//
// Threads: the one that runs `io`, but for what says otherwise.

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "http/exchange.hpp"
#include "library/handles.hpp"
#include "openai/api_form.hpp"
#include "serve/worker.hpp"
#include "service/life.hpp"
#include "service/metrics.hpp"
#include "service/scheduler_events.hpp"
#include "service/supervisor.hpp"

namespace bitnet::host {

struct serving_facts {
  bitnet_runtime* runtime = nullptr;  // borrowed, as is the model
  bitnet_model* model = nullptr;
  bitnet_model_info info{};
  std::string name;  // of the model, for clients
  std::string fingerprint;
  std::string template_name;  // as in bitnet_chat_format; "": the model's
  int64_t created = 0;        // when the model was loaded, in seconds since 1970
  double load_seconds = 0;
  openai::generation_wish defaults;  // of what a body leaves open
  // A scheduler of texts, or of embeddings.
  std::function<result<scheduler_handle>(bool embeds)> open_scheduler = {};
  // Any thread: what a reload did, as JSON.
  std::function<void(const std::string&)> on_backend_reload = {};
};

// One scheduler, with the reader of its events.
struct serving_lane {
  scheduler_handle scheduler;
  openai::model_limits limits;
  uint32_t n_parallel = 0;
  std::unique_ptr<scheduler_events> events;  // before its scheduler
};

class serving {
 public:
  // Opens the scheduler of texts. `io` and `life` outlive it.
  [[nodiscard]] static result<std::unique_ptr<serving>> open(boost::asio::io_context& io,
                                                             const service_life& life,
                                                             serving_facts about);
  ~serving();
  serving(const serving&) = delete;
  serving& operator=(const serving&) = delete;

  // A completion, a chat or embeddings.
  void answer(const openai::api_form& form, const http::exchange_ptr& client);
  // What `make` gives of the body, on the worker thread.
  using maker = std::function<http::answer(const serving&, const std::string& body)>;
  void answer_by(const http::exchange_ptr& client, maker make);
  // The same on a thread of its own, for what takes long.
  void administer(const http::exchange_ptr& client, maker make);

  [[nodiscard]] const serving_facts& facts() const { return about_; }
  [[nodiscard]] const serving_lane& texts() const { return texts_; }
  [[nodiscard]] service_work work() const;
  [[nodiscard]] std::string metrics(std::size_t n_connections) const;
  // Gives up what runs, and lets `io` come to its end.
  void end();

  // ---- for its requests ----
  [[nodiscard]] boost::asio::io_context& io() { return io_; }
  [[nodiscard]] worker& tasks() { return *worker_; }
  [[nodiscard]] request_metrics& counts() { return counts_; }
  // Any thread: the worker asks for embeddings, whose scheduler is opened when it is first needed.
  [[nodiscard]] result<serving_lane*> lane_for(openai::endpoint to);
  // The loop reads its events from now on. Once for each lane; more do nothing.
  [[nodiscard]] result<void> watch(serving_lane& lane);
  [[nodiscard]] uint32_t new_seed() { return seeds_(); }  // the worker thread
  void refuse(const http::exchange_ptr& client, const http::answer& no);
  // A request that a drain waits for, as long as it lives.
  [[nodiscard]] std::shared_ptr<void> open_work();
  [[nodiscard]] bool has_ended() const { return ended_; }

 private:
  serving(boost::asio::io_context& io, const service_life& life, serving_facts about);
  [[nodiscard]] result<void> open_lane(bool embeds, serving_lane& to) const;
  void answer_on(worker& by, const http::exchange_ptr& client, maker make);

  boost::asio::io_context& io_;
  const service_life& life_;
  serving_facts about_;
  std::shared_ptr<std::size_t> n_open_ = std::make_shared<std::size_t>(0);
  request_metrics counts_;
  serving_lane texts_, embeddings_;
  std::random_device seeds_;
  bool ended_ = false;
  std::unique_ptr<worker> worker_, admin_;  // last: their tasks may use all of it
};

// {"error": ...} with the status of the error.
[[nodiscard]] http::answer answer_of(const openai::api_error& why);
// JSON in one line; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] http::answer answer_of(const nlohmann::ordered_json& content);

}  // namespace bitnet::host
