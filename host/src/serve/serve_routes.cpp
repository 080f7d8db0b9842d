#include "serve/serve_routes.hpp"

#include <memory>
#include <string>

#include "serve/api_routes.hpp"
#include "serve/backend_routes.hpp"
#include "serve/infill_routes.hpp"
#include "serve/metrics_routes.hpp"
#include "serve/model_routes.hpp"
#include "serve/page_routes.hpp"
#include "serve/preference_route.hpp"
#include "serve/props_route.hpp"
#include "serve/schema_files.hpp"
#include "serve/slots_route.hpp"
#include "serve/text_answers.hpp"

namespace bitnet::host {
namespace {

using http::exchange_ptr;
using parameters = std::vector<http::parameter>;

// ---- the table ---------------------------------------------------------------------------------

parameters with_common(parameters rows) {
  for (const http::parameter& one :
       parameters{{"model", "string", "as /v1/models has it; any name where there is one model"},
                  {"max_tokens", "integer", "tokens to generate at most; -1: until the model ends"},
                  {"temperature", "number", "0: the most probable token"},
                  {"top_p", "number", "the most probable tokens of this sum of probabilities"},
                  {"seed", "integer", "same seed, same text"},
                  {"n", "integer", "answers"},
                  {"stop", "array", "texts that end the answer; or one string"},
                  {"response_format", "object", "the form of the answer"},
                  {"stream", "boolean", "answer by events while the text comes"},
                  {"stream_options", "object", "include_usage"}})
    rows.push_back(one);
  return rows;
}

void add_generation(http::route_table& to, const served& with) {
  using openai::endpoint;
  const auto answering = [&with](endpoint where) {
    return [&with, &form = openai::form_of(where)](const exchange_ptr& client) {
      with.engine->answer(form, client);
    };
  };
  to.add({.method = "POST",
          .paths = {"/v1/chat/completions", "/chat/completions"},
          .summary = "The next message of a chat",
          .handle = answering(endpoint::chat),
          .answer = "ChatCompletion",
          .event = "ChatCompletionChunk",
          .body = with_common({{"messages", "array", "role and content of each", true},
                               {"tools", "array", "functions that the model may call"},
                               {"tool_choice", "string", "auto, none, required or an object"}})});
  to.add({.method = "POST",
          .paths = {"/v1/completions", "/completions"},
          .summary = "The continuation of a text",
          .handle = answering(endpoint::completions),
          .answer = "Completion",
          .event = "CompletionChunk",
          .body = with_common({{"prompt", "string", "a text, its tokens, or several", true},
                               {"suffix", "string", "the text behind the gap to be filled in"}})});
  to.add({.method = "POST",
          .paths = {"/v1/embeddings", "/embeddings"},
          .summary = "Texts as vectors",
          .handle = answering(endpoint::embeddings),
          .answer = "EmbeddingList",
          .body = {{"input", "string", "a text, its tokens, or several", true},
                   {"encoding_format", "string", "float or base64"}}});
}

void add_texts(http::route_table& to, const served& with) {
  const auto making = [&with](http::answer (*make)(const serving&, const served_model&,
                                                   const std::string&)) {
    return
        [&with, make](const exchange_ptr& client) { with.engine->answer_with_model(client, make); };
  };
  to.add({.method = "POST",
          .paths = {"/tokenize", "/v1/tokenize"},
          .summary = "Text to tokens",
          .handle = making(tokens_answer),
          .answer = "Tokens",
          .body = {{"content", "string", "the text", true},
                   {"add_special", "boolean", "the tokens for begin and end, as the model asks"},
                   {"parse_special", "boolean", "names of control tokens are those tokens"},
                   {"with_pieces", "boolean", "the text of each token, too"}}});
  to.add({.method = "POST",
          .paths = {"/detokenize", "/v1/detokenize"},
          .summary = "Tokens to text",
          .handle = making(text_answer),
          .answer = "Text",
          .body = {{"tokens", "array", "token ids", true}}});
  to.add({.method = "POST",
          .paths = {"/apply-template", "/v1/apply-template"},
          .summary = "The prompt of a chat",
          .handle = making(prompt_answer),
          .answer = "Prompt",
          .body = {{"messages", "array", "role and content of each", true}}});
}

void add_service(http::route_table& to, const served& with) {
  using clock = std::chrono::steady_clock;
  to.add(
      {.method = "GET",
       .paths = {"/health", "/v1/health"},
       .summary = "Whether the server works",
       .handle =
           [&with](const exchange_ptr& client) { client->reply(with.life->health(clock::now())); },
       .access = http::access_level::open,
       .answer = "Status"});
  to.add({.method = "GET",
          .paths = {"/ready", "/v1/ready"},
          .summary = "Whether new requests are taken",
          .handle =
              [&with](const exchange_ptr& client) {
                client->reply(with.life->readiness(clock::now()));
              },
          .access = http::access_level::open,
          .answer = "Status"});
}

}  // namespace

http::route_table serve_routes(const served& with) {
  http::route_table out;
  add_generation(out, with);
  add_chat_count(out, with);
  add_responses(out, with);
  add_messages(out, with);
  add_infill(out, with);
  add_texts(out, with);
  add_models(out, with);
  add_props(out, with);
  add_slots(out, with);
  add_backends(out, with);
  add_preference(out, with);
  add_service(out, with);
  add_metrics(out, with);
  add_page(out, with);
  const auto page = std::make_shared<std::string>();
  out.add({.method = "GET",
           .paths = {"/openapi.json"},
           .summary = "This description",
           .handle = [page](const exchange_ptr& client) { client->reply({.body = *page}); },
           .access = http::access_level::open,
           .answer = "OpenApi"});
  *page = http::open_api_of(
      out, {"bitnet", bitnet_version(), "A server of OpenAI's API for ternary language models"},
      schema_files());
  return out;
}

}  // namespace bitnet::host
