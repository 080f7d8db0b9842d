#include "openai/generation_fields.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <utility>

#include "openai/answer_form.hpp"
#include "tables/sampling.hpp"

namespace bitnet::host::openai {
namespace {

using nlohmann::json;

constexpr double most_tokens = std::numeric_limits<int32_t>::max();

void read_max_tokens(field_reader& in, generation_wish& how) {
  // The last one present counts: max_completion_tokens replaced max_tokens in OpenAI's API;
  // n_predict is llama-server's.
  for (const char* name : {"n_predict", "max_tokens", "max_completion_tokens"}) {
    const int32_t before = how.max_tokens;
    in.number(name, -1, most_tokens, how.max_tokens);
    if (how.max_tokens != 0 || how.echo) continue;
    how.max_tokens = before;
    in.wrong(name, "at least 1, or -1 for no limit; 0 is for completions with 'echo'");
  }
}

// llama-server's name comes last and wins.
void read_reasoning_budget(field_reader& in, generation_wish& how) {
  for (const char* name : {"reasoning_budget", "thinking_budget_tokens"})
    in.number(name, -1, most_tokens, how.reasoning_budget);
}

void read_seed(field_reader& in, generation_wish& how) {
  const json* const found = in.any("seed");
  if (found == nullptr) return;
  if (!found->is_number_integer()) return in.wrong("seed", "a whole number");
  // OpenAI's seeds have 64 bits; the low 32 are used. -1 is llama-server's random seed.
  const auto bits = found->is_number_unsigned() ? found->get<uint64_t>()
                                                : static_cast<uint64_t>(found->get<int64_t>());
  how.has_seed = bits != std::numeric_limits<uint64_t>::max();
  if (how.has_seed) how.sampling.seed = static_cast<uint32_t>(bits);
}

void read_stops(field_reader& in, generation_wish& how) {
  const json* const found = in.any("stop");
  if (found == nullptr) return;
  const json list = found->is_array() ? *found : json::array({*found});
  std::vector<std::string> stops;
  for (const json& one : list) {
    if (!one.is_string() || one.get_ref<const std::string&>().empty())
      return in.wrong("stop", "a string that is not empty, or an array of such");
    stops.push_back(one.get<std::string>());
  }
  how.stops = std::move(stops);
}

// Adds a token's bias; false forbids the token.
bool add_bias(int64_t id, const json& value, uint32_t n_vocab, generation_wish& how) {
  constexpr double most_bias = 100;  // OpenAI's limit
  constexpr float never = -1e30F;    // the value that ignore_eos uses
  const bool is_never = value.is_boolean() && !value.get<bool>();
  if (id < 0 || id >= n_vocab || (!value.is_number() && !is_never)) return false;
  const double bias = is_never ? 0 : value.get<double>();
  if (!(bias >= -most_bias && bias <= most_bias)) return false;
  how.biases.push_back(
      {static_cast<bitnet_token>(id), is_never ? never : static_cast<float>(bias)});
  return true;
}

bool add_bias(const std::string& key, const json& value, uint32_t n_vocab, generation_wish& how) {
  int64_t id = -1;
  const char* const end = key.data() + key.size();
  const auto [rest, error] = std::from_chars(key.data(), end, id);
  return error == std::errc{} && rest == end && add_bias(id, value, n_vocab, how);
}

// Reads OpenAI's {"15043": 1} or llama-server's [[15043, 1], [2, false]].
void read_biases(field_reader& in, uint32_t n_vocab, generation_wish& how) {
  const json* const found = in.any("logit_bias");
  if (found == nullptr) return;
  bool fine = found->is_object() || found->is_array();
  if (fine) how.biases.clear();
  if (found->is_object())
    for (const auto& [key, value] : found->items())
      fine = fine && add_bias(key, value, n_vocab, how);
  if (found->is_array())
    for (const json& one : *found)
      fine = fine && one.is_array() && one.size() == 2 && one[0].is_number_integer() &&
             add_bias(one[0].get<int64_t>(), one[1], n_vocab, how);
  if (!fine)
    in.wrong("logit_bias", fmt::format("an object of token ids from 0 to {} with numbers from -100 "
                                       "to 100",
                                       n_vocab - 1));
}

void read_breakers(field_reader& in, generation_wish& how) {
  constexpr std::size_t most = 32;     // the library's limit
  constexpr std::size_t longest = 40;  // bytes
  const json* const found = in.any("dry_sequence_breakers");
  if (found == nullptr || in.error()) return;
  bool fine = found->is_array() && found->size() <= most;
  std::vector<std::string> breakers;
  for (std::size_t i = 0; fine && i < found->size(); ++i) {
    const json& one = (*found)[i];
    fine = one.is_string() && !one.get_ref<const std::string&>().empty() &&
           one.get_ref<const std::string&>().size() <= longest;
    if (fine) breakers.push_back(one.get<std::string>());
  }
  if (!fine)
    return in.wrong(
        "dry_sequence_breakers",
        fmt::format("an array of at most {} strings of 1 to {} bytes each", most, longest));
  how.dry_breakers = std::move(breakers);
}

}  // namespace

generation_wish::generation_wish() {
  bitnet_sampling_defaults(&sampling, sizeof sampling);
  bitnet_speculation_defaults(&speculation, sizeof speculation);
}

void read_generation(field_reader& in, std::string_view body, uint32_t n_vocab,
                     generation_wish& how) {
#define BITNET_SAMPLING_READ(type, name, initial, accepted, expected, option, aliases, metavar, \
                             lowest, highest, ...)                                              \
  in.number(#name, lowest, highest, how.sampling.name);
  BITNET_SAMPLING_PARAMETERS(BITNET_SAMPLING_READ)
#undef BITNET_SAMPLING_READ
  bool ignores_end = how.sampling.ignore_eos != 0;
  in.flag("ignore_eos", ignores_end);
  how.sampling.ignore_eos = ignores_end ? 1 : 0;
  in.number("n", 1, most_choices, how.n_choices);
  read_max_tokens(in, how);
  read_reasoning_budget(in, how);
  read_seed(in, how);
  read_stops(in, how);
  read_biases(in, n_vocab, how);
  read_breakers(in, how);
  read_form(in, body, how);
}

generation_view::generation_view(const generation_wish& how, const token_list& prompt)
    : sampling_(how.sampling) {
  sampling_.logit_bias = how.biases.data();
  sampling_.n_logit_bias = static_cast<uint32_t>(how.biases.size());
  sampling_.logit_bias_size = sizeof(bitnet_logit_bias);
  for (const std::string& stop : how.stops) stops_.push_back({stop.data(), stop.size()});
  if (how.dry_breakers) {
    for (const std::string& one : *how.dry_breakers) breakers_.push_back({one.data(), one.size()});
    sampling_.dry_breakers = breakers_.data();
    sampling_.n_dry_breakers = static_cast<uint32_t>(breakers_.size());
  }
  bitnet_generation_defaults(&generation_, sizeof generation_);
  generation_.max_tokens = how.max_tokens;
  generation_.sampling = &sampling_;
  generation_.stop_strings = stops_.data();
  generation_.n_stop_strings = static_cast<uint32_t>(stops_.size());
  generation_.grammar = {how.grammar.data(), how.grammar.size()};
  generation_.json_schema = {how.json_schema.data(), how.json_schema.size()};
  if (how.speculation.type != BITNET_SPECULATION_NONE) generation_.speculation = &how.speculation;
  if (!how.reasoning_ends.empty()) {
    generation_.reasoning_budget = how.reasoning_budget;
    generation_.in_reasoning = how.in_reasoning ? 1 : 0;
    generation_.reasoning_begins = {how.reasoning_begins.data(), how.reasoning_begins.size()};
    generation_.reasoning_ends = {how.reasoning_ends.data(), how.reasoning_ends.size()};
  }
  bitnet_request_defaults(&request_, sizeof request_);
  request_.n_choices = how.n_choices;
  request_.best_of = how.best_of;
  request_.prompt = prompt.data();
  request_.n_prompt = prompt.size();
  request_.generation = &generation_;
  request_.logprobs = how.logprobs ? 1 : 0;
  request_.n_top_logprobs = how.n_top_logprobs;
  request_.prompt_logprobs = how.logprobs && how.echo ? 1 : 0;
  request_.n_top_prompt_logprobs = request_.prompt_logprobs != 0 ? how.n_top_logprobs : 0;
}

}  // namespace bitnet::host::openai
