#include "openai/api_form.hpp"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "openai/chunks.hpp"

namespace bitnet::host::openai {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// Writes a complete body with response_json().
class body_writer final : public answer_writer {
 public:
  body_writer(const request& from, object_facts about, std::span<const prompt> prompts,
              const bitnet_model* with)
      : from_(from),
        about_(std::move(about)),
        prompts_(prompts),
        answers_(prompts.size(),
                 collected_answer(from.to == endpoint::embeddings ? 1 : from.how.n_choices, with)) {
  }

  [[nodiscard]] parsed<std::string> take(std::size_t prompt, const bitnet_event& e) override {
    answers_[prompt].take(e, from_.how.logprobs);
    return "";
  }
  [[nodiscard]] parsed<std::string> end(const timings& took) override {
    auto body = response_json(from_, about_, answers_, prompts_);
    if (!body) return std::unexpected(body.error());
    if (from_.to != endpoint::embeddings) (*body)["timings"] = took.json();
    return line_of(*body);
  }
  [[nodiscard]] std::string fail(const api_error& why) override { return line_of(error_body(why)); }

 private:
  const request& from_;
  object_facts about_;
  std::span<const prompt> prompts_;
  std::vector<collected_answer> answers_;  // one per prompt
};

parsed<std::unique_ptr<answer_writer>> open_writer(const request& from, object_facts about,
                                                   std::span<const prompt> prompts,
                                                   const bitnet_model* with) {
  if (!from.stream || from.to == endpoint::embeddings)
    return std::make_unique<body_writer>(from, std::move(about), prompts, with);
  auto chunks = chunk_writer::open(from, std::move(about), prompts, with);
  if (!chunks) return std::unexpected(chunks.error());
  return *std::move(chunks);
}

template <endpoint To>
parsed<request> read_body(const json& body, std::string_view text, const model_limits& model,
                          const generation_wish& defaults) {
  return parse_request(To, body, text, model, defaults);
}

ordered_json count_body(std::size_t n_tokens) {
  return {{"input_tokens", n_tokens}};
}

}  // namespace

std::string line_of(const ordered_json& content) {
  return content.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json error_body(const api_error& why) {
  return {{"error", error_json(why)}};
}

const api_form& form_of(endpoint to) {
  static const api_form chat{endpoint::chat, "chatcmpl-", read_body<endpoint::chat>,
                             open_writer,    error_body,  count_body};
  static const api_form completions{endpoint::completions, "cmpl-",
                                    read_body<endpoint::completions>, open_writer, error_body};
  static const api_form embeddings{endpoint::embeddings, "embd-", read_body<endpoint::embeddings>,
                                   open_writer, error_body};
  return to == endpoint::chat ? chat : to == endpoint::completions ? completions : embeddings;
}

}  // namespace bitnet::host::openai
