#include "serve/slots_route.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "session/engine.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

uint64_t count_in(const json& of, const char* name) {
  const auto found = of.find(name);
  return found != of.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

// The member of this type, or an empty value.
json member_of(const json& of, const char* name, json::value_t kind) {
  const auto found = of.find(name);
  return found != of.end() && found->type() == kind ? *found : json(kind);
}

ordered_json idle_slot(uint64_t id, uint64_t n_context) {
  return {{"id", id},
          {"n_ctx", n_context},
          {"speculative", false},
          {"is_processing", false},
          {"state", "idle"}};
}

// `row`: an element of the report's `sequences`.
ordered_json slot_of(const json& row, uint64_t id, uint64_t n_context) {
  ordered_json next = {{"has_next_token", true},
                       {"n_remain", count_in(row, "remaining")},
                       {"n_decoded", count_in(row, "generated")}};
  return {{"id", id},
          {"id_task", count_in(row, "request")},
          {"choice", count_in(row, "choice")},
          {"n_ctx", n_context},
          {"speculative", row.value("speculates", false)},
          {"is_processing", row.contains("slot")},
          {"state", row.value("state", "")},
          {"n_prompt_tokens", count_in(row, "prompt")},
          {"n_prompt_tokens_processed", count_in(row, "computed")},
          {"n_prompt_tokens_cache", count_in(row, "known")},
          {"next_token", ordered_json::array({std::move(next)})}};
}

// From a scheduler's report: an object per slot by its id, then one per waiting sequence in the
// order of the requests.
ordered_json slots_json(const json& report) {
  const uint64_t n_context = count_in(report, "n_context");
  ordered_json out = ordered_json::array();
  for (uint64_t id = 0; id < count_in(report, "slots"); ++id)
    out.push_back(idle_slot(id, n_context));
  const json rows = member_of(report, "sequences", json::value_t::array);
  std::vector<json> waiting;
  for (const json& row : rows) {
    const uint64_t slot = count_in(row, "slot");
    if (row.contains("slot") && slot < out.size())
      out[slot] = slot_of(row, slot, n_context);
    else
      waiting.push_back(row);
  }
  std::ranges::sort(waiting, {}, [](const json& row) {
    return std::tuple(count_in(row, "request"), count_in(row, "choice"));
  });
  for (const json& row : waiting) out.push_back(slot_of(row, out.size(), n_context));
  return out;
}

// Whether a new request would begin at once, as far as slots decide that.
bool has_free_slot(const json& report) {
  const json waiting = member_of(report, "waiting", json::value_t::object);
  return count_in(report, "running") < count_in(report, "slots") &&
         count_in(waiting, "new") + count_in(waiting, "preempted") == 0;
}

http::answer slots_answer(const serving& in, const std::string& model, const std::string& fails) {
  const served_model_ptr of = in.loaded(model);
  if (!of) return not_loaded_answer();
  const auto report = scheduler_report(of->texts().scheduler.get());
  if (!report) return answer_of(openai::error_of(BITNET_OUT_OF_MEMORY, report.error().message));
  const bool must_be_free = !fails.empty() && fails != "0";
  if (must_be_free && !has_free_slot(*report))
    return http::unavailable_answer("no slot is free: a request that comes now waits", 1);
  return answer_of(slots_json(*report));
}

}  // namespace

void add_slots(http::route_table& to, const served& with) {
  to.add({.method = "GET",
          .paths = {"/slots", "/v1/slots"},
          .summary = "What runs and waits, without its texts",
          .handle =
              [&with](const http::exchange_ptr& client) {
                const std::string& query = client->asked().query;
                client->reply(slots_answer(*with.engine, http::query_value(query, "model"),
                                           http::query_value(query, "fail_on_no_slot")));
              },
          .answer = "SlotList",
          .query = {{"fail_on_no_slot", "string", "1: 503 where no slot is free"},
                    {"model", "string", "of several; without it one that is loaded"}}});
}

}  // namespace bitnet::host
