#include "chat/template.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace bitnet::chat {
namespace {

// A byte-level vocabulary with the given control tokens.
tokenizer::tokenizer vocabulary(const std::vector<std::string>& control, std::string jinja) {
  tokenizer::vocabulary_data v;
  v.model = "gpt2";
  v.pre = "gpt-2";
  for (char c = 'a'; c <= 'z'; ++c) v.tokens.emplace_back(1, c);
  v.tokens.emplace_back("ab");
  v.merges = {"a b"};
  v.types.assign(v.tokens.size(), 1);
  for (const auto& text : control) {
    v.tokens.push_back(text);
    v.types.push_back(3);
  }
  v.bos = v.eos = 0;
  v.chat_template = std::move(jinja);
  auto made = tokenizer::tokenizer::make(std::move(v));
  if (!made) throw std::runtime_error(made.error().message);
  return std::move(*made);
}

TEST(chat, guesses_the_form_from_what_the_file_says) {
  const struct {
    const char* why;
    std::vector<std::string> control;
    const char* jinja;
    const char* expected;
  } rows[] = {
      {"the published 2B-4T file: a wrong template and llama 3's tokens",
       {"<|eot_id|>", "<|start_header_id|>"},
       "...Human: ...BITNETAssistant: ",
       "bitnet"},
      {"llama 3's own template", {}, "{{'<|start_header_id|>'}}{{'<|eot_id|>'}}", "llama3"},
      {"chatml in the template", {}, "<|im_start|>", "chatml"},
      {"falcon 3 in the template", {}, "<|user|><|assistant|>", "falcon3"},
      {"no template, llama 3's tokens", {"<|eot_id|>", "<|start_header_id|>"}, "", "llama3"},
      {"no template, only an end of turn", {"<|eot_id|>"}, "", "bitnet"},
      {"nothing at all", {}, "", "instruct"},
  };
  for (const auto& r : rows) EXPECT_EQ(guess(vocabulary(r.control, r.jinja)), r.expected) << r.why;
}

TEST(chat, runs_the_models_own_template) {
  const message conversation[] = {{"system", " Be kind. "}, {"user", "Hi"}};
  const auto tokens = vocabulary(
      {"<|im_start|>"},
      "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
      "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
      "{% if tools %}tools{% endif %}");
  EXPECT_EQ(format("model", tokens, conversation).value(),
            "a<|im_start|>system\n Be kind. <|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(format("auto", tokens, conversation)->find("system\nBe kind."), 12U)
      << "unasked, what is built in";

  const struct {
    const char* jinja;
    const char* says;
    bitnet_status status;
  } refused[] = {
      {"", "the model has no chat template of its own; choose one of auto, bitnet",
       BITNET_UNSUPPORTED},
      {"{% for %}", "the model's own chat template: line 1", BITNET_BAD_DATA},
      {"{{ raise_exception('no system, please') }}", "no system, please", BITNET_INVALID_ARGUMENT},
      {"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
       "choose another of", BITNET_UNSUPPORTED},
  };
  for (const auto& r : refused) {
    const auto text = format("model", vocabulary({}, r.jinja), conversation);
    ASSERT_FALSE(text) << r.jinja;
    EXPECT_EQ(text.error().status, r.status) << text.error().message;
    EXPECT_NE(text.error().message.find(r.says), std::string::npos) << text.error().message;
  }
}

TEST(chat, writes_each_form) {
  const auto tokens = vocabulary({"<|eot_id|>"}, "");
  const message conversation[] = {
      {"system", " Be kind. "}, {"user", "Hi\n"}, {"assistant", "Hello."}, {"user", "Bye"}};
  const struct {
    const char* name;
    const char* expected;
  } rows[] = {
      {"auto",
       "<|begin_of_text|>System: Be kind.<|eot_id|>User: Hi<|eot_id|>Assistant: Hello.<|eot_id|>"
       "User: Bye<|eot_id|>Assistant: "},
      {"chatml",
       "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
       "<|im_start|>assistant\nHello.<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
       "<|im_start|>assistant\n"},
      {"instruct", "System: Be kind.\n\nQ: Hi\nA: Hello.\n\nQ: Bye\nA:"},
      {"raw", " Be kind. Hi\nHello.Bye"},
  };
  for (const auto& r : rows) {
    auto text = format(r.name, tokens, conversation);
    ASSERT_TRUE(text) << r.name;
    EXPECT_EQ(*text, r.expected) << r.name;
  }
}

TEST(chat, names_what_it_does_not_know) {
  const auto tokens = vocabulary({}, "");
  const message one[] = {{"robot", "x"}};
  auto role = format("chatml", tokens, one);
  ASSERT_FALSE(role);
  EXPECT_NE(role.error().message.find("robot"), std::string::npos);
  auto name = format("vicuna", tokens, {});
  ASSERT_FALSE(name);
  EXPECT_NE(name.error().message.find("llama3"), std::string::npos) << "lists what there is";
}

}  // namespace
}  // namespace bitnet::chat
