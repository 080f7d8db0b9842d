#include "serve/served_model.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "session/engine.hpp"
#include "session/shadow.hpp"

namespace bitnet::host {
namespace {

uint64_t number_of(const nlohmann::json& of, const char* key) {
  const auto found = of.find(key);
  return found != of.end() && found->is_number() ? found->get<uint64_t>() : 0;
}

}  // namespace

result<std::unique_ptr<served_model>> served_model::open(model_facts about) {
  std::unique_ptr<served_model> out(new served_model(std::move(about)));
  if (auto ok = out->open_lane(false, out->about_.kv_bytes, out->texts_); !ok)
    return std::unexpected(ok.error());
  out->bytes_ = out->about_.info.weight_bytes + out->texts_.kv_bytes;
  return out;
}

result<void> served_model::open_lane(bool embeds, uint64_t kv_bytes, serving_lane& to) const {
  auto scheduler = about_.open_scheduler(about_.model.get(), embeds, kv_bytes);
  if (!scheduler) return std::unexpected(scheduler.error());
  const auto report = scheduler_report(scheduler->get());
  if (!report) return std::unexpected(report.error());
  if (auto ok = give_shadow(scheduler->get(), embeds ? nullptr : about_.shadow.get()); !ok)
    return std::unexpected(ok.error());
  to.scheduler = *std::move(scheduler);
  to.limits = {.n_vocab = about_.info.n_vocab,
               .n_embedding = about_.info.n_embedding,
               .n_context = static_cast<uint32_t>(number_of(*report, "n_context"))};
  to.n_parallel = static_cast<uint32_t>(number_of(*report, "max_sequences"));
  const nlohmann::json kv = report->value("kv", nlohmann::json::object());
  to.kv_bytes = number_of(kv, "blocks") * number_of(kv, "block_bytes");
  return {};
}

uint64_t served_model::bytes() const {
  return bytes_;
}

result<serving_lane*> served_model::lane_for(openai::endpoint to) {
  if (to != openai::endpoint::embeddings) return &texts_;
  if (!embeddings_.scheduler) {
    if (auto ok = open_lane(true, about_.embed_bytes, embeddings_); !ok)
      return std::unexpected(ok.error());
    bytes_ += embeddings_.kv_bytes;
  }
  return &embeddings_;
}

result<void> served_model::watch(boost::asio::io_context& io, serving_lane& lane) {
  if (lane.events) return {};
  auto events = scheduler_events::open(io, lane.scheduler.get());
  if (!events) return std::unexpected(events.error());
  lane.events = *std::move(events);
  return {};
}

model_work served_model::work() const {
  model_work out;
  for (const serving_lane* lane : {&texts_, &embeddings_}) {
    if (lane == &embeddings_ && !lane->events) continue;  // the worker may be opening it
    const auto report = scheduler_report(lane->scheduler.get());
    if (!report) continue;
    out.steps += number_of(*report, "steps");
    const nlohmann::json waiting = report->value("waiting", nlohmann::json::object());
    const uint64_t n_work =
        number_of(*report, "running") + number_of(waiting, "new") + number_of(waiting, "preempted");
    out.has_work = out.has_work || n_work != 0;
    out.is_lost = out.is_lost || waiting.value("reason", "") == "no device";
  }
  return out;
}

void served_model::leave_loop() {
  texts_.events.reset();
  embeddings_.events.reset();
}

}  // namespace bitnet::host
