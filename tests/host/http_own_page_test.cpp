// Which pages may use a server: its own, by a name that no other site can have, and listed ones.
#include <gtest/gtest.h>

#include "http/policy.hpp"

namespace bitnet::host::http {
namespace {

policy with_page(bool is_tls) {
  policy out;
  out.routes.add({.method = "POST", .paths = {"/v1/x"}, .summary = "", .handle = {}});
  out.names.add("Models.lan");
  out.names.add("::1");
  out.is_tls = is_tls;
  EXPECT_TRUE(out.origins.add("https://listed.example"));
  return out;
}

struct page_case {
  std::string_view origin, host;
  bool is_tls, is_let_in;
  std::string_view why;
};

constexpr page_case cases[] = {
    {"http://127.0.0.1:8080", "127.0.0.1:8080", false, true, "its own, by address"},
    {"http://localhost:8080", "localhost:8080", false, true, "by the loopback name"},
    {"http://localhost:8080", "LocalHost:8080", false, true, "names have no case"},
    {"http://[::1]:8080", "[::1]:8080", false, true, "IPv6"},
    {"http://192.168.1.5:8080", "192.168.1.5:8080", false, true, "no site has an address's name"},
    {"http://localhost", "localhost", false, true, "without port"},
    {"http://localhost", "localhost:80", false, true, "browsers leave the default port out"},
    {"https://localhost", "localhost:443", true, true, "the same of TLS"},
    {"https://localhost:8443", "localhost:8443", true, true, "TLS"},
    {"http://models.lan:8080", "models.lan:8080", false, true, "the name of --host"},
    {"https://listed.example", "127.0.0.1:8080", false, true, "--cors-origin"},
    {"http://evil.example:8080", "evil.example:8080", false, false, "DNS rebinding"},
    {"http://evil.example:8080", "127.0.0.1:8080", false, false, "another site"},
    {"http://evil.example:8080", "localhost", false, false, "another site, by name"},
    {"http://localhost:9090", "localhost:8080", false, false, "another server of this machine"},
    {"http://127.0.0.1:8080", "localhost:8080", false, false, "another origin, to a browser"},
    {"https://localhost:8080", "localhost:8080", false, false, "another scheme"},
    {"http://localhost:8080", "localhost:8080", true, false, "another scheme, with TLS"},
    {"null", "localhost:8080", false, false, "a file, or a frame in a sandbox"},
    {"", "localhost:8080", false, false, "an empty origin"},
    {"http://", "", false, false, "an empty host"},
    {"http://localhost.evil.example", "localhost.evil.example", false, false, "only looks alike"},
    {"http://127.0.0.1.evil.example", "127.0.0.1.evil.example", false, false, "only looks alike"},
    {"http://models.lan.evil.example", "models.lan.evil.example", false, false, "only looks alike"},
    {"http://127.1:8080", "127.1:8080", false, false, "browsers write addresses in full"},
    {"http://[::1", "[::1", false, false, "no address"},
    {"http://[models.lan]", "[models.lan]", false, false, "no address"},
    {"http://localhost:8080/", "localhost:8080", false, false, "no origin"},
};

TEST(own_page, is_let_in_by_a_name_that_no_other_site_has) {
  for (const page_case& row : cases) {
    const policy rules = with_page(row.is_tls);
    request asked{.method = "POST", .path = "/v1/x"};
    asked.fields = {{"host", std::string(row.host)}, {"origin", std::string(row.origin)}};
    const decision got = decide(rules, asked);
    EXPECT_EQ(got.at_once ? got.at_once->status : 200, row.is_let_in ? 200 : 403)
        << row.why << ": " << row.origin << " at " << row.host;
  }
}

TEST(own_page, needs_a_key_as_every_client_does) {
  policy rules = with_page(false);
  ASSERT_TRUE(rules.keys.add("secret"));
  request asked{.method = "POST", .path = "/v1/x"};
  asked.fields = {{"host", "localhost:1"}, {"origin", "http://localhost:1"}};
  const decision without = decide(rules, asked);
  ASSERT_TRUE(without.at_once);
  EXPECT_EQ(without.at_once->status, 401);
  asked.fields.push_back({"authorization", "Bearer secret"});
  EXPECT_FALSE(decide(rules, asked).at_once);
}

TEST(own_page, gets_no_fields_of_cors) {
  request asked{.method = "POST", .path = "/v1/x"};
  asked.fields = {{"host", "localhost:1"}, {"origin", "http://localhost:1"}};
  EXPECT_TRUE(decide(with_page(false), asked).fields.empty());
}

TEST(head_text, of_a_file_that_is_known_has_neither_length_nor_no_store) {
  const std::string got = head_text({.status = 304}, {{"Cache-Control", "no-cache"}});
  EXPECT_TRUE(got.starts_with("HTTP/1.1 304 Not Modified\r\n")) << got;
  EXPECT_FALSE(got.contains("Content-Length")) << got;
  EXPECT_FALSE(got.contains("no-store")) << got;
  EXPECT_TRUE(head_text({}, {}).contains("Cache-Control: no-store\r\n"));
}

}  // namespace
}  // namespace bitnet::host::http
