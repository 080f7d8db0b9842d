// The tokenizer against llama.cpp's own test strings: 46 per vocabulary, read through the GGUF
// reader where the vocabulary lies in a GGUF file.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gguf/file.hpp"
#include "model/read.hpp"
#include "tokenizer/byte_table.hpp"
#include "tokenizer/tokenizer.hpp"

namespace {

using bitnet::tokenizer::byte_to_text;
using bitnet::tokenizer::token;
using bitnet::tokenizer::tokenizer;
using bitnet::tokenizer::vocabulary_data;

std::filesystem::path folder() {
  const char* data = std::getenv("BITNET_SHARED_DATA");
  return std::filesystem::path(data == nullptr ? "" : data) / "tokenizer";
}

std::string contents_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

vocabulary_data from_gguf(const std::filesystem::path& path) {
  const auto file = bitnet::gguf::file::open(path, bitnet::gguf::file::shards::first);
  if (!file) throw std::runtime_error(file.error().message);
  auto data = bitnet::model::read_vocabulary(file->metadata());
  if (!data) throw std::runtime_error(data.error().message);
  return *std::move(data);
}

std::string from_base64(const std::string& text) {
  std::string out;
  unsigned buffer = 0;
  int bits = 0;
  for (const char c : text) {
    const int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (value < 0) break;  // padding
    buffer = buffer << 6 | static_cast<unsigned>(value);
    bits += 6;
    if (bits >= 8) out.push_back(static_cast<char>(buffer >> (bits -= 8) & 0xFF));
  }
  return out;
}

std::string visible(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) out += byte_to_text(static_cast<unsigned char>(c));
  return out;
}

// A rank file says which byte strings are tokens, not how they came to be. The two parts of a token
// are what merging it by the lower ranks alone leaves.
std::vector<std::string> parts_of(const std::string& text, int rank,
                                  const std::unordered_map<std::string, int>& ranks) {
  std::vector<std::string> parts;
  for (const char c : text) parts.emplace_back(1, c);
  while (true) {
    int lowest = rank;
    size_t where = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ranks.find(parts[i] + parts[i + 1]);
      if (found != ranks.end() && found->second < lowest) {
        lowest = found->second;
        where = i;
      }
    }
    if (lowest == rank) return parts;
    parts[where] += parts[where + 1];
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(where) + 1);
  }
}

vocabulary_data from_ranks(const std::filesystem::path& path) {
  std::unordered_map<std::string, int> ranks;
  std::vector<std::string> tokens;
  std::istringstream lines(contents_of(path));
  std::string text;
  for (int rank = 0; lines >> text >> rank;) {
    tokens.push_back(from_base64(text));
    ranks[tokens.back()] = rank;
  }
  vocabulary_data data;
  data.model = "gpt2";
  data.architecture =
      "bitnet-b1.58";  // like the official file: no `pre`, and llama-bpe all the same
  for (size_t i = 0; i < tokens.size(); ++i) {
    data.tokens.push_back(visible(tokens[i]));
    if (tokens[i].size() < 2) continue;
    const auto parts = parts_of(tokens[i], static_cast<int>(i), ranks);
    if (parts.size() == 2) data.merges.push_back(visible(parts[0]) + " " + visible(parts[1]));
  }
  return data;
}

struct row {
  const char* family;
  const char* why;
  vocabulary_data (*read)(const std::filesystem::path&);
  const char* vocabulary;
};
void PrintTo(const row& r, std::ostream* os) {
  *os << r.family << ": " << r.why;
}

class conformance : public testing::TestWithParam<row> {};

TEST_P(conformance, gives_the_same_ids_and_the_same_text_back) {
  const row& r = GetParam();
  const auto base = folder() / r.family;
  const auto vocabulary = folder() / r.vocabulary;
  if (!std::filesystem::exists(vocabulary)) {
    GTEST_SKIP() << "no conformance data at " << vocabulary << "; set BITNET_SHARED_DATA";
  }
  const auto t = tokenizer::make(r.read(vocabulary));
  ASSERT_TRUE(t) << t.error().message;
  EXPECT_EQ(t->note(), "");

  const std::string inputs = contents_of(base.string() + ".inp");
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::istringstream expected(contents_of(base.string() + ".out"));
  int strings = 0;
  for (size_t begin = 0; begin < inputs.size(); ++strings) {
    const size_t end = std::min(inputs.find(separator, begin), inputs.size());
    const std::string text = inputs.substr(begin, end - begin);
    begin = end + separator.size();
    std::string line;
    ASSERT_TRUE(std::getline(expected, line));
    std::istringstream words(line);
    const std::vector<token> ids{std::istream_iterator<token>(words), {}};

    const auto got = t->encode(text, {});
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(*got, ids) << "string " << strings << ": " << text;
    const auto back = t->decode(*got, false);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, text) << "string " << strings;
  }
  EXPECT_EQ(strings, 46);
}

INSTANTIATE_TEST_SUITE_P(
    llama_cpp, conformance,
    testing::Values(row{"llama-bpe", "ignore_merges and the rule for bitnet files without `pre`",
                        from_ranks, "llama-bpe.tiktoken"},
                    row{"gpt-2", "50000 merges, read through GGUF", from_gguf, "gpt-2.gguf"},
                    row{"llama-spm", "scores and byte tokens, read through GGUF", from_gguf,
                        "llama-spm.gguf"}));

}  // namespace
