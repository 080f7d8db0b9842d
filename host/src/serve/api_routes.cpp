#include "serve/api_routes.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "anthropic/writer.hpp"
#include "openai/prompt.hpp"
#include "responses/writer.hpp"
#include "serve/error_answers.hpp"

namespace bitnet::host {
namespace {

using http::exchange_ptr;
using openai::api_form;

// Counts the tokens of a body's prompt; generates nothing.
http::answer count_answer(const api_form& form, const serving& in, const served_model& of,
                          const std::string& text) {
  const auto body = openai::parse_object(text, "the body");
  if (!body) return error_answer_of(form, body.error());
  const model_facts& facts = of.facts();
  openai::model_limits limits = of.texts().limits;
  auto asked = form.read(*body, text, limits, facts.defaults);
  if (!asked) return error_answer_of(form, asked.error());
  limits.n_context = 0;  // too long prompts are counted, too
  const auto prompts =
      openai::prompts_of(*asked, facts.model.get(), limits, in.facts().template_name);
  if (!prompts) return error_answer_of(form, prompts.error());
  return answer_of(form.count_body(prompts->front().ids.size()));
}

auto answering(const served& with, const api_form& form) {
  return [&with, &form](const exchange_ptr& client) { with.engine->answer(form, client); };
}

auto counting(const served& with, const api_form& form) {
  return [&with, &form](const exchange_ptr& client) {
    with.engine->answer_with_model(
        client, [&form](const serving& in, const served_model& of, const std::string& body) {
          return count_answer(form, in, of, body);
        });
  };
}

const std::vector<http::parameter> response_body = {
    {"input", "string", "a text, or a list of items", true},
    {"instructions", "string", "the system prompt"},
    {"model", "string", "as /v1/models has it; any name where there is one model"},
    {"max_output_tokens", "integer", "tokens to generate at most"},
    {"temperature", "number", "0: the most probable token"},
    {"top_p", "number", "the most probable tokens of this sum of probabilities"},
    {"tools", "array", "functions that the model may call"},
    {"tool_choice", "string", "auto, none, required or an object"},
    {"parallel_tool_calls", "boolean", "false: at most one call"},
    {"reasoning", "object", "effort, and max_tokens of thinking"},
    {"include", "array", "message.output_text.logprobs: log probabilities of the text"},
    {"top_logprobs", "integer", "so many likely tokens beside each, up to 20"},
    {"text", "object", "format: the form of the answer"},
    {"metadata", "object", "which the answer repeats"},
    {"stream", "boolean", "answer by events while the text comes"}};

const std::vector<http::parameter> message_body = {
    {"messages", "array", "role and content of each", true},
    {"system", "string", "the system prompt, or a list of its texts"},
    {"model", "string", "as /v1/models has it; any name where there is one model"},
    {"temperature", "number", "0: the most probable token"},
    {"top_p", "number", "the most probable tokens of this sum of probabilities"},
    {"top_k", "integer", "so many of the most probable tokens"},
    {"stop_sequences", "array", "texts that end the answer"},
    {"tools", "array", "what the model may call"},
    {"tool_choice", "object", "type: auto, any, tool or none"},
    {"thinking", "object", "type: enabled, disabled or adaptive; budget_tokens of thinking"},
    {"output_config", "object", "format: the form of the answer"},
    {"stream", "boolean", "answer by events while the text comes"}};

}  // namespace

void add_responses(http::route_table& to, const served& with) {
  to.add({.method = "POST",
          .paths = {"/v1/responses", "/responses"},
          .summary = "The next items of a conversation",
          .handle = answering(with, responses::form()),
          .answer = "Response",
          .event = "ResponseEvent",
          .body = response_body});
  to.add({.method = "POST",
          .paths = {"/v1/responses/input_tokens", "/responses/input_tokens"},
          .summary = "How many tokens the prompt of a response has",
          .handle = counting(with, responses::form()),
          .answer = "TokenCount",
          .body = response_body});
}

void add_messages(http::route_table& to, const served& with) {
  std::vector<http::parameter> body = message_body;
  body.push_back({"max_tokens", "integer", "tokens to generate at most", true});
  to.add({.method = "POST",
          .paths = {"/v1/messages", "/messages"},
          .summary = "The next message of a chat, as Anthropic's API has it",
          .handle = answering(with, anthropic::form()),
          .errors = &anthropic_errors(),
          .answer = "Message",
          .event = "MessageEvent",
          .body = std::move(body)});
  to.add({.method = "POST",
          .paths = {"/v1/messages/count_tokens", "/messages/count_tokens"},
          .summary = "How many tokens the prompt of a message has",
          .handle = counting(with, anthropic::count_form()),
          .errors = &anthropic_errors(),
          .answer = "TokenCount",
          .body = message_body});
}

void add_chat_count(http::route_table& to, const served& with) {
  to.add({.method = "POST",
          .paths = {"/v1/chat/completions/input_tokens", "/chat/completions/input_tokens"},
          .summary = "How many tokens the prompt of a chat has",
          .handle = counting(with, openai::form_of(openai::endpoint::chat)),
          .answer = "TokenCount",
          .body = {{"messages", "array", "role and content of each", true},
                   {"tools", "array", "functions that the model may call"}}});
}

}  // namespace bitnet::host
