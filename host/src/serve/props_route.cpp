#include "serve/props_route.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "openai/shortest.hpp"

namespace bitnet::host {
namespace {

using nlohmann::ordered_json;
using openai::shortest;

// What a request has that leaves these fields out, by llama-server's names.
ordered_json sampling_json(const bitnet_sampling& from) {
  return {{"temperature", shortest(from.temperature)},
          {"dynatemp_range", shortest(from.dynatemp_range)},
          {"dynatemp_exponent", shortest(from.dynatemp_exponent)},
          {"top_k", from.top_k},
          {"top_p", shortest(from.top_p)},
          {"min_p", shortest(from.min_p)},
          {"top_n_sigma", shortest(from.top_n_sigma)},
          {"typical_p", shortest(from.typical_p)},
          {"xtc_probability", shortest(from.xtc_probability)},
          {"xtc_threshold", shortest(from.xtc_threshold)},
          {"repeat_last_n", from.repeat_last_n},
          {"repeat_penalty", shortest(from.repeat_penalty)},
          {"presence_penalty", shortest(from.presence_penalty)},
          {"frequency_penalty", shortest(from.frequency_penalty)},
          {"dry_multiplier", shortest(from.dry_multiplier)},
          {"dry_base", shortest(from.dry_base)},
          {"dry_allowed_length", from.dry_allowed_length},
          {"dry_penalty_last_n", from.dry_penalty_last_n},
          {"mirostat", from.mirostat},
          {"mirostat_tau", shortest(from.mirostat_tau)},
          {"mirostat_eta", shortest(from.mirostat_eta)},
          {"ignore_eos", from.ignore_eos != 0}};
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
