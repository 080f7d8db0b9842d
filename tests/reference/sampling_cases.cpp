// The sampler, for a judge that is written in another language.
//
//   sampling_cases < CASES > ANSWERS
//
// Each line of CASES is JSON: {"n_vocab", "parameters": {as bitnet_sampling names them}, "biases":
// [[id, bias]], "breakers": [[head, [tail]]], "history": [ids], "rows": [[logit; null is -infinity,
// "nan" and "inf" what they say]]}. The answer of a line: {"steps": [{"token", "needed", "drawn":
// [[id, probability]]}]}, where the token of each step is accepted before the next one, or
// {"error"}.
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sampling/repetition.hpp"
#include "sampling/sampler.hpp"

namespace {

using namespace bitnet;  // NOLINT(google-build-using-namespace): the subject
using nlohmann::json;

sampling::parameters parameters_of(const json& one) {
  sampling::parameters p;
  const json& given = one.at("parameters");
  p.seed = given.value("seed", p.seed);
#define TAKE(type, name, ...) p.name = given.value(#name, p.name);
  BITNET_SAMPLING_PARAMETERS(TAKE)
#undef TAKE
  for (const json& bias : one.at("biases"))
    p.logit_bias.emplace_back(bias.at(0).get<int32_t>(), bias.at(1).get<float>());
  auto breakers = std::make_shared<sampling::breakers>();
  for (const json& breaker : one.at("breakers"))
    breakers->add(breaker.at(0).get<int32_t>(), breaker.at(1).get<std::vector<int32_t>>());
  p.dry_breakers = std::move(breakers);
  return p;
}

float logit_of(const json& value) {
  if (value.is_null()) return -std::numeric_limits<float>::infinity();
  if (!value.is_string()) return value.get<float>();
  return value == "nan" ? std::numeric_limits<float>::quiet_NaN()
                        : std::numeric_limits<float>::infinity();
}

json answer(const json& one) {
  auto sampler = sampling::sampler::make(parameters_of(one), one.at("n_vocab").get<uint32_t>());
  if (!sampler) return {{"error", sampler.error().message}};
  for (const json& token : one.at("history")) sampler->accept(token.get<int32_t>());
  json steps = json::array();
  for (const json& row : one.at("rows")) {
    std::vector<float> logits;
    for (const json& value : row) logits.push_back(logit_of(value));
    const uint32_t needed = sampler->needed();
    const auto token = sampler->sample(logits);
    if (!token) return {{"error", token.error().message}};
    json drawn = json::array();
    for (const auto& [id, value] : sampler->drawn_from()) drawn.push_back({id, value});
    steps.push_back({{"token", *token}, {"needed", needed}, {"drawn", std::move(drawn)}});
    sampler->accept(*token);
  }
  return {{"steps", std::move(steps)}};
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);)
    std::cout << answer(json::parse(line)).dump() << '\n';
}
