// Spans of requests: whose they are, their JSON, and addresses of collectors.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "http/trace_context.hpp"
#include "trace/otlp.hpp"
#include "trace/span.hpp"

namespace bitnet::host::trace {
namespace {

using std::chrono::system_clock;

const std::string trace_id = "0af7651916cd43dd8448eb211c80319c";
const std::string parent_id = "b7ad6b7169203331";

http::request asked_with(const std::string& traceparent) {
  http::request out{.method = "POST", .path = "/v1/completions"};
  out.peer = "1.2.3.4:5";
  out.id = "request";
  if (!traceparent.empty()) out.fields = {{"traceparent", traceparent}};
  return out;
}

TEST(trace_context, is_read_where_it_has_its_form) {
  const std::string good = "00-" + trace_id + "-" + parent_id + "-01";
  const auto read = http::trace_context_of(good);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->trace_id, trace_id);
  EXPECT_EQ(read->parent_id, parent_id);
  EXPECT_TRUE(read->is_sampled);
  struct row {
    std::string text;
    const char* why;
  };
  for (const row& no :
       {row{"", "nothing"}, row{good + "0", "longer"}, row{good.substr(1), "shorter"},
        row{"ff" + good.substr(2), "a version that is none"},
        row{"00-" + std::string(32, '0') + "-" + parent_id + "-01", "no trace"},
        row{"00-" + trace_id + "-" + std::string(16, '0') + "-01", "no span"},
        row{"00-" + std::string(32, 'A') + "-" + parent_id + "-01", "capitals"}})
    EXPECT_FALSE(http::trace_context_of(no.text)) << no.why;
  for (const auto& [flags, expected] :
       {std::pair{"00", false}, {"01", true}, {"02", false}, {"03", true}, {"0f", true}}) {
    const std::string text = good.substr(0, 53) + flags;
    EXPECT_EQ(http::trace_context_of(text)->is_sampled, expected) << flags;
  }
}

TEST(span, has_the_trace_of_its_client) {
  const http::request asked = asked_with("00-" + trace_id + "-" + parent_id + "-01");
  const std::vector<log_field> measured{{"gen_ai.usage.input_tokens", int64_t{7}}};
  const http::access_line line{.asked = asked,
                               .status = 200,
                               .took = std::chrono::milliseconds(250),
                               .is_whole = true,
                               .model = "demo",
                               .measured = measured};
  const system_clock::time_point now{std::chrono::seconds(1000)};
  const auto got = span_of(line, now);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->trace_id, trace_id);
  EXPECT_EQ(got->parent_span_id, parent_id);
  EXPECT_EQ(got->span_id.size(), 16U);
  EXPECT_NE(got->span_id, parent_id);
  EXPECT_EQ(got->name, "POST /v1/completions");
  EXPECT_EQ(got->ended, now);
  EXPECT_EQ(got->ended - got->began, std::chrono::milliseconds(250));
  EXPECT_FALSE(got->failed);
  EXPECT_EQ(got->attributes.back().name, "gen_ai.usage.input_tokens");
}

TEST(span, is_of_requests_with_a_body_that_clients_want_recorded) {
  const auto made = [](const std::string& method, const std::string& traceparent) {
    http::request asked = asked_with(traceparent);
    asked.method = method;
    return span_of({.asked = asked, .status = 200, .is_whole = true}, system_clock::now());
  };
  const auto root = made("POST", "");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->trace_id.size(), 32U);
  EXPECT_EQ(root->parent_span_id, "");
  EXPECT_NE(root->trace_id, made("POST", "")->trace_id);
  EXPECT_FALSE(made("POST", "00-" + trace_id + "-" + parent_id + "-00")) << "not sampled";
  EXPECT_FALSE(made("GET", "")) << "/health";
  EXPECT_TRUE(made("POST", "no trace")) << "what is no traceparent counts for nothing";
}

TEST(span, failed_where_the_answer_did) {
  const http::request asked = asked_with("");
  struct row {
    int status;
    bool is_whole, failed;
  };
  for (const row& r : {row{200, true, false}, row{400, true, false}, row{500, true, true},
                       row{503, true, true}, row{200, false, true}, row{0, false, true}}) {
    const auto got =
        span_of({.asked = asked, .status = r.status, .is_whole = r.is_whole}, system_clock::now());
    ASSERT_TRUE(got);
    EXPECT_EQ(got->failed, r.failed) << r.status;
  }
}

TEST(otlp_body, is_what_a_collector_reads) {
  const span one{
      .trace_id = trace_id,
      .span_id = "00f067aa0ba902b7",
      .parent_span_id = parent_id,
      .name = "POST /\xff",
      .began = system_clock::time_point(std::chrono::nanoseconds(1'700'000'000'123'456'789)),
      .ended = system_clock::time_point(std::chrono::nanoseconds(1'700'000'001'000'000'000)),
      .failed = true,
      .attributes = {{"a", std::string("b")}, {"n", int64_t{-5}}, {"x", 0.5}}};
  const span plain{.trace_id = trace_id, .span_id = parent_id, .name = "p"};
  const auto got = nlohmann::json::parse(otlp_body("1.2", std::vector{one, plain}));
  const auto& resource = got["resourceSpans"][0];
  EXPECT_EQ(resource["resource"]["attributes"][0],
            nlohmann::json::parse(R"({"key":"service.name","value":{"stringValue":"bitnet"}})"));
  EXPECT_EQ(resource["scopeSpans"][0]["scope"]["version"], "1.2");
  EXPECT_EQ(resource["scopeSpans"][0]["spans"][0], nlohmann::json::parse(R"({
    "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "00f067aa0ba902b7",
    "parentSpanId": "b7ad6b7169203331", "name": "POST /\ufffd", "kind": 2,
    "startTimeUnixNano": "1700000000123456789", "endTimeUnixNano": "1700000001000000000",
    "attributes": [{"key": "a", "value": {"stringValue": "b"}},
                   {"key": "n", "value": {"intValue": "-5"}},
                   {"key": "x", "value": {"doubleValue": 0.5}}],
    "status": {"code": 2}})"));
  const auto& second = resource["scopeSpans"][0]["spans"][1];
  EXPECT_FALSE(second.contains("parentSpanId"));
  EXPECT_FALSE(second.contains("status"));
}

TEST(collector, has_an_address) {
  struct row {
    const char *url, *host, *port, *target, *named;
  };
  for (const row& r :
       {row{"http://127.0.0.1", "127.0.0.1", "4318", "/v1/traces", "127.0.0.1:4318"},
        row{"http://collector:99/", "collector", "99", "/v1/traces", "collector:99"},
        row{"http://collector/x/y?z=1", "collector", "4318", "/x/y?z=1", "collector:4318"},
        row{"http://[::1]:80/a", "::1", "80", "/a", "[::1]:80"},
        row{"http://[::1]", "::1", "4318", "/v1/traces", "[::1]:4318"}}) {
    const auto got = collector_of(r.url);
    ASSERT_TRUE(got) << r.url;
    EXPECT_EQ(got->host, r.host);
    EXPECT_EQ(got->port, r.port);
    EXPECT_EQ(got->path, r.target);
    EXPECT_EQ(got->authority(), r.named);
  }
  for (const char* no :
       {"", "collector:4318", "https://collector", "http://", "http://:4318", "http://a:0",
        "http://a:65536", "http://a:x", "http://a:", "http://a:1:2", "http://[::1", "http://[]",
        "http://[::1]80", "http://a b", "http://a/\r\nX: y", "http://user@host", "grpc://a"}) {
    const auto got = collector_of(no);
    ASSERT_FALSE(got) << no;
    EXPECT_EQ(got.error().exit_code, exit_code::usage) << no;
    EXPECT_NE(got.error().message.find("expected http://HOST[:PORT][/PATH]"), std::string::npos);
  }
}

}  // namespace
}  // namespace bitnet::host::trace
