// Signatures of models: those that the tool model_signing made (golden/make.py), what is rejected,
// and by which field.

#include "signature/model_judge.hpp"

#include <gtest/gtest.h>

#include <openssl/evp.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../../scratch_folder.hpp"
#include "gguf/mapping.hpp"
#include "receipt/base64.hpp"
#include "signature/bundle.hpp"
#include "signature/manifest.hpp"

namespace bitnet::signature {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path golden = BITNET_GOLDEN_SIGNATURES;

std::string golden_text(const char* name) {
  return test::scratch_folder::read(golden / name);
}

// Opens files as a loader does, each judged, then lets the judge conclude.
result<verified> opened(const request& asked, const std::vector<fs::path>& files) {
  const auto judge = model_judge::make(asked);
  if (!judge) return std::unexpected(judge.error());
  const gguf::file_judge::scope judged(judge->get());
  for (const fs::path& one : files)
    if (auto mapped = gguf::mapping::open(one); !mapped) return std::unexpected(mapped.error());
  if (auto ok = (*judge)->conclude(); !ok) return std::unexpected(ok.error());
  return (*judge)->outcome();
}

struct golden_row {
  const char* why;
  const char* signature;
  const char* key;
  const char* model;
};

TEST(golden_signatures, are_good) {
  for (const golden_row& row :
       {golden_row{"P-256, SHA-256 of files", "folder.sig", "p256.pem", "model"},
        {"P-384, one file", "file.sig", "p384.pem", "model/model.safetensors"},
        {"P-521, BLAKE2b of shards", "shards.sig", "p521.pem", "model"}}) {
    const fs::path model = golden / row.model;
    const bool folder = fs::is_directory(model);
    const auto by = opened(
        {.model = model, .signature = golden / row.signature, .key = golden / row.key, .ca = ""},
        {folder ? model / "model.safetensors" : model});
    ASSERT_TRUE(by.has_value()) << row.why << ": " << by.error().message;
    const json bundle = json::parse(golden_text(row.signature));
    EXPECT_EQ(by->by.key, bundle["verificationMaterial"]["publicKey"]["hint"].get<std::string>())
        << row.why;
    EXPECT_EQ(by->files, folder ? 3U : 1U) << row.why;
  }
}

TEST(golden_signatures, of_a_certificate_are_good) {
  const auto by = opened({.model = golden / "model",
                          .signature = golden / "certificate.sig",
                          .key = "",
                          .ca = golden / "ca.pem"},
                         {golden / "model/config.json"});
  ASSERT_TRUE(by.has_value()) << by.error().message;
  EXPECT_EQ(by->by.subject, "CN=Signer,O=Example");
  EXPECT_EQ(by->by.certificate.size(), 64U);
}

// A provider of FIPS has no BLAKE2b; here OpenSSL finds no provider.
TEST(golden_signatures, whose_hash_openssl_lacks_are_unsupported) {
  const auto judge = model_judge::make({.model = golden / "model",
                                        .signature = golden / "shards.sig",
                                        .key = golden / "p521.pem",
                                        .ca = ""});
  ASSERT_TRUE(judge.has_value()) << judge.error().message;
  ASSERT_EQ(EVP_set_default_properties(nullptr, "provider=none"), 1);
  const auto concluded = (*judge)->conclude();
  EXPECT_EQ(EVP_set_default_properties(nullptr, ""), 1);
  ASSERT_FALSE(concluded.has_value());
  EXPECT_EQ(concluded.error().status, BITNET_UNSUPPORTED);
  EXPECT_NE(concluded.error().message.find("OpenSSL computes BLAKE2B-512"), std::string::npos)
      << concluded.error().message;
}

TEST(golden_signatures, of_others_are_rejected_by_the_field) {
  struct row {
    const char* why;
    const char* signature;
    const char* key;
    const char* ca;
    bitnet_status status;
    const char* message;
  };
  for (const row& r :
       {row{"another key", "folder.sig", "p384.pem", "", BITNET_REJECTED,
            "verificationMaterial.publicKey.hint: "},
        {"a hash that is not computed", "blake3.sig", "p256.pem", "", BITNET_REJECTED,
         "predicate.serialization.hash_type: "},
        {"a certificate, and a key is given", "certificate.sig", "p256.pem", "", BITNET_REJECTED,
         "verificationMaterial: expected publicKey"},
        {"a key, and certificates are given", "folder.sig", "", "ca.pem", BITNET_REJECTED,
         "verificationMaterial: expected x509CertificateChain"},
        {"one file, and a folder is opened", "file.sig", "p384.pem", "", BITNET_REJECTED,
         "predicate.resources[0].name: "},
        {"no signature", "none.sig", "p256.pem", "", BITNET_REJECTED, "none.sig"},
        {"no bundle", "p256.pem", "p256.pem", "", BITNET_REJECTED, "mediaType: "},
        {"no key", "folder.sig", "none.pem", "", BITNET_INVALID_ARGUMENT, "signature_key: "},
        {"a certificate as a key", "folder.sig", "ca.pem", "", BITNET_INVALID_ARGUMENT,
         "expected a public ECDSA key"},
        {"a key as a certificate", "certificate.sig", "", "p256.pem", BITNET_INVALID_ARGUMENT,
         "expected certificates in PEM"},
        {"both", "folder.sig", "p256.pem", "ca.pem", BITNET_INVALID_ARGUMENT, "one of the two"}}) {
    const auto path = [](const char* name) { return *name == '\0' ? fs::path() : golden / name; };
    const auto by = opened({.model = golden / "model",
                            .signature = path(r.signature),
                            .key = path(r.key),
                            .ca = path(r.ca)},
                           {});
    ASSERT_FALSE(by.has_value()) << r.why;
    EXPECT_EQ(by.error().status, r.status) << r.why << ": " << by.error().message;
    EXPECT_NE(by.error().message.find(r.message), std::string::npos)
        << r.why << ": " << by.error().message;
  }
}

// A copy of the golden folder, and its signature where it usually lies.
class signed_copy : public testing::Test {
 protected:
  void SetUp() override {
    fs::copy(golden / "model", model_, fs::copy_options::recursive);
    fs::copy_file(golden / "folder.sig", model_ / "model.sig");
  }
  [[nodiscard]] result<verified> open(const std::vector<fs::path>& files) const {
    return opened({.model = model_, .signature = "", .key = golden / "p256.pem", .ca = ""}, files);
  }
  void rejects(const std::vector<fs::path>& files, const std::string& message) const {
    const auto by = open(files);
    ASSERT_FALSE(by.has_value());
    EXPECT_EQ(by.error().status, BITNET_REJECTED);
    EXPECT_EQ(by.error().from.domain, "signature");
    EXPECT_NE(by.error().message.find(message), std::string::npos) << by.error().message;
  }
  // The bundle with one field changed.
  void forge(const std::function<void(json&)>& change) const {
    json bundle = json::parse(golden_text("folder.sig"));
    change(bundle);
    scratch_.write("model/model.sig", bundle.dump());
  }
  test::scratch_folder scratch_;
  fs::path model_ = scratch_.path() / "model";
};

TEST_F(signed_copy, is_found_beside_the_model) {
  const auto by = open({model_ / "config.json", model_ / "model.safetensors"});
  EXPECT_TRUE(by.has_value()) << by.error().message;
}

TEST_F(signed_copy, is_found_from_a_file_in_it) {
  const auto by = opened({.model = model_ / "sub/note.txt",
                          .signature = model_ / "model.sig",
                          .key = golden / "p256.pem",
                          .ca = ""},
                         {model_ / "sub/note.txt"});
  EXPECT_TRUE(by.has_value()) << by.error().message;
}

TEST_F(signed_copy, may_have_other_files_that_are_not_loaded) {
  scratch_.write("model/README.md", "new");
  EXPECT_TRUE(open({model_ / "config.json"}).has_value());
}

TEST_F(signed_copy, may_be_links) {
  fs::rename(model_ / "config.json", scratch_.path() / "blob");
  fs::create_symlink(scratch_.path() / "blob", model_ / "config.json");
  EXPECT_TRUE(open({model_ / "config.json"}).has_value());
}

TEST_F(signed_copy, loads_no_file_that_was_not_signed) {
  scratch_.write("model/chat_template.jinja", "{{ x }}");
  rejects({model_ / "chat_template.jinja"}, "predicate.resources: 'chat_template.jinja'");
}

TEST_F(signed_copy, lacks_no_file_that_was_signed) {
  fs::remove(model_ / "sub/note.txt");
  rejects({}, "predicate.resources: 1 of 3 files");
}

TEST_F(signed_copy, has_no_loaded_file_changed) {
  scratch_.write("model/model.safetensors", "Weights");
  rejects({model_ / "model.safetensors"}, "predicate.resources[1].digest: ");
}

TEST_F(signed_copy, has_no_other_file_changed) {
  scratch_.write("model/sub/note.txt", "another");
  rejects({model_ / "model.safetensors"}, "predicate.resources[2].digest: ");
}

TEST_F(signed_copy, has_no_shard_cut_off) {
  fs::copy_file(golden / "shards.sig", model_ / "model.sig", fs::copy_options::overwrite_existing);
  const auto rejected = [&] {
    return opened({.model = model_, .signature = "", .key = golden / "p521.pem", .ca = ""},
                  {model_ / "model.safetensors"});
  };
  scratch_.write("model/model.safetensors", "weights, and more");
  ASSERT_FALSE(rejected().has_value());
  EXPECT_NE(rejected().error().message.find("expected 7 bytes"), std::string::npos)
      << rejected().error().message;
}

TEST_F(signed_copy, is_cancelled) {
  const auto by = opened({.model = model_,
                          .signature = "",
                          .key = golden / "p256.pem",
                          .ca = "",
                          .goes_on = [](uint64_t) { return false; }},
                         {});
  ASSERT_FALSE(by.has_value());
  EXPECT_EQ(by.error().status, BITNET_CANCELLED);
}

TEST_F(signed_copy, is_not_forged_in_any_field_of_the_bundle) {
  struct row {
    const char* field;
    std::function<void(json&)> change;
  };
  const auto flipped = [](json& base64) {
    std::string bytes = *receipt::from_base64(base64.get<std::string>());
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    base64 = receipt::to_base64(bytes);
  };
  for (const row& r : std::vector<row>{
           {"mediaType: ", [](json& b) { b["mediaType"] = "application/json"; }},
           {"messageSignature: ", [](json& b) { b["messageSignature"] = json::object(); }},
           {"verificationMaterial: ", [](json& b) { b["verificationMaterial"] = {}; }},
           {"verificationMaterial.publicKey.hint: ",
            [](json& b) { b["verificationMaterial"]["publicKey"]["hint"] = "0"; }},
           {"verificationMaterial.tlogEntries: it was signed without a key",
            [](json& b) { b["verificationMaterial"]["tlogEntries"] = {1}; }},
           {"verificationMaterial.certificate: it was signed without a key",
            [](json& b) { b["verificationMaterial"]["certificate"]["rawBytes"] = "AA=="; }},
           {"dsseEnvelope.payloadType: ",
            [](json& b) { b["dsseEnvelope"]["payloadType"] = "text/plain"; }},
           {"dsseEnvelope.payload: ", [](json& b) { b["dsseEnvelope"]["payload"] = "?"; }},
           {"dsseEnvelope.signatures[0].sig: expected a signature of dsseEnvelope.payload",
            [&](json& b) { flipped(b["dsseEnvelope"]["payload"]); }},
           {"dsseEnvelope.signatures[0].sig: ",
            [&](json& b) { flipped(b["dsseEnvelope"]["signatures"][0]["sig"]); }},
           {"dsseEnvelope.signatures: ",
            [](json& b) { b["dsseEnvelope"]["signatures"].push_back(json::object()); }}}) {
    forge(r.change);
    rejects({}, r.field);
  }
}

// The statement of the golden signature, with one field changed as a signer could.
TEST(manifests, are_rejected_by_the_field) {
  struct row {
    const char* field;
    const char* pointer;  // of the statement
    json to;
  };
  const json bundle = json::parse(golden_text("folder.sig"));
  const std::string payload =
      *receipt::from_base64(bundle["dsseEnvelope"]["payload"].get<std::string>());
  ASSERT_TRUE(read_manifest(payload).has_value());
  for (const row& r : std::vector<row>{
           {"_type: ", "/_type", "x"},
           {"predicateType: ", "/predicateType", "x"},
           {"predicateType: it was made by a version of model_signing before 1.0", "/predicateType",
            "https://model_signing/Digests/v0.1"},
           {"subject: ", "/subject", json::array()},
           {"subject[0].digest.sha256: ", "/subject/0/digest/sha256", "00"},
           {"subject[0].digest.sha256: ", "/subject/0/digest/sha256", std::string(64, '0')},
           {"predicate: ", "/predicate", 1},
           {"predicate.serialization: ", "/predicate/serialization", 1},
           {"predicate.serialization.method: ", "/predicate/serialization/method", "tensors"},
           {"predicate.serialization.shard_size: ", "/predicate/serialization/method", "shards"},
           {"predicate.serialization.hash_type: ", "/predicate/serialization/hash_type", "md5"},
           {"predicate.serialization.allow_symlinks: ", "/predicate/serialization/allow_symlinks",
            "no"},
           {"predicate.serialization.ignore_paths: ", "/predicate/serialization/ignore_paths", 1},
           {"predicate.resources: ", "/predicate/resources", json::array()},
           {"predicate.resources[1]: ", "/predicate/resources/1", 1},
           {"predicate.resources[0].name: ", "/predicate/resources/0/name", "../config.json"},
           {"predicate.resources[0].name: ", "/predicate/resources/0/name", "/etc/passwd"},
           {"predicate.resources[0].name: ", "/predicate/resources/0/name", ""},
           {"predicate.resources[1].name: ", "/predicate/resources/1/name", "config.json"},
           {"predicate.resources: ", "/predicate/resources/0/name", "."},
           {"predicate.resources[0].algorithm: ", "/predicate/resources/0/algorithm", "blake2b"},
           {"predicate.resources[0].digest: ", "/predicate/resources/0/digest", "ABC"},
           {"subject[0].digest.sha256: ", "/predicate/resources/0/digest", std::string(64, '0')}}) {
    json statement = json::parse(payload);
    statement[json::json_pointer(r.pointer)] = r.to;
    const auto read = read_manifest(statement.dump());
    ASSERT_FALSE(read.has_value()) << r.pointer << " " << r.to;
    EXPECT_EQ(read.error().status, BITNET_REJECTED);
    EXPECT_EQ(read.error().message.find(r.field), 0U) << read.error().message;
  }
}

TEST(manifests, have_no_member_twice) {
  EXPECT_FALSE(read_manifest(R"({"_type": "a", "_type": "a"})").has_value());
}

TEST(manifests, of_shards_have_no_gaps) {
  const json bundle = json::parse(golden_text("shards.sig"));
  const std::string payload =
      *receipt::from_base64(bundle["dsseEnvelope"]["payload"].get<std::string>());
  ASSERT_TRUE(read_manifest(payload).has_value());
  for (const char* name : {"config.json:1:4", "config.json:0:0", "config.json:0:5", "config.json",
                           "config.json:0:-1", ":0:4", "config.json:0:18446744073709551615"}) {
    json statement = json::parse(payload);
    statement["predicate"]["resources"][0]["name"] = name;
    const auto read = read_manifest(statement.dump());
    ASSERT_FALSE(read.has_value()) << name;
    EXPECT_EQ(read.error().message.find("predicate.resources[0].name: "), 0U)
        << read.error().message;
  }
}

}  // namespace
}  // namespace bitnet::signature
