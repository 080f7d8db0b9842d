#pragma once
// A loaded model with its schedulers, which answer the requests that name it.
//
// Threads: the loop's, unless stated otherwise.

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "library/handles.hpp"
#include "models/model_table.hpp"
#include "openai/api_form.hpp"
#include "service/scheduler_events.hpp"

namespace bitnet::host {

struct model_facts {
  model_handle draft;  // draft model of speculation; empty: none
  model_handle model;
  shadow_handle shadow;  // from --shadow, for texts; empty: none
  bitnet_model_info info{};
  std::string name;  // the model's name for clients
  std::string fingerprint;
  int64_t created = 0;  // time of loading, seconds since 1970
  double load_seconds = 0;
  openai::generation_wish defaults;  // for members that a body lacks
  // Opens a scheduler of texts or of embeddings with this many bytes for keys and values; 0: the
  // library's choice.
  std::function<result<scheduler_handle>(bitnet_model*, bool embeds, uint64_t kv_bytes)>
      open_scheduler = {};
  uint64_t kv_bytes = 0;     // for texts
  uint64_t embed_bytes = 0;  // for embeddings
};

// A scheduler with the reader of its events.
struct serving_lane {
  scheduler_handle scheduler;
  openai::model_limits limits;
  uint32_t n_parallel = 0;
  uint64_t kv_bytes = 0;
  std::unique_ptr<scheduler_events> events;  // declared after its scheduler
};

// Progress of a lane's engine.
struct model_work {
  uint64_t steps = 0;     // steps that have ended
  bool has_work = false;  // work is queued for a step
  bool is_lost = false;   // its device is lost, without a substitute
};

class served_model final : public loaded_model {
 public:
  // Opens the scheduler of texts.
  [[nodiscard]] static result<std::unique_ptr<served_model>> open(model_facts about);

  // Any thread.
  [[nodiscard]] const model_facts& facts() const { return about_; }
  [[nodiscard]] const serving_lane& texts() const { return texts_; }
  // nullptr: not open yet. In the loop.
  [[nodiscard]] const serving_lane* embeddings() const {
    return embeddings_.events ? &embeddings_ : nullptr;
  }
  [[nodiscard]] uint64_t bytes() const override;
  // On the worker thread. Opens the scheduler of embeddings when it is first needed.
  [[nodiscard]] result<serving_lane*> lane_for(openai::endpoint to);

  // From now on the loop reads the lane's events. Repeated calls do nothing.
  [[nodiscard]] static result<void> watch(boost::asio::io_context& io, serving_lane& lane);
  [[nodiscard]] model_work work() const;
  void leave_loop() override;

 private:
  explicit served_model(model_facts about) : about_(std::move(about)) {}
  [[nodiscard]] result<void> open_lane(bool embeds, uint64_t kv_bytes, serving_lane& to) const;

  model_facts about_;
  serving_lane texts_, embeddings_;
  std::atomic<uint64_t> bytes_ = 0;
};

}  // namespace bitnet::host
