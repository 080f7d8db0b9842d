// Chats in JSON through the C API, with the demo model: prompts, a demanded call, and answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bitnet/bitnet.h"
#include "demo_session.hpp"

namespace {

constexpr std::string_view question = R"([{"role": "user", "content": "Hello <|eot_id|>"}])";
constexpr std::string_view tools = R"([{"type": "function", "function": {"name": "get_weather",
  "parameters": {"type": "object", "properties": {"days": {"type": "integer"}}}}}])";

bitnet_str str(std::string_view text) {
  return {text.data(), text.size()};
}
std::string text_of(bitnet_str text) {
  return {text.data, text.size};
}

class chat_json : public testing::Test {
 protected:
  void SetUp() override {
    if (bitnet::test::demo_model().empty()) GTEST_SKIP() << "no demo model in models/";
    ASSERT_EQ(demo_.open(), BITNET_OK) << demo_.error.message;
    bitnet_chat_request_defaults(&request_, sizeof request_);
    request_.messages = str(question);
    error_.struct_size = sizeof error_;
    info_.struct_size = sizeof info_;
  }
  void TearDown() override { bitnet_chat_close(chat_); }

  bitnet_status open() {
    bitnet_chat_close(chat_);
    chat_ = nullptr;
    const bitnet_status status = bitnet_chat_open(demo_.model, &request_, &chat_, &error_);
    if (status != BITNET_OK) return status;
    return bitnet_chat_describe(chat_, &info_, &error_);
  }

  bitnet::test::demo_session demo_;
  bitnet_error error_{};
  bitnet_chat_request request_{};
  bitnet_chat_info info_{};
  bitnet_chat* chat_ = nullptr;
};

TEST_F(chat_json, has_the_tokens_of_the_call_without_json) {
  ASSERT_EQ(open(), BITNET_OK) << error_.message;
  const bitnet_message same[] = {{str("user"), str("Hello <|eot_id|>")}};
  std::vector<bitnet_token> ids(256);
  uint64_t count = 0;
  ASSERT_EQ(bitnet_chat_tokenize(demo_.model, nullptr, same, sizeof same[0], 1, ids.data(),
                                 ids.size(), &count, nullptr, &error_),
            BITNET_OK);
  ids.resize(count);
  EXPECT_EQ(std::vector(info_.tokens, info_.tokens + info_.n_tokens), ids);
  EXPECT_EQ(text_of(info_.dialect), "none");
  EXPECT_EQ(info_.grammar.size, 0U);
  EXPECT_EQ(info_.in_reasoning, 0U);
  EXPECT_EQ(text_of(info_.reasoning_ends), "</think>");
}

TEST_F(chat_json, rejects_by_path_and_status) {
  request_.messages = str(R"([{"role": "user", "content": {}}])");
  EXPECT_EQ(open(), BITNET_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message,
               "messages[0].content: expected a text or a list of parts, found an object");
  request_.messages = str(question);
  request_.tools = str(tools);
  request_.tool_choice = str("\"required\"");
  request_.dialect = "none";
  EXPECT_EQ(open(), BITNET_UNSUPPORTED) << error_.message;
  request_.dialect = "hermes";
  request_.n_context = 4;
  EXPECT_EQ(open(), BITNET_CONTEXT_FULL) << error_.message;
  EXPECT_EQ(bitnet_chat_open(demo_.model, nullptr, &chat_, &error_), BITNET_INVALID_ARGUMENT);
}

// The grammar makes the demo model call, and what it wrote is read as that call. It may write on
// within arguments until the context is full; in tags a tool without parameters leaves no choice.
TEST_F(chat_json, a_demanded_call_is_made_and_read) {
  request_.tools = str(R"([{"type": "function", "function": {"name": "get_weather"}}])");
  int n_whole = 0;
  request_.tool_choice = str("\"required\"");
  request_.one_call = 1;
  for (const char* dialect : {"hermes", "tagged", "llama3", "minicpm", "gemma"}) {
    SCOPED_TRACE(dialect);
    request_.dialect = dialect;
    ASSERT_EQ(open(), BITNET_OK) << error_.message;
    EXPECT_EQ(text_of(info_.dialect), dialect);
    std::string text;
    bitnet_generation how;
    bitnet_generation_defaults(&how, sizeof how);
    bitnet_sampling greedy;
    bitnet_sampling_defaults(&greedy, sizeof greedy);
    greedy.temperature = 0;
    how.sampling = &greedy;
    how.max_tokens = 300;
    how.grammar = info_.grammar;
    how.text_user = &text;
    how.text = [](void* to, bitnet_str piece) -> int32_t {
      static_cast<std::string*>(to)->append(piece.data, piece.size);
      return 0;
    };
    bitnet_generation_result done{};
    done.struct_size = sizeof done;
    ASSERT_EQ(bitnet_session_truncate(demo_.session, 0, &error_), BITNET_OK);
    ASSERT_EQ(bitnet_generate(demo_.session, info_.tokens, info_.n_tokens, &how, &done, &error_),
              BITNET_OK)
        << error_.message;
    bitnet_answer* answer = nullptr;
    ASSERT_EQ(bitnet_chat_answer(chat_, "id-", &answer, &error_), BITNET_OK);
    EXPECT_EQ(bitnet_answer_push(answer, str(text), &error_), BITNET_OK);
    EXPECT_EQ(bitnet_answer_finish(answer, &error_), BITNET_OK);
    bitnet_answer_event event{};
    event.struct_size = sizeof event;
    ASSERT_EQ(bitnet_answer_next(answer, &event, &error_), BITNET_OK);
    EXPECT_NE(text.find("get_weather"), std::string::npos) << text;
    if (done.stop_reason == BITNET_STOP_EOS || done.stop_reason == BITNET_STOP_GRAMMAR) {
      ++n_whole;
      EXPECT_EQ(event.kind, BITNET_ANSWER_CALL_BEGIN) << text;
      EXPECT_EQ(text_of(event.id), "id-0");
      EXPECT_EQ(text_of(event.name), "get_weather");
      ASSERT_EQ(bitnet_answer_next(answer, &event, &error_), BITNET_OK);
      EXPECT_TRUE(nlohmann::json::parse(text_of(event.text)).is_object()) << text;
    }
    bitnet_answer_close(answer);
  }
  EXPECT_GE(n_whole, 1);
}

// Tools whose schema cannot be followed are named, or rejected where they are strict.
TEST_F(chat_json, tools_that_are_not_bound_are_named) {
  const std::string odd = R"([{"type": "function", "function": {"name": "odd", "strict": false,
    "parameters": {"type": "object", "properties": {"a": {"not": {}}}}}}])";
  std::string strict = odd;
  strict.replace(strict.find("false"), 5, "true");
  request_.dialect = "hermes";
  request_.tools = str(odd);
  ASSERT_EQ(open(), BITNET_OK) << error_.message;
  EXPECT_EQ(info_.unbound.size, 0U);
  request_.tool_choice = str("\"required\"");
  ASSERT_EQ(open(), BITNET_OK) << error_.message;
  const std::string place = "tools[0].function.parameters#/properties/a/not: ";
  EXPECT_TRUE(text_of(info_.unbound).starts_with("odd: " + place)) << text_of(info_.unbound);
  request_.tools = str(strict);
  EXPECT_EQ(open(), BITNET_UNSUPPORTED);
  EXPECT_TRUE(std::string_view(error_.message).starts_with(place)) << error_.message;
  request_.tools = str(tools);
  ASSERT_EQ(open(), BITNET_OK) << error_.message;
  EXPECT_EQ(info_.unbound.size, 0U);
}

TEST_F(chat_json, an_answer_needs_no_model) {
  bitnet_answer_options options;
  bitnet_answer_defaults(&options, sizeof options);
  options.in_reasoning = 1;
  options.dialect = "tagged";
  options.tools = str(tools);
  options.call_ids = "c";
  bitnet_answer* answer = nullptr;
  ASSERT_EQ(bitnet_answer_open(&options, &answer, &error_), BITNET_OK) << error_.message;
  bitnet_answer_event event{};
  event.struct_size = sizeof event;
  EXPECT_EQ(bitnet_answer_next(answer, &event, &error_), BITNET_NOT_FOUND);
  EXPECT_EQ(bitnet_answer_push(answer, str("hm"), &error_), BITNET_OK);
  EXPECT_EQ(bitnet_answer_in_reasoning(answer), 1);
  EXPECT_EQ(bitnet_answer_push(answer,
                               str("</think>So:<tool_call><function=get_weather><parameter=days>3"
                                   "</parameter></function></tool_call><tool_call>x</tool_call>"),
                               &error_),
            BITNET_OK);
  EXPECT_EQ(bitnet_answer_in_reasoning(answer), 0);
  EXPECT_EQ(bitnet_answer_finish(answer, &error_), BITNET_OK);
  std::vector<uint32_t> kinds;
  while (bitnet_answer_next(answer, &event, &error_) == BITNET_OK) {
    kinds.push_back(event.kind);
    if (event.kind == BITNET_ANSWER_MALFORMED) {
      EXPECT_GT(event.message.size, 0U);
    }
  }
  EXPECT_EQ(kinds, (std::vector<uint32_t>{BITNET_ANSWER_REASONING_BEGIN, BITNET_ANSWER_REASONING,
                                          BITNET_ANSWER_REASONING_END, BITNET_ANSWER_CONTENT,
                                          BITNET_ANSWER_CALL_BEGIN, BITNET_ANSWER_CALL_ARGUMENTS,
                                          BITNET_ANSWER_CALL_END, BITNET_ANSWER_MALFORMED}));
  EXPECT_EQ(bitnet_answer_push(answer, str("more"), &error_), BITNET_INVALID_ARGUMENT);
  std::string text(4096, '\0');
  uint64_t needed = 0;
  ASSERT_EQ(bitnet_answer_message(answer, text.data(), text.size(), &needed, &error_), BITNET_OK);
  text.resize(needed);
  EXPECT_EQ(
      nlohmann::json::parse(text),
      nlohmann::json::parse(
          R"({"role": "assistant", "content": "So:<tool_call>x</tool_call>", "reasoning_content": "hm",
          "tool_calls": [{"id": "c0", "type": "function",
                          "function": {"name": "get_weather", "arguments": "{\"days\": 3}"}}]})"));
  bitnet_answer_close(answer);
  options.dialect = "klingon";
  EXPECT_EQ(bitnet_answer_open(&options, &answer, &error_), BITNET_INVALID_ARGUMENT);
}

}  // namespace
