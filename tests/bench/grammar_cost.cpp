// What a grammar costs a token: time to know which tokens may come next, and to take the one that
// does.
//
//   build/release/tests/bench/bench_grammar VOCABULARY [GRAMMAR...]
//
// VOCABULARY is a GGUF file, or a list of tokens as tiktoken has them (base64 and a number a line).
// Grammars are files of GBNF, or of JSON schemas (.json); without any, some are built in. Texts are
// drawn at random from what may come, 50 of up to 200 tokens: `met first` are steps whose mask was
// made, `met again` those whose mask was there.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gguf/file.hpp"
#include "grammar/gbnf.hpp"
#include "grammar/guide.hpp"
#include "model/read.hpp"
#include "schema/compile.hpp"

namespace {

using namespace bitnet;  // NOLINT(google-build-using-namespace): the subject
// Of this thread alone: other programs on the machine do not count.
std::chrono::nanoseconds thread_time() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

double us_since(std::chrono::nanoseconds start) {
  return std::chrono::duration<double, std::micro>(thread_time() - start).count();
}

std::string contents_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string from_base64(const std::string& text) {
  static const std::string digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned buffer = 0;
  int bits = 0;
  for (const char c : text) {
    const auto value = digits.find(c);
    if (value == std::string::npos) break;  // padding
    buffer = buffer << 6 | static_cast<unsigned>(value);
    bits += 6;
    if (bits >= 8) out.push_back(static_cast<char>(buffer >> (bits -= 8) & 0xFF));
  }
  return out;
}

std::vector<std::string> words_of(const std::string& file) {
  std::vector<std::string> words;
  if (file.ends_with(".tiktoken")) {
    std::ifstream in(file);
    for (std::string word, number; in >> word >> number;) words.push_back(from_base64(word));
    return words;
  }
  const auto opened = gguf::file::open(file, gguf::file::shards::first);
  if (!opened) throw std::runtime_error(opened.error().message);
  auto data = model::read_vocabulary(opened->metadata());
  if (!data) throw std::runtime_error(data.error().message);
  auto tokens = tokenizer::tokenizer::make(*std::move(data));
  if (!tokens) throw std::runtime_error(tokens.error().message);
  for (uint32_t i = 0; i < tokens->size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    words.push_back(tokens->ends_generation(id) ? ""
                                                : tokens->piece(id, false, false).value_or(""));
  }
  return words;
}

const std::pair<const char*, const char*> built_in[] = {
    {"json", R"(root ::= object
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? "}" ws
array ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" ([^"\\\x00-\x1f\x7f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)? ws
ws ::= [ \n]{0,4})"},
    {"any text", "root ::= .*"},
    {"a choice", R"(root ::= ("yes" | "no" | "perhaps") ("," " " root)?)"},
    {"counted", "root ::= [^\"\\n]{0,500}"},
    {"palindromes", R"(root ::= "a" root "a" | "b" root "b" | "e" root "e" | "i" root "i" |
 "n" root "n" | "o" root "o" | "r" root "r" | "s" root "s" | "t" root "t" | " " root " " | [a-z])"},
};

const std::pair<const char*, const char*> built_in_schemas[] = {
    {"person", R"({"type":"object","properties":{"name":{"type":"string","maxLength":60},
"age":{"type":"integer","minimum":0,"maximum":130},"email":{"type":"string","format":"email"},
"tags":{"type":"array","items":{"enum":["red","green","blue"]},"maxItems":5}},
"required":["name","age"],"additionalProperties":false})"},
    {"tree", R"({"$defs":{"n":{"type":"object","properties":{"value":{"type":"number"},
"text":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/n"}}},
"required":["value"],"additionalProperties":false}},"$ref":"#/$defs/n"})"},
    {"any value", "{}"},
    {"tools", R"({"anyOf":[{"type":"object","properties":{"tool":{"const":"weather"},
"city":{"type":"string","minLength":1,"maxLength":200},"unit":{"enum":["C","F"]}},
"required":["tool","city"],"additionalProperties":false},{"type":"object","properties":{
"tool":{"const":"search"},"query":{"type":"string","maxLength":1000},
"since":{"type":"string","format":"date-time"}},"required":["tool","query"],
"additionalProperties":false}]})"},
    {"map", R"({"type":"object","additionalProperties":{"type":"array","items":{"type":"integer"}},
"propertyNames":{"pattern":"^[a-z_]{1,30}$"}})"},
};

result<grammar::rule_set> rules_of(const std::string& text, bool is_schema) {
  return is_schema ? schema::compile(text) : grammar::parse_gbnf(text);
}

void measure(const std::string& name, const std::string& text, bool is_schema,
             const std::vector<std::string>& words,
             const std::shared_ptr<const grammar::prefix_tree>& tree) {
  const auto begun = thread_time();
  auto rules = rules_of(text, is_schema);
  const double compiled = us_since(begun);
  if (!rules) {
    fmt::print("{}: {}\n", name, rules.error().message);
    return;
  }
  grammar::guide guide(*std::move(rules), tree);
  std::vector<double> first, again, taking;
  std::mt19937 random(1);
  std::vector<std::vector<uint64_t>> masks;
  for (int i = 0; i < 50; ++i) {
    guide.begin({});
    for (int n = 0; n < 200; ++n) {
      const auto known = guide.n_masks();
      auto start = thread_time();
      const auto allowed = guide.allowed();
      const double took = us_since(start);
      if (!allowed) {
        fmt::print("{}: {}\n", name, allowed.error().message);
        return;
      }
      (guide.n_masks() == known ? again : first).push_back(took);
      std::vector<int32_t> ids;
      for (std::size_t id = 0; id < words.size(); ++id)
        if (((*allowed)[id / 64] >> (id % 64) & 1) != 0) ids.push_back(static_cast<int32_t>(id));
      if (ids.empty()) break;
      start = thread_time();
      if (!guide.accept(words[static_cast<std::size_t>(ids[random() % ids.size()])])) return;
      taking.push_back(us_since(start));
    }
  }
  const auto mean = [](const std::vector<double>& of) {
    double sum = 0;
    for (const double x : of) sum += x;
    return of.empty() ? 0 : sum / static_cast<double>(of.size());
  };
  std::vector<double> all = first;
  all.insert(all.end(), again.begin(), again.end());
  std::ranges::sort(all);
  fmt::print(
      "{:12} compiled {:8.1f} us, met first {:5} x {:8.1f} us (most {:9.1f}), met again {:5} x "
      "{:5.1f} us, taking {:.2f} us; very first {:.1f} us, all {:.1f} us, p99 {:.1f} us\n",
      name, compiled, first.size(), mean(first), first.empty() ? 0 : std::ranges::max(first),
      again.size(), mean(again), mean(taking), first.empty() ? 0 : first.front(), mean(all),
      all.empty() ? 0 : all[all.size() * 99 / 100]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_grammar VOCABULARY [GRAMMAR...]\n");
    return 2;
  }
  const auto words = words_of(argv[1]);
  const auto start = thread_time();
  const auto tree = std::make_shared<const grammar::prefix_tree>(
      static_cast<uint32_t>(words.size()),
      [&](int32_t id) { return words[static_cast<std::size_t>(id)]; });
  fmt::print("{} tokens, {} nodes, made in {:.1f} ms\n", words.size(), tree->nodes().size(),
             us_since(start) / 1000);
  for (int i = 2; i < argc; ++i)
    measure(argv[i], contents_of(argv[i]), std::string(argv[i]).ends_with(".json"), words, tree);
  if (argc == 2) {
    for (const auto& [name, text] : built_in) measure(name, text, false, words, tree);
    for (const auto& [name, text] : built_in_schemas) measure(name, text, true, words, tree);
  }
  return 0;
}
