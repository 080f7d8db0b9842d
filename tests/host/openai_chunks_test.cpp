// The chunks of a stream: in the order of OpenAI's API, and joined the message of the whole answer,
// however its text is cut.
#include "openai/chunks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../demo_model.hpp"
#include "openai/request.hpp"

namespace bitnet::host::openai {
namespace {

using nlohmann::json;

constexpr std::string_view chat = R"({
  "messages": [{"role": "user", "content": "Feed the fox."}], "stream": true,
  "stream_options": {"include_usage": true},
  "tools": [{"type": "function", "function": {"name": "feed", "parameters": {"type": "object"}}}]})";

bitnet_event text_event(std::string_view text) {
  bitnet_event e{};
  e.struct_size = sizeof e;
  e.kind = BITNET_EVENT_TEXT;
  e.token = 1;
  e.text = borrowed(text);
  return e;
}

bitnet_event end_event() {
  bitnet_event e{};
  e.struct_size = sizeof e;
  e.kind = BITNET_EVENT_END;
  e.stop_reason = BITNET_STOP_EOS;
  e.n_prompt = 9;
  e.n_cached = 4;
  e.n_generated = 7;
  e.prompt_ns = 5'000'000;
  e.generate_ns = 14'000'000;
  return e;
}

class chunks : public testing::Test {
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
    const auto body = parse_object(chat, "the body");
    ASSERT_TRUE(body);
    auto asked = parse_request(endpoint::chat, *body, chat, limits_, generation_wish());
    ASSERT_TRUE(asked) << asked.error().message;
    asked_ = *std::move(asked);
    auto prompts = prompts_of(asked_, model_, limits_, "");
    ASSERT_TRUE(prompts) << prompts.error().message;
    prompts_ = *std::move(prompts);
  }
  void TearDown() override {
    prompts_.clear();
    bitnet_model_close(model_);
  }

  // The objects of a stream of this text, in pieces of at least `size` bytes.
  std::vector<json> stream(std::string_view text, std::size_t size) {
    auto writer = chunk_writer::open(asked_, about_, prompts_, model_);
    EXPECT_TRUE(writer);
    std::string all = (*writer)->begin();
    for (std::size_t at = 0, next = 0; at < text.size(); at = next) {
      next = std::min(at + size, text.size());
      while (next < text.size() && (text[next] & 0xC0) == 0x80)
        ++next;  // events have whole characters
      all += (*writer)->take(0, text_event(text.substr(at, next - at))).value();
    }
    all += (*writer)->take(0, end_event()).value();
    timings took;
    took.take_end(end_event());
    all += (*writer)->end(took).value();
    return objects_of(all);
  }
  static std::vector<json> objects_of(std::string_view all) {
    std::vector<json> out;
    constexpr std::string_view last = "data: [DONE]\n\n";
    EXPECT_TRUE(all.ends_with(last));
    all.remove_suffix(last.size());
    while (!all.empty()) {
      const std::size_t end = all.find("\n\n");
      EXPECT_TRUE(all.starts_with("data: ")) << all;
      out.push_back(json::parse(all.substr(6, end - 6)));
      all.remove_prefix(end + 2);
    }
    return out;
  }
  // The choice of the answer without a stream.
  json whole(std::string_view text) {
    std::vector<collected_answer> answers(1, collected_answer(1, model_));
    answers[0].take(text_event(text), false);
    answers[0].take(end_event(), false);
    return response_json(asked_, about_, answers, prompts_).value();
  }

  const model_limits limits_{.n_vocab = 2048, .n_embedding = 64, .n_context = 512};
  const object_facts about_{"chatcmpl-1", 17, "m", "fp"};
  bitnet_model* model_ = nullptr;
  request asked_;
  std::vector<prompt> prompts_;
};

// What the deltas say, put together as a client does.
json joined(const std::vector<json>& all) {
  json out = {
      {"role", ""}, {"content", ""}, {"reasoning_content", ""}, {"tool_calls", json::array()}};
  for (const json& chunk : all) {
    if (chunk["choices"].empty()) continue;
    const json& delta = chunk["choices"][0]["delta"];
    for (const char* key : {"role", "content", "reasoning_content"})
      out[key] = out[key].get<std::string>() + delta.value(key, "");
    for (const json& piece : delta.value("tool_calls", json::array())) {
      json& calls = out["tool_calls"];
      if (piece["index"] == calls.size()) {
        calls.push_back(piece);
        calls.back().erase("index");
        continue;
      }
      json& text = calls[piece["index"].get<std::size_t>()]["function"]["arguments"];
      text = text.get<std::string>() + piece["function"]["arguments"].get<std::string>();
    }
  }
  return out;
}

TEST_F(chunks, joined_are_the_whole_message_however_the_text_is_cut) {
  for (const std::string_view text :
       {"<think>It is hungry: \xc3\xa4.</think>I do it.<tool_call>\n{\"name\": \"feed\", "
        "\"arguments\": "
        "{\"animal\": \"fox\", \"n\": [1, 2]}}\n</tool_call><tool_call>\n{\"name\": \"feed\", "
        "\"arguments\": {}}\n</tool_call>",
        "<think>It is", "Hello.", "", "<tool_call>\n{\"name\": \"fe",
        "<tool_call>no call</tool_call> and more"}) {
    const json want = whole(text)["choices"][0];
    for (const std::size_t size :
         {std::size_t{1}, std::size_t{3}, std::size_t{7}, text.size() + 1}) {
      const std::vector<json> all = stream(text, size);
      const json got = joined(all);
      const json& message = want["message"];
      EXPECT_EQ(got["content"], message["content"].is_null() ? json("") : message["content"]);
      EXPECT_EQ(got["reasoning_content"], message.value("reasoning_content", ""));
      EXPECT_EQ(got["tool_calls"], message.value("tool_calls", json::array()));
      EXPECT_EQ(all[all.size() - 2]["choices"][0]["finish_reason"], want["finish_reason"]) << text;
    }
  }
}

TEST_F(chunks, have_the_order_of_the_api) {
  const std::vector<json> all = stream("Hello there.", 4);
  ASSERT_GE(all.size(), 4U);
  EXPECT_EQ(all[0]["choices"][0]["delta"], json({{"role", "assistant"}, {"content", ""}}));
  for (std::size_t i = 0; i + 2 < all.size(); ++i) {
    ASSERT_TRUE(all[i]["choices"][0].contains("finish_reason"));
    EXPECT_TRUE(all[i]["choices"][0]["finish_reason"].is_null());
    EXPECT_TRUE(all[i]["usage"].is_null());
    EXPECT_EQ(all[i]["object"], "chat.completion.chunk");
  }
  const json& last = all[all.size() - 2];
  EXPECT_EQ(last["choices"][0]["delta"], json::object());
  EXPECT_EQ(last["choices"][0]["finish_reason"], "stop");
  const json& usage = all.back();
  EXPECT_EQ(usage["choices"], json::array());
  EXPECT_EQ(usage["usage"], whole("Hello there.")["usage"]);
}

TEST_F(chunks, have_timings_of_what_was_computed) {
  const json took = stream("a", 1).back()["timings"];
  EXPECT_EQ(took["cache_n"], 4);
  EXPECT_EQ(took["prompt_n"], 5);
  EXPECT_EQ(took["prompt_per_token_ms"], 1);
  EXPECT_EQ(took["prompt_per_second"], 1000);
  EXPECT_EQ(took["predicted_n"], 7);
  EXPECT_EQ(took["predicted_ms"], 14);
  EXPECT_EQ(timings().json()["prompt_per_second"], 0) << "no rate of nothing";
}

TEST_F(chunks, of_an_error_are_an_event) {
  auto writer = chunk_writer::open(asked_, about_, prompts_, model_);
  ASSERT_TRUE(writer);
  const std::string text = (*writer)->fail(invalid("prompt", "no").error());
  EXPECT_TRUE(text.starts_with("data: {\"error\":{\"message\":\"no\"") && text.ends_with("}\n\n"))
      << text;
}

}  // namespace
}  // namespace bitnet::host::openai
