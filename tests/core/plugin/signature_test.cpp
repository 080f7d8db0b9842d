// Signatures of plugin files, and what an altered file or signature leads to.

#include "plugin/trust/signature.hpp"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "../../fakes/loader_fixture.hpp"
#include "plugin/trust/hash.hpp"

namespace bitnet::plugin {
namespace {

using test::folder;

// RFC 8410, section 10.3 and 10.1: an ed25519 key pair as PEM.
constexpr const char* private_pem =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
    "-----END PRIVATE KEY-----\n";
constexpr const char* public_pem =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"
    "-----END PUBLIC KEY-----\n";
constexpr const char* public_hex =
    "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";
// Another one: RFC 8032, section 7.1, test 1.
constexpr const char* stranger_hex =
    "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

const std::string plugin_bytes = "the bytes of a plugin";
const std::vector<trusted_key> keys = {{stranger_hex, "stranger.pem"}, {public_hex, "vendor.pem"}};

TEST(signature, of_a_trusted_key_is_good) {
  EXPECT_EQ(read_public_key(public_pem).value_or(""), public_hex);
  const auto text = sign(bytes_of(plugin_bytes), private_pem);
  ASSERT_TRUE(text.has_value()) << text.error().reason;
  EXPECT_EQ(text->find("bitnet-signature: 1\nsha256: " + sha256_of(bytes_of(plugin_bytes)) +
                       "\nkey: " + public_hex + "\nsignature: "),
            0U);
  const auto by = verify(bytes_of(plugin_bytes), *text, keys);
  ASSERT_TRUE(by.has_value()) << by.error().reason;
  EXPECT_EQ(by->name, "vendor.pem");
  EXPECT_EQ(sign(bytes_of(plugin_bytes), private_pem).value_or(""), *text) << "ed25519 has no luck";
}

// The signature itself, made by `openssl pkeyutl -sign -rawin` from the same key and statement.
TEST(signature, is_what_others_make) {
  const auto text = sign(bytes_of("abc"), private_pem);
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(parse_signature(*text)->value,
            "2bcc0cb01142ae7629c97ffb501aad963726a1fcaf067949e059a921b48a6eea"
            "a6d9078e830ba8ecd0757ab7f76d041c44ccf196df95be81931b84b56361bd01");
}

struct row {
  const char* why;
  std::function<void(std::string& signature)> alter;
  const char* mentions;
};

std::ostream& operator<<(std::ostream& out, const row& r) {
  return out << r.why;
}

class altered : public testing::TestWithParam<row> {};

TEST_P(altered, is_rejected) {
  const row& r = GetParam();
  std::string text = sign(bytes_of(plugin_bytes), private_pem).value();
  r.alter(text);
  const auto by = verify(bytes_of(plugin_bytes), text, keys);
  ASSERT_FALSE(by.has_value());
  EXPECT_EQ(by.error().code, code::trust_signature);
  EXPECT_EQ(by.error().status, BITNET_REJECTED);
  EXPECT_NE(by.error().reason.find(r.mentions), std::string::npos) << by.error().reason;
}

std::function<void(std::string&)> swap_text(const std::string& from, const std::string& to) {
  return [from, to](std::string& text) { text.replace(text.find(from), from.size(), to); };
}

const row rows[] = {
    {"empty", [](std::string& t) { t.clear(); }, "is no signature"},
    {"another version", swap_text("signature: 1", "signature: 2"), "is no signature"},
    {"escape sequences", [](std::string& t) { t = "\033[2J"; }, "begins '\\x1b[2J'"},
    {"cut", [](std::string& t) { t.pop_back(); }, "is damaged"},
    {"something behind it", [](std::string& t) { t += "more\n"; }, "is damaged"},
    {"upper case", [](std::string& t) { t[t.find("sha256: ") + 8] = 'A'; }, "is damaged"},
    {"windows line ends", swap_text("\nkey", "\r\nkey"), "is damaged"},
    {"a key that is not trusted", swap_text(public_hex, std::string(64, '0')),
     "none of the 2 trusted ones"},
    {"a trusted key that did not sign", swap_text(public_hex, stranger_hex), "was altered"},
    {"another hash than was signed",
     swap_text("sha256: " + sha256_of(bytes_of(plugin_bytes)),
               "sha256: " + sha256_of(bytes_of("other bytes"))),
     "was altered"},
    {"one bit of the signature",
     [](std::string& t) {
       char& c = t[t.size() - 2];
       c = c == '0' ? '1' : '0';
     },
     "was altered"},
};

INSTANTIATE_TEST_SUITE_P(rows, altered, testing::ValuesIn(rows));

TEST(signature, of_another_file_is_rejected) {
  const auto text = sign(bytes_of(plugin_bytes), private_pem);
  const auto by = verify(bytes_of(plugin_bytes + "!"), *text, keys);
  ASSERT_FALSE(by.has_value());
  EXPECT_NE(by.error().reason.find("this one has " + sha256_of(bytes_of(plugin_bytes + "!"))),
            std::string::npos)
      << by.error().reason;
}

TEST(key, anything_else_is_rejected) {
  const std::string cut = std::string(public_pem).substr(0, 60);
  for (const std::string& pem : {std::string(), std::string("hello"), cut, std::string(private_pem),
                                 std::string(public_pem).replace(30, 1, "?")}) {
    EXPECT_EQ(read_public_key(pem).error().code, code::trust_key) << pem;
    if (pem != private_pem) {
      EXPECT_EQ(sign({}, pem).error().code, code::trust_key) << pem;
    }
  }
  EXPECT_EQ(sign({}, public_pem).error().code, code::trust_key);
  EXPECT_EQ(ERR_peek_error(), 0U) << "the queue belongs to the program";
}

class signed_file : public testing::Test {
 protected:
  void SetUp() override {
    library_ = f_.fake("good");
    key_ = f_.write("vendor.key", private_pem, 0600);
    f_.write("trusted.d/vendor.pem", public_pem);
    f_.write("trusted.d/README", "not a key");
  }
  checked<trusted_key> verify() {
    return verify_file(open_trusted(library_).value(), f_.path() / "trusted.d");
  }

  folder f_;
  std::filesystem::path library_, key_;
};

TEST_F(signed_file, is_verified_through_its_descriptor) {
  const auto written = sign_file(library_, key_);
  ASSERT_TRUE(written.has_value()) << written.error().reason;
  EXPECT_EQ(*written, library_.string() + ".sig");
  const auto by = verify();
  ASSERT_TRUE(by.has_value()) << by.error().reason;
  EXPECT_EQ(by->key, public_hex);
  const auto checked_file = open_trusted(library_);
  std::filesystem::rename(f_.fake("alpha"), library_);
  EXPECT_TRUE(verify_file(*checked_file, f_.path() / "trusted.d").has_value())
      << "of what was opened, whatever has its path now";
  EXPECT_FALSE(verify().has_value());
}

TEST_F(signed_file, needs_a_signature_and_trusted_keys) {
  auto rejected = verify();
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().code, code::trust_signature);
  EXPECT_NE(rejected.error().reason.find("is not signed: there is no libfake-good.so.sig"),
            std::string::npos)
      << rejected.error().reason;
  ASSERT_TRUE(sign_file(library_, key_).has_value());
  EXPECT_EQ(verify_file(open_trusted(library_).value(), "/nowhere").error().code,
            code::trust_missing);
  ASSERT_EQ(chmod((f_.path() / "trusted.d").c_str(), 0777), 0);
  EXPECT_EQ(verify().error().code, code::trust_mode) << "any user could add a key";
  ASSERT_EQ(chmod((f_.path() / "trusted.d").c_str(), 0755), 0);
  ASSERT_EQ(chmod((f_.path() / "trusted.d/vendor.pem").c_str(), 0666), 0);
  EXPECT_EQ(verify().error().code, code::trust_mode);
  f_.write("trusted.d/vendor.pem", "not a key");
  rejected = verify();
  EXPECT_EQ(rejected.error().code, code::trust_key);
  EXPECT_NE(rejected.error().reason.find("vendor.pem holds no ed25519 key"), std::string::npos);
  f_.write("trusted.d/vendor.pem", public_pem);
  ASSERT_EQ(chmod((library_.string() + ".sig").c_str(), 0666), 0);
  EXPECT_EQ(verify().error().code, code::trust_mode);
}

TEST_F(signed_file, a_private_key_is_private) {
  ASSERT_EQ(chmod(key_.c_str(), 0640), 0);
  const auto rejected = sign_file(library_, key_);
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().code, code::trust_key);
  EXPECT_NE(rejected.error().advice().find("chmod 600 '"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(library_.string() + ".sig"));
}

}  // namespace
}  // namespace bitnet::plugin
