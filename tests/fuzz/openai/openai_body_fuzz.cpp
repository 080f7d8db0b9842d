// Any bytes as the body of a request: rejected with a message and the member that is wrong, or a
// request within the bounds of what the library takes.
//
// Input  the first byte chooses the endpoint, the body is behind it.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "openai/body.hpp"
#include "openai/raw_member.hpp"
#include "openai/request.hpp"

namespace {

using namespace bitnet::host::openai;

constexpr model_limits model{.n_vocab = 1000, .n_embedding = 64, .n_context = 512};

void must(bool truth) {
  if (!truth) std::abort();
}

void check_error(const api_error& why) {
  must(!why.message.empty() && why.status >= 400 && why.status < 600);
  must(!error_json(why).dump().empty());  // it throws for what is no UTF-8
}

void check_ids(const token_list& ids) {
  must(!ids.empty());
  for (const bitnet_token id : ids) must(id >= 0 && id < static_cast<int32_t>(model.n_vocab));
}

void check(const request& r) {
  must(r.to == endpoint::chat ? !r.messages.empty() : !r.inputs.empty());
  for (const text_or_ids& one : r.inputs)
    if (const auto* const ids = std::get_if<token_list>(&one)) check_ids(*ids);
  const generation_wish& how = r.how;
  must(how.max_tokens == -1 || how.max_tokens > 0 || (how.max_tokens == 0 && how.echo));
  must(how.best_of == 0 || (how.best_of >= how.n_choices && how.best_of <= 128));
  must(how.grammar.empty() || how.json_schema.empty());
  must(how.has_form() == !how.form_member.empty());
  must(how.n_choices >= 1 && how.n_choices <= 128 && how.n_top_logprobs <= 20);
  must(how.sampling.top_p >= 0 && how.sampling.top_p <= 1 && how.sampling.top_k >= 0);
  must(std::isfinite(how.sampling.temperature) && how.sampling.repeat_penalty > 0);
  for (const bitnet_logit_bias& one : how.biases)
    must(one.token >= 0 && one.token < static_cast<int32_t>(model.n_vocab));
  const token_list prompt = {1};
  must(generation_view(how, prompt).options().n_choices == how.n_choices);
}

// The text of a member is what nlohmann made its value from.
void check_members(const nlohmann::json& body, std::string_view text) {
  int left = 64;  // each takes the whole text
  for (const auto& [name, value] : body.items())
    if (left-- > 0) must(nlohmann::json::parse(raw_member(text, name)) == value);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto body = parse_object(text, "the body");
  if (!body) {
    check_error(body.error());
    return 0;
  }
  check_members(*body, text);
  const auto asked =
      parse_request(static_cast<endpoint>(data[0] % 3), *body, text, model, generation_wish());
  if (asked)
    check(*asked);
  else
    check_error(asked.error());
  return 0;
}
