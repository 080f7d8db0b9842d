// The client that puts load on a server: addresses, events of a stream, and what follows of times.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "load/load_run.hpp"
#include "load/server_address.hpp"
#include "load/stream_events.hpp"

namespace bitnet::host::load {
namespace {

using nlohmann::json;
using texts = std::vector<std::string>;

TEST(server_address, has_host_port_path_and_authority) {
  struct row {
    const char *url, *host, *port, *path, *authority;
  };
  for (const auto& [url, host, port, path, authority] : std::initializer_list<row>{
           {"http://a", "a", "80", "/v1/completions", "a:80"},
           {"http://127.0.0.1:8080/", "127.0.0.1", "8080", "/v1/completions", "127.0.0.1:8080"},
           {"http://a:1/v1", "a", "1", "/v1/completions", "a:1"},
           {"http://a:1/v1/", "a", "1", "/v1/completions", "a:1"},
           {"http://a:1/openai", "a", "1", "/openai/v1/completions", "a:1"},
           {"http://[::1]:9", "::1", "9", "/v1/completions", "[::1]:9"},
           {"http://[::1]/x", "::1", "80", "/x/v1/completions", "[::1]:80"}}) {
    const auto found = parse_address(url);
    ASSERT_TRUE(found) << url;
    EXPECT_EQ(found->url.host, host) << url;
    EXPECT_EQ(found->url.port, port) << url;
    EXPECT_EQ(found->path("/v1/completions"), path) << url;
    EXPECT_EQ(found->url.authority(), authority) << url;
  }
}

TEST(server_address, others_are_named) {
  for (const char* url : {"",
                          "a",
                          "a:80",
                          "https://a",
                          "ftp://a",
                          "http://",
                          "http:///x",
                          "http://:80",
                          "http://a:",
                          "http://a:0",
                          "http://a:65536",
                          "http://a:+1",
                          "http://a:1k",
                          "http://a b",
                          "http://a\r\nX: y",
                          "http://u:p@a",
                          "http://a/?q",
                          "http://a/#x",
                          "http://[::1",
                          "http://[::1]x",
                          "http://[]",
                          "http://\xc3\xa4"}) {
    const auto found = parse_address(url);
    ASSERT_FALSE(found) << url;
    EXPECT_NE(found.error().find("expected http://HOST:PORT"), std::string::npos) << url;
  }
}

TEST(stream_events, only_whole_events_give_data) {
  for (const auto& [bytes, want] : std::initializer_list<std::pair<const char*, texts>>{
           {"data: a\n\ndata: b\n\n", {"a", "b"}},
           {"data: a\r\n\r\ndata:b\r\n\r\n", {"a", "b"}},
           {"data: a\rdata: b\r\r", {"a\nb"}},
           {"data: a\r\ndata: b\r\n\r\n", {"a\nb"}},
           {": comment\nevent: x\nid: 3\ndata: a\n\n", {"a"}},
           {"data\n\n", {""}},
           {"data: a\n", {}},
           {"\n\n\n", {}},
           {"database: a\n\n", {}},
           {"data:  a\n\n", {" a"}}}) {
    stream_events whole, bytewise;
    EXPECT_EQ(*whole.take(bytes), want) << bytes;
    texts found;
    for (const char c : std::string_view(bytes)) {
      const auto some = bytewise.take({&c, 1});
      found.insert(found.end(), some->begin(), some->end());
    }
    EXPECT_EQ(found, want) << bytes;
  }
}

TEST(stream_events, one_has_a_bound) {
  stream_events one;
  EXPECT_TRUE(one.take(std::string(stream_events::longest_event, 'a')));
  EXPECT_FALSE(one.take("a"));
  stream_events lines;
  bool ended = false;
  for (int i = 0; i < 3000 && !ended; ++i)
    ended = !lines.take("data: " + std::string(1000, 'x') + "\n");
  EXPECT_TRUE(ended) << "many lines of one event";
}

TEST(stream_chunk, texts_counts_and_errors) {
  struct row {
    const char* data;
    bool has_text;
    std::size_t n_prompt, n_generated;
  };
  for (const auto& [data, has_text, n_prompt, n_generated] : std::initializer_list<row>{
           {R"({"choices":[{"text":"a"}]})", true, 0, 0},
           {R"({"choices":[{"text":""}]})", false, 0, 0},
           {R"({"choices":[{"delta":{"content":"a"}}]})", true, 0, 0},
           {R"({"choices":[{"delta":{"role":"assistant","content":null}}]})", false, 0, 0},
           {R"({"choices":[{"delta":{"reasoning_content":"a"}}]})", true, 0, 0},
           {R"({"choices":[{"delta":{"tool_calls":[{"index":0}]}}]})", true, 0, 0},
           {R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}})", false, 7, 3},
           {R"({"choices":[{"text":"a"}],"usage":null})", true, 0, 0},
           {R"({"choices":"x","usage":{"prompt_tokens":-7,"completion_tokens":"3"}})", false, 0, 0},
           {R"({})", false, 0, 0}}) {
    const stream_chunk chunk = read_chunk(data);
    EXPECT_EQ(chunk.has_text, has_text) << data;
    EXPECT_EQ(chunk.n_prompt, n_prompt) << data;
    EXPECT_EQ(chunk.n_generated, n_generated) << data;
    EXPECT_EQ(chunk.error, "") << data;
    EXPECT_FALSE(chunk.is_end) << data;
  }
  EXPECT_TRUE(read_chunk("[DONE]").is_end);
  EXPECT_EQ(read_chunk(R"({"error":{"message":"full\n"}})").error, "full\\n");
  for (const char* data : {"", "x", "[]", "3", R"({"error":"x"})", R"({"error":{}})"})
    EXPECT_NE(read_chunk(data).error, "") << data;
}

TEST(request_times, follow_from_the_times_of_pieces) {
  request_times one{1'000'000, 61'000'000, {11'000'000, 31'000'000, 51'000'000}, 0, 0, ""};
  EXPECT_EQ(one.first_ms(), 10);
  EXPECT_EQ(one.all_ms(), 60);
  EXPECT_EQ(one.tokens(), 3U);
  EXPECT_EQ(one.token_ms(), 20);
  one.n_generated = 5;  // two tokens in some pieces
  EXPECT_EQ(one.tokens(), 5U);
  EXPECT_EQ(one.token_ms(), 10);
  one.pieces_ns = {11'000'000};
  EXPECT_FALSE(one.token_ms()) << "all tokens in one piece";
  one.pieces_ns = {};
  EXPECT_FALSE(one.first_ms());
}

TEST(request_body, prompts_have_a_common_begin_and_are_new) {
  load_setup setup;
  setup.model = "m\"";
  setup.n_prompt = 20;
  setup.n_shared = 15;
  setup.n_gen = 7;
  const auto prompt_at = [&](uint32_t number) {
    return json::parse(request_body(setup, number))["prompt"].get<std::string>();
  };
  const std::string a = prompt_at(0), b = prompt_at(1);
  EXPECT_EQ(std::ranges::count(a, ' '), 19);
  EXPECT_NE(a, b);
  const auto differs = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  EXPECT_GE(std::ranges::count(a.substr(0, differs), ' '), 15);
  EXPECT_EQ(a, prompt_at(0));
  setup.seed = 2;
  EXPECT_NE(a, prompt_at(0));
  json body = json::parse(request_body(setup, 0));
  EXPECT_EQ(body["model"], "m\"");
  EXPECT_EQ(body["max_tokens"], 7);
  EXPECT_EQ(body["stream"], true);
  EXPECT_FALSE(body.contains("ignore_eos"));
  setup.chats = setup.ignores_eos = true;
  body = json::parse(request_body(setup, 0));
  EXPECT_EQ(body["messages"][0]["role"], "user");
  EXPECT_TRUE(body["ignore_eos"]);
}

}  // namespace
}  // namespace bitnet::host::load
