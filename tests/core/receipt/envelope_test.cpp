// The form of a receipt's file: base64, DSSE, in-toto, and what is rejected.

#include "receipt/envelope.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "plugin/trust/ed25519.hpp"
#include "receipt/base64.hpp"

namespace bitnet::receipt {
namespace {

// RFC 8410, section 10.3.
const std::string private_pem =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
    "-----END PRIVATE KEY-----\n";
const std::string public_hex = "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";

TEST(base64, is_that_of_rfc_4648) {
  const std::vector<std::pair<std::string, std::string>> rows = {{"", ""},
                                                                 {"f", "Zg=="},
                                                                 {"fo", "Zm8="},
                                                                 {"foo", "Zm9v"},
                                                                 {"foob", "Zm9vYg=="},
                                                                 {"fooba", "Zm9vYmE="},
                                                                 {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : rows) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes) << text;
  }
}

TEST(base64, rejects_what_is_written_otherwise) {
  for (const char* text : {"Zg", "Zg=", "Zg=a", "Zh==", "====", "Z===", "Zm 9", " Zm9", "Zm9v\n",
                           "Zm-_", "\nZm9vYm", "Zm9=Zm9v"})
    EXPECT_FALSE(from_base64(text)) << text;
}

// The example of DSSE's own page on its protocol.
TEST(envelope, signs_what_dsse_says) {
  EXPECT_EQ(signed_bytes("http://example.com/HelloWorld", "hello world"),
            "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
}

TEST(envelope, comes_back_as_it_was_written) {
  const std::string payload = R"({"a": "ü", "b": [1, 2.5]})";
  const auto text = make_envelope(payload, private_pem);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  const auto back = read_envelope(*text);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->payload_type, payload_type);
  EXPECT_EQ(back->payload, payload);
  ASSERT_EQ(back->signatures.size(), 1U);
  EXPECT_EQ(back->signatures[0].key, public_hex);
  EXPECT_TRUE(plugin::is_signed_by(signed_bytes(payload_type, payload), public_hex,
                                   back->signatures[0].value));
  EXPECT_FALSE(plugin::is_signed_by(signed_bytes(payload_type, payload + " "), public_hex,
                                    back->signatures[0].value));
}

TEST(envelope, without_a_key_has_no_signature) {
  const auto text = make_envelope("{}", "");
  ASSERT_TRUE(text.has_value());
  EXPECT_TRUE(read_envelope(*text)->signatures.empty());
}

struct rejected_row {
  const char* why;
  std::string text;
};

std::ostream& operator<<(std::ostream& out, const rejected_row& r) {
  return out << r.why;
}

class rejected : public testing::TestWithParam<rejected_row> {};

TEST_P(rejected, is_no_envelope) {
  const auto read = read_envelope(GetParam().text);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().status, BITNET_BAD_DATA);
  EXPECT_FALSE(read.error().message.empty());
}

std::string signatures_of(std::size_t n) {
  std::string out = R"({"payloadType": "x", "payload": "", "signatures": [)";
  for (std::size_t i = 0; i < n; ++i) out += i == 0 ? R"({"sig": ""})" : R"(,{"sig": ""})";
  return out + "]}";
}

INSTANTIATE_TEST_SUITE_P(
    texts, rejected,
    testing::Values(
        rejected_row{"nothing", ""}, rejected_row{"no JSON", "receipt"},
        rejected_row{"no object", "[1]"}, rejected_row{"no members", "{}"},
        rejected_row{"a type that is no text",
                     R"({"payloadType": 1, "payload": "", "signatures": []})"},
        rejected_row{"a payload that is no base64",
                     R"({"payloadType": "x", "payload": "!", "signatures": []})"},
        rejected_row{"no list of signatures", R"({"payloadType": "x", "payload": ""})"},
        rejected_row{"a signature that is no object",
                     R"({"payloadType": "x", "payload": "", "signatures": [1]})"},
        rejected_row{"a signature without a value",
                     R"({"payloadType": "x", "payload": "", "signatures": [{}]})"},
        rejected_row{"too many signatures", signatures_of(most_signatures + 1)},
        rejected_row{"a member twice, which two readers may take for two things",
                     R"({"payloadType": "x", "payload": "", "payload": "YQ==", "signatures": []})"},
        rejected_row{"deeper than any receipt", std::string(100, '[')},
        rejected_row{"cut off", R"({"payloadType": "x", "payload": "")"},
        rejected_row{"no UTF-8", "{\"payloadType\": \"\xff\"}"}));

TEST(statement, has_each_member_once) {
  EXPECT_TRUE(read_statement(R"({"a": {"b": 1}, "c": {"b": 1}})").has_value());
  const auto twice = read_statement(R"({"a": [{"b": 1, "b": 2}]})");
  ASSERT_FALSE(twice.has_value());
  EXPECT_NE(twice.error().message.find("'b'"), std::string::npos) << twice.error().message;
}

}  // namespace
}  // namespace bitnet::receipt
