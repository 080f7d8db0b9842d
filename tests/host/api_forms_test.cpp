// The Responses API and the Messages API: bodies become the chats that they mean, and the events of
// a stream, joined as their SDKs do it, are the whole answer, however the text is cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../demo_model.hpp"
#include "anthropic/writer.hpp"
#include "library/handles.hpp"
#include "responses/writer.hpp"

namespace bitnet::host::openai {
namespace {

using nlohmann::json;

constexpr model_limits limits{.n_vocab = 2048, .n_embedding = 64, .n_context = 4096};

parsed<request> read(const api_form& form, std::string_view text) {
  const auto body = parse_object(text, "the body");
  if (!body) return std::unexpected(body.error());
  return form.read(*body, text, limits, generation_wish());
}

// ---- bodies ------------------------------------------------------------------------------------

struct body_row {
  const char* why;
  const char* body;
  const char* messages;
};

void expect_messages(const api_form& form, const std::vector<body_row>& rows) {
  for (const body_row& row : rows) {
    const auto asked = read(form, row.body);
    ASSERT_TRUE(asked) << row.why << ": " << asked.error().message;
    EXPECT_EQ(json::parse(asked->messages), json::parse(row.messages)) << row.why;
  }
}

TEST(api_forms, items_of_responses_are_messages) {
  expect_messages(
      responses::form(),
      {{"a text", R"({"input": "a"})", R"([{"role": "user", "content": "a"}])"},
       {"instructions come first", R"({"input": "a", "instructions": "b"})",
        R"([{"role": "system", "content": "b"}, {"role": "user", "content": "a"}])"},
       {"parts, and a message without a type",
        R"({"input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}]}]})",
        R"([{"role": "user", "content": [{"type": "text", "text": "a"}]}])"},
       {"thinking, text and two calls are one message of the assistant",
        R"({"input": [{"role": "user", "content": "a"},
           {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]},
           {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]},
           {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
           {"type": "function_call", "call_id": "2", "name": "g", "arguments": "{\"z\":1,\"a\":2}"},
           {"type": "function_call_output", "call_id": "1", "output": "x"},
           {"type": "function_call_output", "call_id": "2", "output": [{"type": "input_text", "text": "y"}]}]})",
        R"([{"role": "user", "content": "a"},
           {"role": "assistant", "content": [{"type": "text", "text": "b"}], "reasoning_content": "t",
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
              {"id": "2", "type": "function", "function": {"name": "g", "arguments": "{\"z\":1,\"a\":2}"}}]},
           {"role": "tool", "tool_call_id": "1", "content": "x"},
           {"role": "tool", "tool_call_id": "2", "content": [{"type": "text", "text": "y"}]}])"}});
}

TEST(api_forms, blocks_of_messages_are_messages) {
  expect_messages(
      anthropic::form(),
      {{"texts",
        R"({"max_tokens": 1, "system": "s", "messages": [{"role": "user", "content": "a"}]})",
        R"([{"role": "system", "content": [{"type": "text", "text": "s"}]},
           {"role": "user", "content": [{"type": "text", "text": "a"}]}])"},
       {"results come before what the user says to them",
        R"({"max_tokens": 1, "messages": [{"role": "user", "content": "a"},
           {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": ""},
             {"type": "text", "text": "b"}, {"type": "tool_use", "id": "1", "name": "f", "input": {}}]},
           {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "is_error": true,
             "content": [{"type": "text", "text": "x"}]}, {"type": "text", "text": "c"}]}]})",
        R"([{"role": "user", "content": [{"type": "text", "text": "a"}]},
           {"role": "assistant", "content": [{"type": "text", "text": "b"}], "reasoning_content": "t",
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": {}}}]},
           {"role": "tool", "tool_call_id": "1",
            "content": [{"type": "text", "text": "Error:"}, {"type": "text", "text": "x"}]},
           {"role": "user", "content": [{"type": "text", "text": "c"}]}])"}});
}

TEST(api_forms, the_order_of_members_is_kept_where_models_read_it) {
  const auto asked = read(anthropic::form(), R"({"max_tokens": 1,
      "tools": [{"name": "f", "input_schema": {"type": "object", "properties": {"z": {}, "a": {}}}}],
      "messages": [{"role": "user", "content": "a"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {"z": 1, "a": 2}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]}]})");
  ASSERT_TRUE(asked) << asked.error().message;
  EXPECT_NE(asked->messages.find(R"({"z": 1, "a": 2})"), std::string::npos) << asked->messages;
  EXPECT_NE(asked->tools.find(R"({"z": {}, "a": {}})"), std::string::npos) << asked->tools;
}

TEST(api_forms, tools_of_other_types_are_left_out_and_named) {
  const char* const body = R"({"input": "a", "tools": [{"type": "web_search"},
      {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": true}]})";
  const auto asked = read(responses::form(), body);
  ASSERT_TRUE(asked) << asked.error().message;
  EXPECT_EQ(json::parse(asked->tools), json::parse(R"([{"type": "function", "function":
                {"name": "f", "parameters": {"type": "object"}, "strict": true}}])"));
  EXPECT_EQ(json::parse("{" + asked->repeated + "}")["ignored_tools"],
            json::parse(R"(["tools[0]: web_search"])"));
}

TEST(api_forms, choices_of_tools_have_the_words_of_chats) {
  const auto choice = [](const api_form& form, const std::string& start, const std::string& value) {
    auto asked = read(form, start + R"(, "tool_choice": )" + value + "}");
    EXPECT_TRUE(asked) << value;
    return asked ? json::parse(asked->tool_choice) : json();
  };
  const json named = {{"type", "function"}, {"function", {{"name", "f"}}}};
  EXPECT_EQ(choice(responses::form(), R"({"input": "a")", R"("required")"), "required");
  EXPECT_EQ(choice(responses::form(), R"({"input": "a")", R"({"type": "function", "name": "f"})"),
            named);
  const std::string start = R"({"max_tokens": 1, "messages": [{"role": "user", "content": "a"}])";
  EXPECT_EQ(choice(anthropic::form(), start, R"({"type": "any"})"), "required");
  EXPECT_EQ(choice(anthropic::form(), start, R"({"type": "none"})"), "none");
  EXPECT_EQ(choice(anthropic::form(), start, R"({"type": "tool", "name": "f"})"), named);
}

struct wrong_row {
  const char* body;
  const char* param;
  const char* code;
};

void expect_wrong(const api_form& form, const std::vector<wrong_row>& rows) {
  for (const wrong_row& row : rows) {
    const auto asked = read(form, row.body);
    ASSERT_FALSE(asked) << row.body;
    EXPECT_EQ(asked.error().param, row.param) << row.body << ": " << asked.error().message;
    EXPECT_EQ(asked.error().code, row.code) << row.body;
    EXPECT_EQ(asked.error().status, 400);
  }
}

TEST(api_forms, wrong_bodies_of_responses_are_rejected_by_member) {
  expect_wrong(
      responses::form(),
      {{R"({})", "input", "invalid_type"},
       {R"({"input": []})", "input", "invalid_type"},
       {R"({"input": ["a"]})", "input[0]", "invalid_type"},
       {R"({"input": [{"role": "owner", "content": "a"}]})", "input[0].role", "invalid_type"},
       {R"({"input": [{"role": "user"}]})", "input[0].content", "invalid_type"},
       {R"({"input": [{"role": "user", "content": [{"type": "input_image"}]}]})",
        "input[0].content[0].type", "unsupported_parameter"},
       {R"({"input": [{"type": "item_reference", "id": "x"}]})", "input[0].type",
        "unsupported_parameter"},
       {R"({"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]})",
        "input[0].call_id", "invalid_type"},
       {R"({"input": "a", "previous_response_id": "x"})", "previous_response_id",
        "unsupported_parameter"},
       {R"({"input": "a", "background": true})", "background", "unsupported_parameter"},
       {R"({"input": "a", "truncation": "auto"})", "truncation", "unsupported_parameter"},
       {R"({"input": "a", "n": 2})", "n", "unsupported_parameter"},
       {R"({"input": "a", "top_logprobs": 2})", "top_logprobs", "invalid_value"},
       {R"({"input": "a", "top_logprobs": 2, "include": ["x"]})", "top_logprobs", "invalid_value"},
       {R"({"input": "a", "top_logprobs": 21, "include": ["message.output_text.logprobs"]})",
        "top_logprobs", "invalid_type"},
       {R"({"input": "a", "include": "message.output_text.logprobs"})", "include", "invalid_type"},
       {R"({"input": "a", "reasoning_budget": -2})", "reasoning_budget", "invalid_type"},
       {R"({"input": "a", "reasoning": {"max_tokens": 0}})", "reasoning.max_tokens",
        "invalid_type"},
       {R"({"input": "a", "max_output_tokens": 0})", "max_output_tokens", "invalid_type"},
       {R"({"input": "a", "reasoning": {"effort": "much"}})", "reasoning.effort", "invalid_type"},
       {R"({"input": "a", "text": {"format": {"type": "json_schema"}}})", "text.format.schema",
        "invalid_type"},
       {R"({"input": "a", "text": {"format": {"type": "json_schema", "schema": {"not": {}}}}})",
        "text.format.schema", "invalid_value"},
       {R"({"input": "a", "tools": [{"type": "function"}]})", "tools[0].name", "invalid_type"},
       {R"({"input": "a", "tools": [1]})", "tools[0]", "invalid_type"},
       {R"({"input": "a", "tool_choice": {"type": "mcp"}})", "tool_choice", "invalid_type"}});
}

TEST(api_forms, wrong_bodies_of_messages_are_rejected_by_member) {
  const std::string start = R"({"max_tokens": 1, "messages": )";
  expect_wrong(
      anthropic::form(),
      {{R"({"messages": [{"role": "user", "content": "a"}]})", "max_tokens", "invalid_type"},
       {R"({"max_tokens": -1, "messages": [{"role": "user", "content": "a"}]})", "max_tokens",
        "invalid_type"},
       {R"({"max_tokens": 1})", "messages", "invalid_type"},
       {R"({"max_tokens": 1, "messages": [1]})", "messages[0]", "invalid_type"},
       {R"({"max_tokens": 1, "messages": [{"role": "system", "content": "a"}]})",
        "messages[0].role", "invalid_type"},
       {R"({"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "image"}]}]})",
        "messages[0].content[0].type", "unsupported_parameter"},
       {R"({"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "tool_result"}]}]})",
        "messages[0].content[0].tool_use_id", "invalid_type"},
       {R"({"max_tokens": 1, "messages": [{"role": "assistant", "content":
           [{"type": "tool_use", "id": "1", "name": "f", "input": "x"}]}]})",
        "messages[0].content[0].input", "invalid_type"},
       {R"({"max_tokens": 1, "messages": [{"role": "assistant", "content": "a"}]})", "messages",
        "unsupported_parameter"},
       {R"({"max_tokens": 1, "system": [{"type": "image"}], "messages": [{"role": "user", "content": "a"}]})",
        "system[0].type", "unsupported_parameter"},
       {R"({"max_tokens": 1, "stop_sequences": [""], "messages": [{"role": "user", "content": "a"}]})",
        "stop_sequences", "invalid_type"},
       {R"({"max_tokens": 1, "thinking": {"type": "much"}, "messages": [{"role": "user", "content": "a"}]})",
        "thinking.type", "invalid_type"},
       {R"({"max_tokens": 1, "thinking": {"type": "enabled", "budget_tokens": 0},
           "messages": [{"role": "user", "content": "a"}]})",
        "thinking.budget_tokens", "invalid_type"},
       {R"({"max_tokens": 1, "tool_choice": {"type": "tool"}, "messages": [{"role": "user", "content": "a"}]})",
        "tool_choice.name", "invalid_type"}});
}

// ---- answers -----------------------------------------------------------------------------------

bitnet_event text_event(std::string_view text) {
  bitnet_event e{};
  e.struct_size = sizeof e;
  e.kind = BITNET_EVENT_TEXT;
  e.token = 1;
  e.text = borrowed(text);
  return e;
}

bitnet_event end_event(uint32_t reason, uint32_t index = BITNET_NONE) {
  bitnet_event e{};
  e.struct_size = sizeof e;
  e.kind = BITNET_EVENT_END;
  e.stop_reason = reason;
  e.stop_index = index;
  e.n_prompt = 9;
  e.n_cached = 4;
  e.n_generated = 7;
  return e;
}

class api_answers : public testing::Test {
 protected:
  void SetUp() override {
    const std::string file = test::demo_model();
    if (file.empty()) GTEST_SKIP() << "no demo model in models/";
    bitnet_model_options options{};
    bitnet_model_defaults(&options, sizeof options);
    options.vocabulary_only = 1;
    library_error err;
    ASSERT_EQ(bitnet_model_open(nullptr, file.c_str(), &options, &model_, &err), BITNET_OK)
        << err.message;
  }
  void TearDown() override { bitnet_model_close(model_); }

  // What a writer gives of this text, in pieces of at least `size` bytes.
  std::string written(const api_form& form, std::string body, bool streams, std::string_view text,
                      std::size_t size, const bitnet_event& last) {
    body.insert(body.size() - 1, streams ? R"(, "stream": true)" : "");
    auto asked = read(form, body);
    EXPECT_TRUE(asked) << asked.error().message;
    auto prompts = prompts_of(*asked, model_, limits, "");
    EXPECT_TRUE(prompts) << prompts.error().message;
    auto writer = form.open(*asked, {"x_1", 17, "m", "fp"}, *prompts, model_);
    EXPECT_TRUE(writer);
    std::string all = (*writer)->begin();
    for (std::size_t at = 0, next = 0; at < text.size(); at = next) {
      next = std::min(at + size, text.size());
      while (next < text.size() && (text[next] & 0xC0) == 0x80) ++next;
      all += (*writer)->take(0, text_event(text.substr(at, next - at))).value();
    }
    all += (*writer)->take(0, last).value();
    return all + (*writer)->end(timings()).value();
  }
  // The objects of a stream, each of whose events has the name of its type.
  static std::vector<json> events_of(std::string_view all) {
    std::vector<json> out;
    while (!all.empty()) {
      const std::size_t line = all.find('\n');
      const std::size_t end = all.find("\n\n");
      EXPECT_TRUE(all.starts_with("event: ") && all.substr(line + 1).starts_with("data: ")) << all;
      out.push_back(json::parse(all.substr(line + 7, end - line - 7)));
      EXPECT_EQ(out.back()["type"], all.substr(7, line - 7));
      all.remove_prefix(end + 2);
    }
    return out;
  }

  bitnet_model* model_ = nullptr;
};

const std::string response_body = R"({"input": "Feed the fox.", "tools": [{"type": "function",
    "name": "feed", "parameters": {"type": "object"}}]})";
const std::string message_body = R"({"max_tokens": 9, "messages": [{"role": "user",
    "content": "Feed the fox."}], "tools": [{"name": "feed", "input_schema": {"type": "object"}}],
    "stop_sequences": ["x", "y"]})";
// Texts that a model writes, whole, odd and hostile.
constexpr const char* texts[] = {
    "",
    "Once, \xC3\xA4 fox.",
    "<think>\nIt is hungry.\n</think>\n\nHere.",
    "<tool_call>\n{\"name\": \"feed\", \"arguments\": {\"z\": 1, \"a\": "
    "\"\\u00e4\"}}\n</tool_call>",
    "First.\n<tool_call>\n{\"name\": \"feed\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n"
    "{\"name\": \"feed\", \"arguments\": {\"n\": 2}}\n</tool_call>",
    "<tool_call>\n{\"name\": \"feed\", \"arg",
    "<tool_call>nonsense</tool_call> behind",
    "data: [DONE]\n\nevent: error\n\n",
};

// As OpenAI's SDK puts items together.
json joined_response(const std::vector<json>& events) {
  json output = json::array();
  for (std::size_t i = 0; i < events.size(); ++i) {
    const json& e = events[i];
    EXPECT_EQ(e["sequence_number"], i);
    const std::string type = e["type"];
    if (type == "response.output_item.added") {
      EXPECT_EQ(e["output_index"], output.size());
      output.push_back(e["item"]);
    } else if (type == "response.content_part.added") {
      output[e["output_index"].get<std::size_t>()]["content"].push_back(e["part"]);
    } else if (type == "response.function_call_arguments.delta") {
      json& text = output[e["output_index"].get<std::size_t>()]["arguments"];
      text = text.get<std::string>() + e["delta"].get<std::string>();
    } else if (type.ends_with(".delta")) {
      json& part = output[e["output_index"].get<std::size_t>()]["content"][0];
      part["text"] = part["text"].get<std::string>() + e["delta"].get<std::string>();
      if (e.contains("logprobs"))
        part["logprobs"].insert(part["logprobs"].end(), e["logprobs"].begin(), e["logprobs"].end());
    } else if (type == "response.output_item.done") {
      json& item = output[e["output_index"].get<std::size_t>()];
      item["status"] = "completed";
      EXPECT_EQ(item, e["item"]);
    }
  }
  return output;
}

TEST_F(api_answers, of_responses_joined_are_the_whole_at_every_cut) {
  for (const std::string text : texts) {
    const json whole = json::parse(
        written(responses::form(), response_body, false, text, 1000, end_event(BITNET_STOP_EOS)));
    EXPECT_EQ(whole["status"], "completed");
    EXPECT_EQ(whole["usage"]["input_tokens_details"]["cached_tokens"], 4);
    for (std::size_t size = 1; size <= text.size() + 1; ++size) {
      const std::vector<json> events = events_of(
          written(responses::form(), response_body, true, text, size, end_event(BITNET_STOP_EOS)));
      EXPECT_EQ(events[0]["type"], "response.created");
      EXPECT_EQ(events[1]["type"], "response.in_progress");
      EXPECT_EQ(events.back()["type"], "response.completed");
      EXPECT_EQ(joined_response(events), whole["output"]) << text << " by " << size;
      EXPECT_EQ(events.back()["response"]["output"], whole["output"]);
      EXPECT_EQ(events.back()["response"]["usage"]["output_tokens"], 7);
    }
  }
}

// Each piece of the text is a token here.
TEST_F(api_answers, of_responses_have_the_log_probabilities_of_their_texts) {
  const std::string body = response_body.substr(0, response_body.size() - 1) +
                           R"(, "include": ["message.output_text.logprobs"], "top_logprobs": 1})";
  const auto output_of = [&](std::string_view text, std::size_t size) {
    const json whole = json::parse(
        written(responses::form(), body, false, text, size, end_event(BITNET_STOP_EOS)));
    EXPECT_EQ(whole["top_logprobs"], 1);
    return whole["output"];
  };
  for (const std::string text : texts)
    for (std::size_t size = 1; size <= text.size() + 1; ++size)
      EXPECT_EQ(joined_response(events_of(written(responses::form(), body, true, text, size,
                                                  end_event(BITNET_STOP_EOS)))),
                output_of(text, size))
          << text << " by " << size;
  const auto n_of = [&](std::string_view text, std::size_t size) {
    std::vector<std::size_t> out;
    for (const json& item : output_of(text, size))
      if (item["type"] == "message") out.push_back(item["content"][0]["logprobs"].size());
    return out;
  };
  using counts = std::vector<std::size_t>;
  EXPECT_EQ(n_of("abcdef", 1), counts{6});
  EXPECT_EQ(n_of("abcdef", 4), counts{2});
  EXPECT_EQ(n_of("<think>\nIt is hungry.\n</think>Here.", 1), counts{5});
  EXPECT_EQ(n_of("<tool_call>\n{\"name\": \"feed\", \"arguments\": {}}\n</tool_call>", 1),
            counts{});
  EXPECT_EQ(n_of("<tool_call>x</tool_call>", 1), counts{24}) << "what is no call is text";
}

// Each piece of the text is a token here.
TEST_F(api_answers, of_messages_count_the_tokens_of_their_thinking) {
  const auto n_of = [this](std::size_t size) {
    const json out = json::parse(written(anthropic::form(), message_body, false,
                                         "<think>\nIt is hungry.\n</think>Here.", size,
                                         end_event(BITNET_STOP_EOS)));
    return out["usage"]["output_tokens_details"]["thinking_tokens"].get<std::size_t>();
  };
  EXPECT_GT(n_of(1), n_of(4));
  EXPECT_GT(n_of(4), n_of(16));
}

// OpenAI's description requires them; clients in typed languages read no response without.
TEST_F(api_answers, of_responses_have_each_member_that_is_required) {
  const std::string body = R"({"input": "a", "presence_penalty": 0.5, "max_output_tokens": 9,
      "prompt_cache_key": "k", "tools": [{"type": "function", "name": "f"}]})";
  const json out =
      json::parse(written(responses::form(), body, false, "a", 1, end_event(BITNET_STOP_EOS)));
  for (const char* name : {"max_tool_calls", "safety_identifier"})
    EXPECT_TRUE(out.contains(name) && out[name].is_null()) << name;
  EXPECT_EQ(out["service_tier"], "default");
  EXPECT_EQ(out["presence_penalty"], 0.5);
  EXPECT_EQ(out["frequency_penalty"], 0);
  EXPECT_EQ(out["top_logprobs"], 0);
  EXPECT_EQ(out["max_output_tokens"], 9);
  EXPECT_EQ(out["prompt_cache_key"], "k");
  EXPECT_EQ(out["tools"], json::parse(R"([{"type": "function", "name": "f", "description": null,
                                           "parameters": null, "strict": null}])"));
  EXPECT_GE(out["completed_at"], out["created_at"]);
  const json cut =
      json::parse(written(responses::form(), body, false, "a", 1, end_event(BITNET_STOP_LENGTH)));
  EXPECT_TRUE(cut["completed_at"].is_null()) << "it was not completed";
}

TEST_F(api_answers, of_responses_say_what_cut_them_off) {
  const auto events = events_of(
      written(responses::form(), response_body, true, "a", 1, end_event(BITNET_STOP_LENGTH)));
  EXPECT_EQ(events.back()["type"], "response.incomplete");
  EXPECT_EQ(events.back()["response"]["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(events.back()["response"]["output"][0]["status"], "incomplete");
}

// As Anthropic's SDK puts blocks together.
json joined_message(const std::vector<json>& events) {
  json out;
  std::vector<std::string> inputs;
  for (const json& e : events) {
    const std::string type = e["type"];
    if (type == "message_start") {
      out = e["message"];
    } else if (type == "content_block_start") {
      EXPECT_EQ(e["index"], out["content"].size());
      out["content"].push_back(e["content_block"]);
      inputs.emplace_back();
    } else if (type == "content_block_delta") {
      json& to = out["content"][e["index"].get<std::size_t>()];
      const json& delta = e["delta"];
      for (const char* name : {"text", "thinking"})
        if (delta.contains(name))
          to[name] = to[name].get<std::string>() + delta[name].get<std::string>();
      if (delta.contains("partial_json")) inputs.back() += delta["partial_json"].get<std::string>();
    } else if (type == "content_block_stop") {
      json& of = out["content"][e["index"].get<std::size_t>()];
      if (of["type"] == "tool_use") of["input"] = json::parse(inputs.back());
    } else if (type == "message_delta") {
      out.update(e["delta"]);
      out["usage"] = e["usage"];
      out["usage"].erase("output_tokens_details");  // its pieces are tokens
    }
  }
  EXPECT_EQ(events.back()["type"], "message_stop");
  return out;
}

TEST_F(api_answers, of_messages_joined_are_the_whole_at_every_cut) {
  for (const std::string text : texts) {
    json whole = json::parse(
        written(anthropic::form(), message_body, false, text, 1000, end_event(BITNET_STOP_EOS)));
    whole.erase("timings");
    const bool calls = text.ends_with("</tool_call>");
    EXPECT_EQ(whole["stop_reason"], calls ? "tool_use" : "end_turn") << text;
    // What the description of Anthropic's API requires; what the server does not have is null.
    for (const char* name : {"container", "stop_details", "stop_sequence"})
      EXPECT_TRUE(whole.contains(name) && whole[name].is_null()) << name;
    const json usage = json::parse(R"({"input_tokens": 5, "cache_creation": null,
        "cache_creation_input_tokens": null, "cache_read_input_tokens": 4, "output_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 0}, "inference_geo": null,
        "server_tool_use": null, "service_tier": null})");
    EXPECT_EQ(whole["usage"], usage);
    whole["usage"].erase("output_tokens_details");
    for (std::size_t size = 1; size <= text.size() + 1; ++size)
      EXPECT_EQ(joined_message(events_of(written(anthropic::form(), message_body, true, text, size,
                                                 end_event(BITNET_STOP_EOS)))),
                whole)
          << text << " by " << size;
  }
}

TEST_F(api_answers, of_messages_say_what_ended_them) {
  const auto reason = [this](uint32_t stop, uint32_t index = BITNET_NONE) {
    const json out = json::parse(
        written(anthropic::form(), message_body, false, "a", 1, end_event(stop, index)));
    return std::pair(out["stop_reason"], out["stop_sequence"]);
  };
  EXPECT_EQ(reason(BITNET_STOP_STRING, 1), std::pair(json("stop_sequence"), json("y")));
  EXPECT_EQ(reason(BITNET_STOP_LENGTH), std::pair(json("max_tokens"), json()));
  EXPECT_EQ(reason(BITNET_STOP_CONTEXT), std::pair(json("model_context_window_exceeded"), json()));
}

TEST(api_forms, errors_have_the_form_of_their_api) {
  const api_error why = too_long("messages", 9, 4).error();
  EXPECT_EQ(json(anthropic::form().error_body(why)),
            json::parse(
                R"({"type": "error", "error": {"type": "invalid_request_error", "param": "messages",
                "code": "context_length_exceeded", "message": "prompt is too long: 9 tokens > 4 maximum"}})"));
  const auto of_responses = responses::form().error_body(why)["error"];
  EXPECT_EQ(of_responses["code"], "context_length_exceeded");
  EXPECT_EQ(of_responses["param"], "input");
}

}  // namespace
}  // namespace bitnet::host::openai
