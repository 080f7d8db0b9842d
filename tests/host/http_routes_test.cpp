// The table of routes, what is generated of it, the errors' form, the log's line, keys of files.
#include "http/routes.hpp"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "../scratch_folder.hpp"
#include "http/access.hpp"
#include "http/access_log.hpp"
#include "http/answer.hpp"

namespace bitnet::host::http {
namespace {

route_table small_table() {
  route_table out;
  out.add({.method = "GET",
           .paths = {"/v1/models", "/models"},
           .summary = "Models",
           .handle = {},
           .access = access_level::open});
  out.add({.method = "GET",
           .paths = {"/v1/models/{id}"},
           .summary = "One model",
           .handle = {},
           .query = {{"full", "boolean", "with all of it"}}});
  out.add({.method = "POST",
           .paths = {"/v1/models/{id}"},
           .summary = "Changes it",
           .handle = {},
           .body = {{"name", "string", "its name", true}, {"any", "any", "of any type"}}});
  return out;
}

TEST(route_table, finds_rows_by_method_and_path) {
  const route_table table = small_table();
  const struct {
    std::string_view method, path, summary, allowed, id;
  } rows[] = {{"GET", "/models", "Models", "GET, HEAD, OPTIONS", ""},
              {"HEAD", "/v1/models", "Models", "GET, HEAD, OPTIONS", ""},
              {"GET", "/v1/models/a", "One model", "GET, HEAD, POST, OPTIONS", "a"},
              {"POST", "/v1/models/a%2Fb", "Changes it", "GET, HEAD, POST, OPTIONS", "a/b"},
              {"PUT", "/v1/models/a", "", "GET, HEAD, POST, OPTIONS", ""},
              {"GET", "/v1/models/", "", "", ""},
              {"GET", "/v1/models/a/b", "", "", ""},
              {"GET", "/v1/models/%", "", "", ""},
              {"GET", "/v1/models/%zz", "", "", ""},
              {"GET", "/v1/models/%00", "", "", ""},
              {"GET", "//v1/models", "", "", ""},
              {"GET", "/", "", "", ""}};
  for (const auto& row : rows) {
    const auto found = table.find(row.method, row.path);
    EXPECT_EQ(found.row == nullptr ? "" : found.row->summary, row.summary) << row.path;
    EXPECT_EQ(found.allowed, row.allowed) << row.path;
    EXPECT_EQ(found.values.empty() ? "" : found.values[0].second, row.id) << row.path;
  }
}

std::string no_body(const error_facts&, std::string_view) {
  return "";
}

constexpr error_form odd_errors{.body = no_body, .field = "odd-version", .schema = "OddError"};

TEST(route_table, becomes_open_api) {
  route_table table = small_table();
  table.add({.method = "POST",
             .paths = {"/odd"},
             .summary = "Of another API",
             .handle = {},
             .errors = &odd_errors,
             .answer = "Odd",
             .event = "OddEvent",
             .conflict = "Odd"});
  constexpr std::array<std::string_view, 2> schemas = {
      R"({"Error": {"type": "object"}})",
      R"({"OddError": {}, "Odd": {}, "OddEvent": {"type": "null"}})"};
  const auto got = nlohmann::json::parse(open_api_of(table, {"t", "1", "what it is"}, schemas));
  EXPECT_EQ(got["openapi"], "3.1.0");
  EXPECT_EQ(got["paths"].size(), 4U);
  const auto& get = got["paths"]["/v1/models/{id}"]["get"];
  EXPECT_EQ(get["parameters"][0]["name"], "id");
  EXPECT_EQ(get["parameters"][1]["in"], "query");
  EXPECT_EQ(get["security"].size(), 2U);
  EXPECT_TRUE(got["paths"]["/models"]["get"]["security"].empty());
  const auto& schema = got["paths"]["/v1/models/{id}"]["post"]["requestBody"]["content"]
                          ["application/json"]["schema"];
  EXPECT_EQ(schema["required"], nlohmann::json({"name"}));
  EXPECT_EQ(schema["properties"]["name"]["type"], "string");
  EXPECT_FALSE(schema["properties"]["any"].contains("type"));
  EXPECT_EQ(got["components"]["schemas"].size(), 4U);

  const auto ref = [](const char* to) {
    return nlohmann::json{{"$ref", std::string("#/components/") + to}};
  };
  const auto& odd = got["paths"]["/odd"]["post"]["responses"];
  EXPECT_EQ(odd["200"]["content"]["application/json"]["schema"], ref("schemas/Odd"));
  EXPECT_EQ(odd["200"]["content"]["text/event-stream"]["schema"], ref("schemas/OddEvent"));
  EXPECT_EQ(odd["409"]["content"]["application/json"]["schema"], ref("schemas/Odd"));
  for (const char* status : {"400", "401", "413", "503", "default"})
    EXPECT_EQ(odd[status], ref("responses/OddError")) << status;
  const auto& open = got["paths"]["/models"]["get"]["responses"];
  EXPECT_EQ(open.size(), 3U) << "without key, body and values in its path";
  EXPECT_EQ(open["503"], ref("responses/Error"));
  EXPECT_TRUE(open["200"]["content"]["application/json"].empty());
  EXPECT_EQ(get["responses"]["404"], ref("responses/Error"));
  EXPECT_EQ(got["components"]["responses"]["OddError"]["content"]["application/json"]["schema"],
            ref("schemas/OddError"));
}

TEST(route_table, has_a_form_of_errors_for_each_api) {
  route_table table = small_table();
  table.add({.method = "POST",
             .paths = {"/odd", "/v1/odd"},
             .summary = "Of another API",
             .handle = {},
             .errors = &odd_errors});
  const struct {
    std::string_view path;
    bool has_field, is_odd;
  } rows[] = {{"/odd", false, true},      {"/v1/odd", false, true}, {"/odd/absent", false, true},
              {"/oddly", false, false},   {"/od", false, false},    {"/v1/models", false, false},
              {"/v1/models", true, true}, {"/absent", true, true},  {"", false, false}};
  for (const auto& row : rows) {
    request asked{.method = "GET", .path = std::string(row.path)};
    if (row.has_field) asked.fields = {{"odd-version", ""}};
    EXPECT_EQ(table.errors_for(asked), row.is_odd ? &odd_errors : nullptr) << row.path;
  }
}

TEST(query, gives_values_by_key) {
  EXPECT_EQ(query_value("a=1&bc=x%20y+z&b=2", "b"), "2");
  EXPECT_EQ(query_value("a=1&bc=x%20y+z", "bc"), "x y z");
  EXPECT_EQ(query_value("a=%", "a"), "");
  EXPECT_EQ(query_value("a", "a"), "");
}

TEST(error_answer, has_the_form_of_openai) {
  const auto got = nlohmann::json::parse(
      error_answer({.status = 400, .message = "bad \xff", .param = "p"}).body)["error"];
  EXPECT_EQ(got["type"], "invalid_request_error");
  EXPECT_EQ(got["param"], "p");
  EXPECT_TRUE(got["code"].is_null());
  EXPECT_EQ(unavailable_answer("later", 7).fields[0].value, "7");
}

TEST(head_text, lets_no_value_begin_a_field) {
  const std::string got = head_text({.id = "a\r\nX: b"}, {{"Y", std::string("c\nZ: d\0", 7)}});
  EXPECT_TRUE(got.contains("X-Request-Id: a  X: b\r\n")) << got;
  EXPECT_TRUE(got.contains("Y: c Z: d \r\n")) << got;
}

TEST(access_text, has_neither_query_nor_what_a_client_made_up) {
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  request asked{.method = "GET", .path = "/a\x1b", .query = "key=secret"};
  asked.peer = "1.2.3.4:5";
  asked.id = "i";
  asked.fields = {{"traceparent", trace}, {"authorization", "Bearer secret"}};
  access_line line{.asked = asked, .status = 200, .body_bytes = 7, .is_whole = true};
  line.took = std::chrono::microseconds(1500);
  EXPECT_EQ(access_text(line),
            "1.2.3.4:5 GET /a\\x1b 200 7 bytes 1.5 ms id=i traceparent=" + trace);
  line.is_whole = false;
  const std::string zeros(32, '0');
  for (const std::string& no :
       {trace + "\nforged", "ff" + trace.substr(2), "00-" + zeros + trace.substr(35),
        trace.substr(0, 36) + zeros.substr(0, 16) + "-01"}) {
    asked.fields[0].value = no;
    EXPECT_EQ(access_text(line), "1.2.3.4:5 GET /a\\x1b 499 7 bytes 1.5 ms id=i") << no;
  }
}

TEST(access_facts, are_members_of_what_is_known) {
  request asked{.method = "GET", .path = "/a\x1b" + std::string(300, 'x'), .query = "key=secret"};
  asked.peer = "1.2.3.4:5";
  asked.id = "i";
  access_line line{.asked = asked, .status = 200, .body_bytes = 7, .is_whole = true, .model = "m"};
  line.took = std::chrono::nanoseconds(1500600);
  const log_facts got = access_facts(line);
  EXPECT_EQ(got.message, "answered");
  std::string names;
  for (const log_field& one : got.fields) names.append(one.name).append(" ");
  EXPECT_EQ(names, "client method path status bytes duration_ms request_id model ");
  EXPECT_EQ(std::get<std::string>(got.fields[2].value), asked.path.substr(0, 200));
  EXPECT_EQ(std::get<int64_t>(got.fields[3].value), 200);
  EXPECT_EQ(std::get<double>(got.fields[5].value), 1.501);
  EXPECT_TRUE(access_text(line).ends_with(" id=i model=m"));
  line.is_whole = false;
  EXPECT_EQ(std::get<int64_t>(access_facts(line).fields[3].value), 499);
}

TEST(api_keys, come_from_files) {
  const test::scratch_folder folder;
  api_keys keys;
  ASSERT_TRUE(keys.add_file(folder.write("keys", "# comment\r\n\nalpha\r\n  beta\n")));
  EXPECT_EQ(keys.size(), 2U);
  EXPECT_TRUE(keys.has("alpha") && keys.has("beta") && !keys.has("# comment") && !keys.has(""));
  ASSERT_TRUE(keys.add_file(folder.write("marked", "\xEF\xBB\xBF# of an editor\ngamma\n")));
  EXPECT_TRUE(keys.has("gamma") && keys.size() == 3U);
  const auto wide = keys.add_file(folder.write("wide", std::string("\xFF\xFEk\0", 4)));
  ASSERT_FALSE(wide);
  EXPECT_TRUE(wide.error().message.contains("UTF-16")) << wide.error().message;
  const auto bad = keys.add_file(folder.write("bad", "good\nwith blank\n"));
  ASSERT_FALSE(bad);
  EXPECT_TRUE(bad.error().message.contains("bad:2: ")) << bad.error().message;
  EXPECT_FALSE(keys.add_file(folder.write("empty", "# none\n")));
  EXPECT_FALSE(keys.add_file(folder.path() / "missing"));
  EXPECT_FALSE(keys.add(""));
  EXPECT_FALSE(keys.add(std::string(513, 'x')));
}

}  // namespace
}  // namespace bitnet::host::http
