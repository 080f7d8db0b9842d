#include "serve/props_route.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "openai/shortest.hpp"
#include "tables/sampling.hpp"

namespace bitnet::host {
namespace {

using nlohmann::ordered_json;
using openai::shortest;

double as_json(float value) {
  return shortest(value);
}
int32_t as_json(int32_t value) {
  return value;
}

// Defaults for requests without these fields, by llama-server's names.
ordered_json sampling_json(const bitnet_sampling& from) {
  ordered_json out;
#define BITNET_PROPS_PARAMETER(type, name, ...) out[#name] = as_json(from.name);
  BITNET_SAMPLING_PARAMETERS(BITNET_PROPS_PARAMETER)
#undef BITNET_PROPS_PARAMETER
  out["ignore_eos"] = from.ignore_eos != 0;
  return out;
}

http::answer props_answer(const serving& in, const http::request& asked) {
  const std::string name = http::query_value(asked.query, "model");
  const served_model_ptr of = in.loaded(name);
  if (!of) return not_loaded_answer();
  const model_facts& facts = of->facts();
  ordered_json params = sampling_json(facts.defaults.sampling);
  params["n_predict"] = facts.defaults.max_tokens;
  return answer_of(
      ordered_json{{"default_generation_settings",
                    {{"n_ctx", of->texts().limits.n_context}, {"params", std::move(params)}}},
                   {"total_slots", of->texts().n_parallel},
                   {"model_alias", facts.name},
                   {"modalities", {{"vision", false}, {"audio", false}}},
                   {"build_info", std::string("bitnet ") + bitnet_version()}});
}

}  // namespace

void add_props(http::route_table& to, const served& with) {
  to.add({.method = "GET",
          .paths = {"/props", "/v1/props"},
          .summary = "Defaults and sizes",
          .handle =
              [&with](const http::exchange_ptr& client) {
                client->reply(props_answer(*with.engine, client->asked()));
              },
          .answer = "Props",
          .query = {{"model", "string", "of several; without it one that is loaded"}}});
}

}  // namespace bitnet::host
