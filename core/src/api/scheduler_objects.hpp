#pragma once
// The types behind the opaque handles of schedulers and their requests.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "api/answer_record.hpp"
#include "api/event_queue.hpp"
#include "api/objects.hpp"
#include "bitnet/bitnet.h"
#include "schedule/request.hpp"
#include "serving/async_engine.hpp"
#include "serving/request_record.hpp"

// The engine is destroyed before the objects that it delivers to; requests hold what they read
// from.
struct bitnet_scheduler {
  bitnet_model* model = nullptr;
  std::mutex preferring;            // one change of device at a time
  std::mutex mutex;                 // guards what follows
  bitnet::select::request request;  // devices to try when its device is lost
  // Fixed once it is open.
  uint32_t event_capacity = 0;
  bitnet_session_options sequences{};               // as asked for; its pointers are NULL
  std::optional<bitnet::generate::pooling> embeds;  // set: its requests are texts to embed
  std::shared_ptr<bitnet::api::event_board> board;
  bitnet::api::draft_models drafts;
  std::shared_ptr<bitnet::serving::async_engine> engine;
};

namespace bitnet::api {

// Data for a request's receipt that its engine does not have.
struct request_notes {
  bitnet_model* model;  // outlives the engine
  bitnet_session_options sequences;
  answer_record asked;  // of each choice; the seed is the first choice's
  std::shared_ptr<serving::request_record> computed;
  // Indexed by the `choice` of events: the index among the generated ones, set when its end is
  // read.
  std::vector<std::optional<uint32_t>> ended;
};

}  // namespace bitnet::api

struct bitnet_request {
  std::weak_ptr<bitnet::serving::async_engine> engine;
  std::shared_ptr<bitnet::api::event_queue> events;
  bitnet::schedule::ticket ticket = 0;
  bitnet::schedule::event last;  // the last bitnet_event points into it
  std::vector<bitnet_logprob> top;
  std::optional<bitnet::api::request_notes> notes;  // set if a receipt can be made
};
