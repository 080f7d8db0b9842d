// What `bitnet crossval` knows without another engine: where builds lie, how rows differ, and the
// stream of the other process.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <map>

#include "../scratch_folder.hpp"
#include "crossval/compare.hpp"
#include "crossval/discovery.hpp"
#include "crossval/stream.hpp"

namespace {

namespace crossval = bitnet::host::crossval;
using bitnet::host::environment;
using crossval::library_facts;

// A tree in which libraries are texts: the words in them are what an inspector would find.
class tree : public testing::Test {
 protected:
  void add(const std::string& file, const std::string& content) { folder_.write(file, content); }
  [[nodiscard]] std::string at(const std::string& name) const { return folder_.path() / name; }
  [[nodiscard]] crossval::discovery discovered() const {
    return crossval::discover({"", folder_.path(), "a test"}, inspect);
  }
  static std::expected<library_facts, std::string> inspect(const std::string& path) {
    const std::string text = bitnet::test::scratch_folder::read(path);
    const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
    if (has("broken")) return std::unexpected("no ELF file");
    return library_facts{has("llama"), has("i2_s"), has("cuda")};
  }

 private:
  bitnet::test::scratch_folder folder_;
};

struct tree_row {
  const char* why;
  std::map<std::string, std::string> files;
  const char* library;  // "": none is found
  uint32_t tier;
  bool bitnet_cpp, cuda;
};
const tree_row trees[] = {
    {"nothing", {}, "", 0, false, false},
    {"llama.cpp", {{"build/bin/libllama.so", "llama"}}, "build/bin/libllama.so", 1, false, false},
    {"an install prefix", {{"lib/libllama.so", "llama"}}, "lib/libllama.so", 3, false, false},
    {"the first tier before the third",
     {{"lib/libllama.so", "llama"}, {"build/lib/libllama.so", "llama cuda"}},
     "build/lib/libllama.so",
     1,
     false,
     true},
    {"bitnet.cpp, whose libraries are in two folders",
     {{"build/3rdparty/llama.cpp/src/libllama.so", "llama"},
      {"build/3rdparty/llama.cpp/ggml/src/libggml.so", "i2_s"}},
     "build/3rdparty/llama.cpp/src/libllama.so",
     2,
     true,
     false},
    {"CUDA by a library beside it",
     {{"build/bin/libllama.so", "llama"}, {"build/bin/libggml-cuda.so", ""}},
     "build/bin/libllama.so",
     1,
     false,
     true},
    {"one that is no library, and one that is",
     {{"build/bin/libllama.so", "broken"}, {"build/src/libllama.so", "llama"}},
     "build/src/libllama.so",
     2,
     false,
     false},
    {"another library of that name", {{"build/bin/libllama.so", "x"}}, "", 0, false, false},
    {"a static one", {{"build/bin/libllama.a", "llama"}}, "", 0, false, false},
};

TEST(Discovery, FindsTheFirstThatCanBeUsed) {
  for (const tree_row& row : trees) {
    SCOPED_TRACE(row.why);
    const bitnet::test::scratch_folder folder;
    for (const auto& [file, content] : row.files) folder.write(file, content);
    const auto seen = crossval::discover({"", folder.path(), ""}, [](const std::string& path) {
      const std::string text = bitnet::test::scratch_folder::read(path);
      const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
      return has("broken") ? std::expected<library_facts, std::string>(std::unexpected("no ELF"))
                           : library_facts{has("llama"), has("i2_s"), has("cuda")};
    });
    ASSERT_EQ(seen.found.has_value(), *row.library != '\0');
    if (!seen.found) continue;
    EXPECT_EQ(seen.found->library, folder.path() / row.library);
    EXPECT_EQ(seen.found->tier, row.tier);
    EXPECT_EQ(seen.found->bitnet_cpp, row.bitnet_cpp);
    EXPECT_EQ(seen.found->cuda, row.cuda);
  }
}

TEST_F(tree, SaysWhyAFolderHasNone) {
  add("build/bin/libllama.a", "");
  add("build/lib/libllama.dylib", "");
  add("lib/libllama.so", "broken");
  add("build/x", "");
  std::map<std::string, std::string> verdicts;
  for (const auto& one : discovered().searched) verdicts[one.path] = one.verdict;
  EXPECT_NE(verdicts[at("build/bin")].find("-DBUILD_SHARED_LIBS=ON"), std::string::npos);
  EXPECT_NE(verdicts[at("build/lib")].find("macOS"), std::string::npos);
  EXPECT_EQ(verdicts[at("lib")], "no ELF file");
  EXPECT_EQ(verdicts[at("build")], "no libllama.so");
  EXPECT_EQ(verdicts[at("build/src")], "no such folder");
}

TEST_F(tree, DoesNotUseWhatOthersMayWriteTo) {
  add("lib/libllama.so", "llama");
  EXPECT_EQ(crossval::distrusted(at("lib/libllama.so")), "");
  ::chmod(at("lib").c_str(), 0777);
  EXPECT_NE(crossval::distrusted(at("lib/libllama.so")).find("other users may write to"),
            std::string::npos);
  EXPECT_FALSE(discovered().found);
  ::chmod(at("lib").c_str(), 0755);
  ::chmod(at("lib/libllama.so").c_str(), 0666);
  EXPECT_FALSE(discovered().found);
}

TEST(Places, AreChosenByTheFirstThatIsSet) {
  using names = std::map<std::string, std::string, std::less<>>;
  const auto of = [](const char* folder, const char* root, const names& variables,
                     std::vector<std::string>& notes) {
    return crossval::places_of({folder, "F"}, {root, "R"}, environment(variables), notes);
  };
  std::vector<std::string> notes;
  EXPECT_EQ(of("/f", "/r", {{"BITNET_CPP_PATH", "/p"}}, notes).library_folder, "/f");
  EXPECT_EQ(of("/f", "/r", {}, notes).root, "");
  EXPECT_EQ(of("", "/r", {{"BITNET_CPP_PATH", "/p"}}, notes).root, "/r");
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(of("", "", {{"BITNET_CPP_PATH", "/p"}}, notes).root, "/p");
  EXPECT_EQ(notes.size(), 1U);
  notes.clear();
  EXPECT_EQ(of("", "", {{"BITNET_CPP_PATH", ""}, {"XDG_CACHE_HOME", "/c"}}, notes).root,
            "/c/bitnet_cpp");
  EXPECT_EQ(of("", "", {}, notes).root, "");
  EXPECT_TRUE(notes.empty());
  EXPECT_TRUE(crossval::discover({}, nullptr).searched.empty());
}

TEST(Rows, AreCompared) {
  const std::vector<float> a = {3, 4, 0};
  const auto same = crossval::compare_rows(a, a);
  EXPECT_DOUBLE_EQ(same.cosine, 1);
  EXPECT_EQ(same.max_abs, 0);
  EXPECT_TRUE(same.same_top);
  const auto other = crossval::compare_rows(a, std::vector<float>{4, 3, 0});
  EXPECT_DOUBLE_EQ(other.cosine, 24.0 / 25);
  EXPECT_EQ(other.max_abs, 1);
  EXPECT_FALSE(other.same_top);
  const std::vector<float> zeros = {0, 0, 0};
  EXPECT_EQ(crossval::compare_rows(zeros, zeros).cosine, 1);
  EXPECT_EQ(crossval::compare_rows(a, zeros).cosine, 0);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    EXPECT_FALSE(crossval::compare_rows(a, std::vector<float>{3, bad, 0}).finite);
    EXPECT_FALSE(crossval::compare_rows(std::vector<float>{3, bad, 0}, a).finite);
  }
}

TEST(Prompts, DivergeAtTheFirstPositionBeyondTheBounds) {
  const std::vector<int32_t> ids = {1, 2, 3, 4};
  crossval::prompt_comparison one(ids, ids, {.min_cosine = 0.9, .max_abs = 2});
  one.add({.cosine = 0.95, .max_abs = 1, .same_top = false});
  one.add({.cosine = 0.9, .max_abs = 2});
  EXPECT_TRUE(one.found().agrees()) << "a bound is within";
  one.add({.cosine = 0.99, .max_abs = 2.5});
  one.add({.finite = false});
  EXPECT_EQ(one.found().first_beyond, 2U);
  EXPECT_EQ(one.found().first_not_finite, 3U);
  EXPECT_EQ(one.found().first_other_top, 0U);
  EXPECT_EQ(one.found().n_same_top, 2U);
  EXPECT_EQ(one.found().min_cosine_at, 1U);
  EXPECT_EQ(one.found().max_abs_at, 2U);
  EXPECT_FALSE(one.found().agrees());
}

TEST(Prompts, HaveTheFirstOtherToken) {
  const auto first = [](std::vector<int32_t> a, std::vector<int32_t> b) {
    return crossval::prompt_comparison(a, b, {}).found().first_other_token;
  };
  EXPECT_EQ(first({1, 2}, {1, 2}), std::nullopt);
  EXPECT_EQ(first({1, 2}, {1, 3}), 1U);
  EXPECT_EQ(first({1, 2}, {1}), 1U);
  EXPECT_EQ(first({}, {1}), 0U);
}

// A record as the child writes it.
std::string written(crossval::record kind, const std::string& body) {
  const uint32_t head[] = {static_cast<uint32_t>(kind), static_cast<uint32_t>(body.size())};
  return std::string(reinterpret_cast<const char*>(head), sizeof head) + body;
}

crossval::stream_reader reader_of(std::string& bytes) {
  return crossval::stream_reader([&bytes](std::span<std::byte> to) -> bitnet::host::result<void> {
    if (to.size() > bytes.size()) return bitnet::host::fail(13, "no more");
    std::memcpy(to.data(), bytes.data(), to.size());
    bytes.erase(0, to.size());
    return {};
  });
}

TEST(Stream, IsReadInItsOrder) {
  const uint32_t n_vocab = 2;
  const std::string vocabulary(reinterpret_cast<const char*>(&n_vocab), sizeof n_vocab);
  std::string bytes = written(crossval::record::library, "a \x1b[1m") +
                      written(crossval::record::model, vocabulary + "m") +
                      written(crossval::record::tokens, std::string(8, '\1')) +
                      written(crossval::record::row, std::string(8, '\0')) +
                      written(crossval::record::failed, "reason");
  auto from = reader_of(bytes);
  EXPECT_EQ(*from.library(), "a \\x1b[1m") << "it goes to a terminal";
  EXPECT_EQ(from.model()->n_vocab, 2U);
  EXPECT_EQ(*from.tokens(), (std::vector<int32_t>{0x01010101, 0x01010101}));
  std::vector<float> row(2);
  EXPECT_TRUE(from.row(row));
  const auto failed = from.row(row);
  EXPECT_EQ(failed.error().message, "the other engine: reason");
  EXPECT_EQ(failed.error().exit_code, 13);
}

TEST(Stream, OfAnotherFormIsRejected) {
  for (std::string bytes :
       {std::string("llama_model_loader: loaded meta data"), written(crossval::record::done, ""),
        written(crossval::record::library, std::string(5000, 'x'))}) {
    const auto got = reader_of(bytes).library();
    EXPECT_NE(got.error().message.find("is no stream of logits"), std::string::npos);
  }
}

TEST(Request, IsReadAsItWasWritten) {
  const std::vector<crossval::asked_prompt> asked = {
      {"one", {1, 2}}, {"", {}}, {std::string("\n|\0", 3), {-1}}};
  const std::string text = crossval::write_request(asked);
  const auto read = crossval::read_request(text);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 3U);
  EXPECT_EQ((*read)[0].text, "one");
  EXPECT_EQ((*read)[0].ids, asked[0].ids);
  EXPECT_FALSE(crossval::read_request(text.substr(0, text.size() - 1)));
}

}  // namespace
