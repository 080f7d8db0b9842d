// Bodies of OpenAI's API: what each member becomes, and the error of a wrong one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "openai/answer.hpp"
#include "openai/base64.hpp"
#include "openai/json_grammar.hpp"
#include "openai/raw_member.hpp"
#include "openai/request.hpp"

namespace bitnet::host::openai {
namespace {

using nlohmann::json;

constexpr model_limits model{.n_vocab = 1000, .n_embedding = 64, .n_context = 512};

parsed<request> read(endpoint to, std::string_view text) {
  auto body = parse_object(text, "the body");
  if (!body) return std::unexpected(body.error());
  return parse_request(to, *body, text, model, generation_wish());
}

TEST(openai_request, reads_what_a_chat_asks_for) {
  const auto r = read(endpoint::chat, R"({
    "model": "m", "messages": [
      {"role": "developer", "content": "Be kind."},
      {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
    "max_tokens": 3, "max_completion_tokens": 8, "temperature": 0, "top_p": 0.5, "top_k": 7,
    "min_p": 0.25, "repeat_penalty": 1.5, "presence_penalty": -1, "frequency_penalty": 2, "n": 2,
    "repeat_last_n": -1, "stop": ["x", "y"], "seed": 5, "logit_bias": {"17": -100},
    "logprobs": true, "top_logprobs": 3, "stream": false, "user": "ignored", "unknown": {},
    "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "required",
    "parallel_tool_calls": false, "chat_template_kwargs": {"enable_thinking": false}})");
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->model, "m");
  EXPECT_EQ(json::parse(r->messages).size(), 2U) << "the library reads them";
  EXPECT_EQ(json::parse(r->tools)[0]["type"], "function");
  EXPECT_EQ(r->tool_choice, "\"required\"");
  EXPECT_EQ(r->template_arguments, R"({"enable_thinking": false})") << "as it is written";
  EXPECT_TRUE(r->one_call);
  const generation_wish& how = r->how;
  EXPECT_EQ(how.max_tokens, 8) << "the newer member counts";
  EXPECT_EQ(how.sampling.temperature, 0);
  EXPECT_EQ(how.sampling.top_p, 0.5F);
  EXPECT_EQ(how.sampling.top_k, 7);
  EXPECT_EQ(how.sampling.min_p, 0.25F);
  EXPECT_EQ(how.sampling.repeat_penalty, 1.5F);
  EXPECT_EQ(how.sampling.presence_penalty, -1);
  EXPECT_EQ(how.sampling.frequency_penalty, 2);
  EXPECT_EQ(how.sampling.repeat_last_n, -1);
  EXPECT_EQ(how.n_choices, 2U);
  EXPECT_EQ(how.stops, (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(how.has_seed);
  EXPECT_EQ(how.sampling.seed, 5U);
  ASSERT_EQ(how.biases.size(), 1U);
  EXPECT_EQ(how.biases[0].token, 17);
  EXPECT_EQ(how.biases[0].bias, -100);
  EXPECT_TRUE(how.logprobs);
  EXPECT_EQ(how.n_top_logprobs, 3U);
}

TEST(openai_request, leaves_defaults_where_members_are_absent_or_null) {
  const auto r = read(endpoint::completions,
                      R"({"prompt": "a", "temperature": null, "seed": null, "stop": null})");
  ASSERT_TRUE(r) << r.error().message;
  const generation_wish defaults;
  EXPECT_EQ(r->how.sampling.temperature, defaults.sampling.temperature);
  EXPECT_EQ(r->how.max_tokens, -1);
  EXPECT_EQ(r->how.n_choices, 1U);
  EXPECT_FALSE(r->how.has_seed);
  EXPECT_TRUE(r->how.stops.empty());
}

TEST(openai_request, takes_texts_and_tokens) {
  const std::tuple<const char*, std::vector<text_or_ids>> rows[] = {
      {R"({"prompt": "a"})", {"a"}},
      {R"({"prompt": ["a", "b"]})", {"a", "b"}},
      {R"({"prompt": [1, 2]})", {token_list{1, 2}}},
      {R"({"prompt": [[1, 2], [3]]})", {token_list{1, 2}, token_list{3}}}};
  for (const auto& [text, want] : rows) {
    const auto r = read(endpoint::completions, text);
    ASSERT_TRUE(r) << text << ": " << r.error().message;
    EXPECT_EQ(r->inputs, want) << text;
  }
}

TEST(openai_request, folds_seeds_of_64_bits) {
  const std::tuple<const char*, bool, uint32_t> rows[] = {
      {"-1", false, 0},  // llama-server's random one
      {"4294967295", true, 4294967295U},
      {"4294967296", true, 0},
      {"-2", true, 4294967294U}};
  for (const auto& [seed, has, want] : rows) {
    const std::string body = std::string(R"({"prompt": "a", "seed": )") + seed + "}";
    const auto r = read(endpoint::completions, body.c_str());
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_EQ(r->how.has_seed, has) << seed;
    if (has) {
      EXPECT_EQ(r->how.sampling.seed, want) << seed;
    }
  }
}

// The library gets a schema as it was written: the order of its members is that of the answer's.
TEST(openai_request, takes_schemas_as_they_are_written) {
  const char* const schema = R"({"properties": {"z": {}, "a" : {}},  "type": "object"})";
  const std::pair<std::string, const char*> rows[] = {
      {R"("json_schema": )" + std::string(schema), "json_schema"},
      {R"("response_format": {"schema": )" + std::string(schema) + R"(, "type": "json_object"})",
       "response_format"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"strict": true, "schema": )" +
           std::string(schema) + R"(, "name": "n"}})",
       "response_format"}};
  for (const auto& [member, by] : rows) {
    const std::string body = R"({"prompt": "a", )" + member + "}";
    const auto r = read(endpoint::completions, body.c_str());
    ASSERT_TRUE(r) << body << r.error().message;
    EXPECT_EQ(r->how.json_schema, schema) << body;
    EXPECT_EQ(r->how.form_member, by);
    const token_list ids = {1};
    const generation_view view(r->how, ids);
    const bitnet_str given = view.options().generation->json_schema;
    EXPECT_EQ(std::string_view(given.data, given.size), schema);
  }
  const auto plain = read(endpoint::completions, R"({"prompt": "a", "response_format":
      {"type": "json_object", "schema": {}}, "grammar": ""})");
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->how.grammar, json_grammar) << "a schema that says nothing";
}

TEST(openai_request, takes_every_sampler) {
  const auto r = read(endpoint::completions, R"({"prompt": "a", "typical_p": 0.5, "top_n_sigma": 2,
      "xtc_probability": 0.25, "xtc_threshold": 0.125, "dynatemp_range": 0.5,
      "dynatemp_exponent": 2, "mirostat": 2, "mirostat_tau": 3, "mirostat_eta": 0.25,
      "dry_multiplier": 0.75, "dry_base": 2.5, "dry_allowed_length": 3, "dry_penalty_last_n": -1,
      "dry_sequence_breakers": ["\n", "\u00e9"]})");
  ASSERT_TRUE(r) << r.error().message;
  const token_list ids = {1};
  const generation_view view(r->how, ids);
  const bitnet_sampling& s = *view.options().generation->sampling;
  EXPECT_EQ(s.typical_p, 0.5F);
  EXPECT_EQ(s.top_n_sigma, 2);
  EXPECT_EQ(s.xtc_probability, 0.25F);
  EXPECT_EQ(s.xtc_threshold, 0.125F);
  EXPECT_EQ(s.dynatemp_range, 0.5F);
  EXPECT_EQ(s.dynatemp_exponent, 2);
  EXPECT_EQ(s.mirostat, 2);
  EXPECT_EQ(s.mirostat_tau, 3);
  EXPECT_EQ(s.mirostat_eta, 0.25F);
  EXPECT_EQ(s.dry_multiplier, 0.75F);
  EXPECT_EQ(s.dry_base, 2.5F);
  EXPECT_EQ(s.dry_allowed_length, 3);
  EXPECT_EQ(s.dry_penalty_last_n, -1);
  ASSERT_EQ(s.n_dry_breakers, 2U);
  EXPECT_EQ(std::string_view(s.dry_breakers[1].data, s.dry_breakers[1].size), "\u00e9");
  const auto none = read(endpoint::completions, R"({"prompt": "a", "dry_sequence_breakers": []})");
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_EQ(generation_view(none->how, ids).options().generation->sampling->n_dry_breakers, 0U);
  const generation_wish by_default;
  EXPECT_EQ(generation_view(by_default, ids).options().generation->sampling->n_dry_breakers, 4U);
}

TEST(openai_request, scores_prompts_and_chooses_the_best) {
  const token_list ids = {1};
  const auto r = read(endpoint::completions, R"({"prompt": "a", "echo": true, "logprobs": 2,
      "max_tokens": 0, "n": 2, "best_of": 4})");
  ASSERT_TRUE(r) << r.error().message;
  const generation_view view(r->how, ids);
  const bitnet_request_options& o = view.options();
  EXPECT_EQ(o.generation->max_tokens, 0);
  EXPECT_EQ(std::tuple(o.n_choices, o.best_of), std::tuple(2U, 4U));
  EXPECT_EQ(std::tuple(o.prompt_logprobs, o.n_top_prompt_logprobs), std::tuple(1U, 2U));
  const auto plain = read(endpoint::completions, R"({"prompt": "a", "echo": true})");
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(generation_view(plain->how, ids).options().prompt_logprobs, 0U);
}

TEST(raw_member, is_what_nlohmann_reads) {
  const char* const texts[] = {R"({})",
                               R"({"a":1})",
                               " {\n\"b\" : [1, {\"a\": 2}] , \"a\":\"}\\\"]\" } ",
                               R"({"a":{"a":[]},"a":-1.5e3})",
                               R"({"\u0061": true, "b":"a"})",
                               R"({"a":""})",
                               "\xEF\xBB\xBF{\"a\":null}",
                               R"({"b":{"a":1},"\"a\"":2})"};
  for (const char* const text : texts) {
    const json whole = json::parse(text);
    const std::string_view found = raw_member(text, "a");
    ASSERT_EQ(found.empty(), !whole.contains("a")) << text;
    if (!found.empty()) {
      EXPECT_EQ(json::parse(found), whole["a"]) << text;
    }
  }
  for (const char* const text : {"", "{", R"({"a)", R"({"a")", R"({"a":)", R"({"a\)", "}", "[1]"})
    EXPECT_EQ(raw_member(text, "a"), "") << text;
}

struct wrong {
  endpoint to;
  const char* body;
  const char* param;
  const char* code;
  const char* part;  // of the message
};

constexpr endpoint chat = endpoint::chat;
constexpr endpoint completion = endpoint::completions;
constexpr endpoint embed = endpoint::embeddings;

void expect_wrong(std::span<const wrong> rows) {
  for (const wrong& one : rows) {
    const auto r = read(one.to, one.body);
    ASSERT_FALSE(r) << one.body;
    EXPECT_EQ(r.error().param, one.param) << one.body;
    EXPECT_EQ(r.error().code, one.code) << one.body;
    EXPECT_NE(r.error().message.find(one.part), std::string::npos) << r.error().message;
    EXPECT_EQ(r.error().status, 400);
  }
}

TEST(openai_request, has_no_zero_byte) {
  using namespace std::literals;
  const auto r = read(completion, "{\"prompt\": \"a\"}\0x"sv);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().message, "the body is no JSON: it has a zero byte at 15");
}

TEST(openai_request, names_the_member_that_is_wrong) {
  const wrong rows[] = {
      {completion, "[1]", "", "invalid_json", "expects a JSON object, found an array"},
      {completion, "{", "", "invalid_json", "no JSON"},
      {completion, "{}", "prompt", "invalid_type", "found nothing"},
      {completion, R"({"prompt": 5})", "prompt", "invalid_type", "found 5"},
      {completion, R"({"prompt": []})", "prompt", "invalid_type", "an empty array"},
      {completion, R"({"prompt": [1, "a"]})", "prompt[1]", "invalid_type",
       "token id from 0 to 999"},
      {completion, R"({"prompt": [[1], [1000]]})", "prompt[1][0]", "invalid_type", "found 1000"},
      {completion, R"({"prompt": "a", "temperature": "hot"})", "temperature", "invalid_type",
       "\"hot\""},
      {completion, R"({"prompt": "a", "top_p": 2})", "top_p", "invalid_type", "from 0 to 1"},
      {completion, R"({"prompt": "a", "max_tokens": 0})", "max_tokens", "invalid_type",
       "at least 1"},
      {completion, R"({"prompt": "a", "max_tokens": 1.5})", "max_tokens", "invalid_type",
       "whole number"},
      {completion, R"({"prompt": "a", "n": 0})", "n", "invalid_type", "from 1 to 128"},
      {completion, R"({"prompt": "a", "seed": 1.5})", "seed", "invalid_type", "whole number"},
      {completion, R"({"prompt": "a", "stop": [""]})", "stop", "invalid_type", "not empty"},
      {completion, R"({"prompt": "a", "logit_bias": {"x": 1}})", "logit_bias", "invalid_type",
       "ids"},
      {completion, R"({"prompt": "a", "logit_bias": {"1000": 1}})", "logit_bias", "invalid_type",
       "999"},
      {completion, R"({"prompt": "a", "logprobs": 21})", "logprobs", "invalid_type",
       "from 0 to 20"},
      {completion, R"({"prompt": "a", "grammar": "root ::= ("})", "grammar", "invalid_value",
       "grammar"},
      {completion, R"({"prompt": "a", "echo": 1})", "echo", "invalid_type", "true or false"},
      {chat, R"({"messages": ["a"], "echo": true, "max_tokens": 0})", "max_tokens", "invalid_type",
       "with 'echo'"},
      {completion, R"({"prompt": "a", "suffix": "b", "echo": true})", "suffix",
       "unsupported_parameter", "'echo'"},
      {completion, R"({"prompt": "a", "best_of": 2, "n": 3})", "best_of", "invalid_value",
       "'n' is 3"},
      {completion, R"({"prompt": "a", "best_of": 129})", "best_of", "invalid_type", "1 to 128"},
      {completion, R"({"prompt": "a", "dry_sequence_breakers": "\n"})", "dry_sequence_breakers",
       "invalid_type", "an array"},
      {completion, R"({"prompt": "a", "dry_sequence_breakers": ["a", ""]})",
       "dry_sequence_breakers", "invalid_type", "1 to 40 bytes"},
      {completion, R"({"prompt": "a", "mirostat": 3})", "mirostat", "invalid_type", "0 to 2"},
      {completion, R"({"prompt": "a", "typical_p": -1})", "typical_p", "invalid_type", "0 to 1"},
      {chat, R"({"messages": []})", "messages", "invalid_type", "at least one"},
      {chat, R"({"messages": {}})", "messages", "invalid_type", "an array"},
      {chat, R"({"messages": ["a"], "tools": {}})", "tools", "invalid_type", "an array"},
      {chat, R"({"messages": ["a"], "functions": [{}]})", "functions", "unsupported_parameter",
       "'tools'"},
      {chat, R"({"messages": [{"role": "user", "content": "a"}], "top_logprobs": 1})",
       "top_logprobs", "invalid_value", "needs 'logprobs'"},
      {chat, R"({"messages": [{"role": "user", "content": "a"}],
                 "response_format": {"type": "xml"}})",
       "response_format.type", "invalid_type", "json_object"},
      {embed, R"({"input": ""})", "input", "invalid_value", "empty"},
      {embed, R"({"input": "a", "encoding_format": "hex"})", "encoding_format", "invalid_type",
       "base64"},
      {embed, R"({"input": "a", "dimensions": 32})", "dimensions", "unsupported_parameter", "64"}};
  expect_wrong(rows);
}

TEST(openai_request, names_the_place_in_a_schema_and_both_forms) {
  const wrong rows[] = {
      {completion, R"({"prompt": "a", "json_schema": {"minimun": 3}})", "json_schema",
       "invalid_value", "#/minimun"},
      {completion, R"({"prompt": "a", "json_schema": "object"})", "json_schema", "invalid_type",
       "a JSON schema"},
      {completion, R"({"prompt": "a", "json_schema": {}, "grammar": "root ::= \"a\""})",
       "json_schema", "invalid_value", "'grammar' and 'json_schema'"},
      {completion, R"({"prompt": "a", "json_schema": {}, "response_format":
                       {"type": "json_object"}})",
       "response_format", "invalid_value", "'json_schema' and 'response_format'"},
      {chat, R"({"messages": ["a"], "response_format": {"type": "json_object",
                 "schema": {"properties": {"a": {"not": {}}}}}})",
       "response_format.schema", "invalid_value", "#/properties/a/not"},
      {chat, R"({"messages": ["a"], "response_format": {"type": "json_schema", "json_schema":
                 {"name": "n", "schema": {"type": "integer", "if": {}}}}})",
       "response_format.json_schema.schema", "invalid_value", "#/if"},
      {chat, R"({"messages": ["a"], "response_format": {"type": "json_schema", "json_schema":
                 {"name": "n"}}})",
       "response_format.json_schema.schema", "invalid_type", "found nothing"},
      {chat, R"({"messages": ["a"], "response_format": {"type": "json_schema", "schema": {}}})",
       "response_format.json_schema", "invalid_type", "an object with 'schema'"}};
  expect_wrong(rows);
}

TEST(openai_request, rejects_what_is_too_deep_before_it_is_built) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const auto r = parse_object("{\"a\":" + deep + "}", "the body");
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().message.find("128"), std::string::npos);
  EXPECT_TRUE(parse_object(R"({"a": "[[[[\"[[["})", "the body")) << "in a string it is text";
}

TEST(openai_request, knows_its_urls) {
  EXPECT_EQ(endpoint_of("/v1/chat/completions"), endpoint::chat);
  EXPECT_EQ(endpoint_of("/completions"), endpoint::completions);
  EXPECT_EQ(endpoint_of("/v1/embeddings"), endpoint::embeddings);
  for (const char* other : {"", "/", "/v1/", "/v1/v1/embeddings", "/v1/responses", "embeddings"})
    EXPECT_FALSE(endpoint_of(other)) << other;
}

TEST(openai_error, has_the_shape_of_the_api) {
  const auto why = too_long("messages", 600, 512).error();
  const json shape = json::parse(error_json(why).dump());
  EXPECT_EQ(shape["code"], "context_length_exceeded");
  EXPECT_EQ(shape["type"], "invalid_request_error");
  EXPECT_EQ(shape["param"], "messages");
  EXPECT_EQ(shape["n_prompt_tokens"], 600);
  EXPECT_EQ(shape["n_ctx"], 512);
  EXPECT_EQ(why.message.find("This model's maximum context length is "), 0u)
      << "clients look for it";
  EXPECT_NE(why.message.find("600"), std::string::npos);
  EXPECT_NE(why.message.find("512"), std::string::npos);
  EXPECT_EQ(error_json(error_of(BITNET_DEVICE_LOST, "gone"))["type"], "server_error");
  EXPECT_FALSE(is_of_request(BITNET_DEVICE_LOST)) << "it would be answered after a restart";
}

bitnet_event event_of(uint32_t kind, uint32_t choice, const char* text, uint32_t stop) {
  bitnet_event e{};
  e.struct_size = sizeof e;
  e.kind = kind;
  e.choice = choice;
  e.token = -1;
  e.text = {text, std::char_traits<char>::length(text)};
  e.stop_reason = stop;
  e.n_prompt = 4;
  e.n_cached = 1;
  e.n_generated = 3;
  return e;
}

// With a prompt that was plain text.
json response_of(const request& asked, const collected_answer& answer, const prompt& of = {}) {
  const auto out =
      response_json(asked, {"cmpl-1", 7, "m", "fp_1"}, std::span(&answer, 1), std::span(&of, 1));
  return out ? json::parse(out->dump()) : json();
}

TEST(openai_answer, collects_choices_until_all_have_ended) {
  collected_answer both(2, nullptr);
  both.take(event_of(BITNET_EVENT_TEXT, 1, "b", 0), false);
  both.take(event_of(BITNET_EVENT_TEXT, 0, "a", 0), false);
  both.take(event_of(BITNET_EVENT_TEXT, 0, "c", 0), false);
  both.take(event_of(BITNET_EVENT_END, 0, "", BITNET_STOP_CONTEXT), false);
  EXPECT_FALSE(both.ended());
  both.take(event_of(BITNET_EVENT_END, 1, "", BITNET_STOP_EOS), false);
  EXPECT_TRUE(both.ended());
  request asked;
  asked.to = endpoint::completions;
  const json out = response_of(asked, both);
  EXPECT_EQ(out["object"], "text_completion");
  EXPECT_EQ(out["choices"][0]["text"], "ac");
  EXPECT_EQ(out["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(out["choices"][1]["text"], "b");
  EXPECT_EQ(out["choices"][1]["finish_reason"], "stop");
  EXPECT_EQ(out["usage"]["prompt_tokens"], 4) << "the prompt is computed once";
  EXPECT_EQ(out["usage"]["completion_tokens"], 6);
  EXPECT_EQ(out["usage"]["total_tokens"], 10);
  EXPECT_EQ(out["usage"]["prompt_tokens_details"]["cached_tokens"], 1);
}

TEST(openai_answer, begins_with_the_prompt_that_was_echoed) {
  const bitnet_logprob top{7, -0.5F};
  bitnet_event first = event_of(BITNET_EVENT_PROMPT, 0, "", 0);
  bitnet_event second = event_of(BITNET_EVENT_PROMPT, 0, "a", 0);
  first.token = second.token = 7;
  second.logprob = -2;
  second.top = &top;
  second.n_top = 1;
  collected_answer both(2, nullptr);
  both.take(first, true);
  both.take(second, true);
  for (const uint32_t i : {0U, 1U}) {
    bitnet_event text = event_of(BITNET_EVENT_TEXT, i, "b", 0);
    text.token = 8;
    text.logprob = -1;
    both.take(text, true);
    both.take(event_of(BITNET_EVENT_END, i, "", BITNET_STOP_LENGTH), true);
  }
  request asked;
  asked.to = endpoint::completions;
  asked.how.logprobs = asked.how.echo = true;
  const json out = response_of(asked, both, {{}, nullptr, "\u00e9a", ""});
  ASSERT_EQ(out["choices"].size(), 2U);
  for (const json& choice : out["choices"]) {
    EXPECT_EQ(choice["text"], "\u00e9ab");
    const json& scores = choice["logprobs"];
    EXPECT_EQ(scores["token_logprobs"], json({nullptr, -2, -1}))
        << "nothing comes before the first";
    EXPECT_TRUE(scores["top_logprobs"][0].is_null());
    EXPECT_EQ(scores["top_logprobs"][1].size(), 1U);
    EXPECT_EQ(scores["text_offset"].back(), 2) << "characters of the prompt, not bytes";
  }
}

TEST(openai_answer, of_a_form_is_its_text) {
  collected_answer one(1, nullptr);
  one.take(event_of(BITNET_EVENT_TEXT, 0, R"({"a": "<think>"})", 0), false);
  one.take(event_of(BITNET_EVENT_END, 0, "", BITNET_STOP_GRAMMAR), false);
  const json out = response_of({}, one);
  EXPECT_EQ(out["object"], "chat.completion");
  EXPECT_EQ(
      out["choices"][0]["message"],
      json({{"role", "assistant"}, {"content", R"({"a": "<think>"})"}, {"refusal", nullptr}}));
  EXPECT_EQ(out["choices"][0]["finish_reason"], "stop");
}

TEST(openai_answer, gives_embeddings_with_every_bit) {
  const float numbers[] = {0.1F, -0.25F, 1.0F / 3};
  bitnet_event e = event_of(BITNET_EVENT_END, 0, "", BITNET_STOP_LENGTH);
  e.embedding = numbers;
  e.n_embedding = 3;
  e.n_generated = 0;
  collected_answer one(1, nullptr);
  one.take(e, false);
  request asked;
  asked.to = endpoint::embeddings;
  for (const bool base : {false, true}) {
    asked.base64 = base;
    const json out = response_of(asked, one);
    const json& row = out["data"][0]["embedding"];
    EXPECT_EQ(out["usage"], json({{"prompt_tokens", 4}, {"total_tokens", 4}}));
    if (base) {
      EXPECT_EQ(row, "zczMPQAAgL6rqqo+");  // Python's base64 of struct.pack("<3f", ...)
    } else {
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(row[i].get<float>(), numbers[i]);
      EXPECT_EQ(row[0].dump(), "0.1") << "no digits beyond the float's own";
    }
  }
}

TEST(base64, is_that_of_rfc_4648) {
  const std::pair<std::string_view, const char*> rows[] = {
      {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}};
  for (const auto& [plain, want] : rows)
    EXPECT_EQ(base64(std::as_bytes(std::span(plain.data(), plain.size()))), want);
}

TEST(json_grammar, is_that_of_the_page) {
  const char* const source = std::getenv("BITNET_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  std::ifstream file(std::string(source) + "/docs/how-to/answer-in-a-form/json.gbnf");
  std::stringstream text;
  for (std::string line; std::getline(file, line);)
    if (!line.starts_with('#')) text << line << '\n';
  EXPECT_EQ(text.str(), json_grammar);
}

}  // namespace
}  // namespace bitnet::host::openai
