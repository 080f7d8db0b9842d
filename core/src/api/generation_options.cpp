#include "api/generation_options.hpp"

#include <fmt/core.h>

#include <array>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "api/edge.hpp"
#include "api/objects.hpp"
#include "generate/dry_breakers.hpp"
#include "generate/text_tokens.hpp"
#include "grammar/gbnf.hpp"
#include "schema/compile.hpp"

namespace {

// Default sequence breakers, valid as long as the library.
const bitnet_str* library_breakers() {
  using bitnet::generate::default_breakers;
  static const auto all = [] {
    std::array<bitnet_str, std::size(default_breakers)> out{};
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = {default_breakers[i], std::string_view(default_breakers[i]).size()};
    return out;
  }();
  return all.data();
}

bitnet::result<std::shared_ptr<const bitnet::sampling::breakers>> breakers_of(
    bitnet_model& model, const bitnet_sampling& s) {
  std::vector<std::string> texts;
  texts.reserve(s.n_dry_breakers);
  for (uint32_t i = 0; i < s.n_dry_breakers; ++i)
    texts.emplace_back(bitnet::api::view(s.dry_breakers[i]));
  return model.breakers.find(model.model.tokens(), texts);
}

bitnet::result<bitnet::sampling::parameters> sampling_of(bitnet_model& model,
                                                         const bitnet_sampling& s) {
  bitnet::sampling::parameters out;
  out.seed = s.seed;
#define BITNET_SAMPLING_TAKE(type, name, ...) out.name = s.name;
  BITNET_SAMPLING_PARAMETERS(BITNET_SAMPLING_TAKE)
#undef BITNET_SAMPLING_TAKE
  constexpr uint32_t first_size = 8;
  for (uint32_t i = 0; i < s.n_logit_bias; ++i) {
    const auto one = bitnet::api::element_of(s.logit_bias, i, s.logit_bias_size, first_size,
                                             "an element of logit_bias");
    if (!one) return std::unexpected(one.error());
    out.logit_bias.emplace_back(one->token, one->bias);
  }
  if (s.dry_multiplier > 0 && s.dry_penalty_last_n != 0) {
    auto breakers = breakers_of(model, s);
    if (!breakers) return std::unexpected(std::move(breakers.error()));
    out.dry_breakers = *std::move(breakers);
  }
  return out;
}

}  // namespace

bitnet::result<bitnet::api::taken_generation> bitnet::api::take_generation(
    const bitnet_generation* given) {
  const auto o = take_options(given, bitnet_generation_defaults);
  if (!o) return std::unexpected(o.error());
  const auto s = take_options(o->sampling, bitnet_sampling_defaults, "the options of sampling");
  if (!s) return std::unexpected(s.error());
  if (s->n_dry_breakers > generate::most_breakers)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("dry_breakers has {} texts; at most {} are possible", s->n_dry_breakers,
                            generate::most_breakers));
  for (auto ok : {listed(s->logit_bias, s->n_logit_bias, "logit_bias"),
                  listed(s->dry_breakers, s->n_dry_breakers, "dry_breakers"),
                  listed(o->grammar.data, o->grammar.size, "grammar"),
                  listed(o->json_schema.data, o->json_schema.size, "json_schema"),
                  listed(o->reasoning_begins.data, o->reasoning_begins.size, "reasoning_begins"),
                  listed(o->reasoning_ends.data, o->reasoning_ends.size, "reasoning_ends"),
                  listed(o->stop_strings, o->n_stop_strings, "stop_strings"),
                  listed(o->stop_tokens, o->n_stop_tokens, "stop_tokens")})
    if (!ok) return std::unexpected(ok.error());
  for (uint32_t i = 0; i < o->n_stop_strings; ++i)
    if (auto ok = listed(o->stop_strings[i].data, o->stop_strings[i].size, "a stop string"); !ok)
      return std::unexpected(ok.error());
  for (uint32_t i = 0; i < s->n_dry_breakers; ++i)
    if (auto ok =
            listed(s->dry_breakers[i].data, s->dry_breakers[i].size, "a text of dry_breakers");
        !ok)
      return std::unexpected(ok.error());
  if (o->grammar.size != 0 && o->json_schema.size != 0)
    return fail(BITNET_INVALID_ARGUMENT,
                "a generation has both a grammar and a JSON schema; give one of them");
  if (o->reasoning_budget > 0 && o->reasoning_ends.size == 0)
    return fail(
        BITNET_INVALID_ARGUMENT,
        fmt::format("reasoning_budget is {}, and reasoning_ends is empty; give the text that "
                    "ends the thinking, which bitnet_chat_info has",
                    o->reasoning_budget));
  return taken_generation{*o, *s};
}

bitnet::result<bitnet::generate::options> bitnet::api::generation_options_of(
    bitnet_model& model, const taken_generation& given) {
  const auto& [o, s] = given;
  generate::options g;
  g.max_tokens = o.max_tokens < 0 ? -1 : o.max_tokens;
  auto sampling = sampling_of(model, s);
  if (!sampling) return std::unexpected(sampling.error());
  g.sampling = *std::move(sampling);
  g.ignore_end = s.ignore_eos != 0;
  for (uint32_t i = 0; i < o.n_stop_strings; ++i)
    g.stop_strings.emplace_back(view(o.stop_strings[i]));
  g.stop_tokens.assign(o.stop_tokens, o.stop_tokens + o.n_stop_tokens);
  g.thinking = {.most_tokens = o.reasoning_budget < 0 ? -1 : o.reasoning_budget,
                .is_open = o.in_reasoning != 0,
                .begins = std::string(view(o.reasoning_begins)),
                .ends = std::string(view(o.reasoning_ends))};
  return g;
}

bitnet::result<std::unique_ptr<bitnet::grammar::guide>> bitnet::api::guide_of(
    bitnet_model& model, const bitnet_generation& how) {
  auto rules = how.json_schema.size != 0
                   ? model.forms.find(schema::language::json_schema, view(how.json_schema))
                   : model.forms.find(schema::language::gbnf, view(how.grammar));
  if (!rules) return std::unexpected(std::move(rules.error()));
  std::call_once(model.texts_once,
                 [&] { model.texts = generate::text_tokens(model.model.tokens()); });
  return std::make_unique<grammar::guide>(**rules, model.texts);
}

void bitnet_sampling_defaults(bitnet_sampling* sampling, uint32_t size) {
  const bitnet::sampling::parameters p;
  bitnet_sampling ours{};
#define BITNET_SAMPLING_GIVE(type, name, ...) ours.name = p.name;
  BITNET_SAMPLING_PARAMETERS(BITNET_SAMPLING_GIVE)
#undef BITNET_SAMPLING_GIVE
  ours.dry_breakers = library_breakers();
  ours.n_dry_breakers = std::size(bitnet::generate::default_breakers);
  bitnet::api::give_defaults(ours, sampling, size);
}

void bitnet_generation_defaults(bitnet_generation* options, uint32_t size) {
  bitnet_generation ours{};
  ours.max_tokens = -1;
  ours.reasoning_budget = -1;
  bitnet::api::give_defaults(ours, options, size);
}

bitnet_status bitnet_grammar_check(bitnet_str grammar, bitnet_error* err) {
  return bitnet::api::guarded(err, "bitnet_grammar_check", [&]() -> bitnet::result<void> {
    if (auto ok = bitnet::api::listed(grammar.data, grammar.size, "grammar"); !ok) return ok;
    const auto rules = bitnet::grammar::parse_gbnf(bitnet::api::view(grammar));
    if (!rules) return std::unexpected(rules.error());
    return {};
  });
}

bitnet_status bitnet_json_schema_check(bitnet_str json_schema, bitnet_error* err) {
  return bitnet::api::guarded(err, "bitnet_json_schema_check", [&]() -> bitnet::result<void> {
    if (auto ok = bitnet::api::listed(json_schema.data, json_schema.size, "json_schema"); !ok)
      return ok;
    const auto rules = bitnet::schema::compile(bitnet::api::view(json_schema));
    if (!rules) return std::unexpected(rules.error());
    return {};
  });
}
