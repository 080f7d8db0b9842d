// Reads a request a line, and answers each by a line of JSON: what a schema takes, and what may be
// written by it. tests/schema/judge_test.py compares the answers with those of other programs.
//
//   schema_walker [VOCABULARY]
//
// VOCABULARY is a file of strings, a JSON list; each character is the byte of its number, there and
// in `masks`. A request is an object: `schema`, a text; and
//   accept   texts: which of them are whole
//   sample   how many texts are written at random, from `seed`, byte by byte or token by token
//   masks    beginnings of texts: the ids of the vocabulary that may come behind each
// The answer has `error`, or `accept`, `sample` and `masks`.
#include <fmt/core.h>

#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "grammar/guide.hpp"
#include "schema/compile.hpp"

namespace {

using namespace bitnet;  // NOLINT(google-build-using-namespace): the subject
using nlohmann::json;
using automaton = grammar::automaton;

// A text is bounded by this: behind it, what ends soonest is preferred.
constexpr std::size_t long_text = 400;
constexpr std::size_t longest_text = 20'000;

// Of bytes that may come, one that begins no new member or item where the text is long.
unsigned char choose(const std::vector<unsigned char>& from, bool is_long, std::mt19937& random) {
  if (is_long)
    for (const char* good = "\"}]0"; *good != 0; ++good)
      for (const unsigned char byte : from)
        if (byte == static_cast<unsigned char>(*good)) return byte;
  // Multi-byte characters are many; ASCII comes as often.
  std::vector<unsigned char> ascii;
  for (const unsigned char byte : from)
    if (byte < 0x80) ascii.push_back(byte);
  const auto& of = !ascii.empty() && random() % 8 != 0 ? ascii : from;
  // Ends come more often than their share of the bytes.
  for (const unsigned char byte : of)
    if ((byte == '"' || byte == '}' || byte == ']') && random() % 8 == 0) return byte;
  return of[random() % of.size()];
}

std::string bytes_of(const std::string& latin_1) {
  std::string out;
  for (std::size_t i = 0; i < latin_1.size(); ++i) {
    const auto byte = static_cast<unsigned char>(latin_1[i]);
    if (byte < 0x80)
      out.push_back(latin_1[i]);
    else
      out.push_back(static_cast<char>((byte & 3U) << 6 | (latin_1[++i] & 0x3F)));
  }
  return out;
}

json written(automaton& states, std::mt19937& random) {
  std::string text;
  automaton::state at = states.start();
  while (text.size() < longest_text) {
    if (states.is_complete(at) && (random() % 4 == 0 || text.size() > long_text)) return text;
    std::vector<unsigned char> may;
    for (int byte = 0; byte < 256; ++byte)
      if (states.next(at, static_cast<unsigned char>(byte)) != automaton::dead)
        may.push_back(static_cast<unsigned char>(byte));
    states.begin_work();
    if (may.empty()) return states.is_complete(at) ? json(text) : json(nullptr);
    const unsigned char byte = choose(may, text.size() > long_text, random);
    text.push_back(static_cast<char>(byte));
    at = states.next(at, byte);
  }
  return nullptr;
}

json answer(const json& request, const std::shared_ptr<const grammar::prefix_tree>& tree) {
  auto rules = schema::compile(request.at("schema").get<std::string>());
  if (!rules) return {{"error", rules.error().message}};
  json out;
  automaton states(*rules);
  std::mt19937 random(request.value("seed", 1U));
  for (const std::string& text : request.value("accept", std::vector<std::string>{})) {
    states.begin_work();
    out["accept"].push_back(states.is_complete(states.next(states.start(), text)));
  }
  for (int i = 0; i < request.value("sample", 0); ++i)
    out["sample"].push_back(written(states, random));
  for (const std::string& text : request.value("masks", std::vector<std::string>{})) {
    grammar::guide guide(*rules, tree);
    guide.begin({});
    std::vector<uint32_t> ids;
    if (guide.accept(bytes_of(text)))
      if (const auto mask = guide.allowed())
        for (uint32_t id = 0; id < tree->n_vocab(); ++id)
          if (((*mask)[id / 64] >> (id % 64) & 1) != 0) ids.push_back(id);
    out["masks"].push_back(ids);
  }
  if (states.trouble()) out["error"] = states.trouble()->message;
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words;
  if (argc > 1) words = json::parse(std::ifstream(argv[1])).get<std::vector<std::string>>();
  const auto tree = std::make_shared<const grammar::prefix_tree>(
      static_cast<uint32_t>(words.size()),
      [&](int32_t id) { return bytes_of(words[static_cast<std::size_t>(id)]); });
  for (std::string line; std::getline(std::cin, line);)
    std::cout << answer(json::parse(line), tree).dump(-1, ' ', true) << std::endl;
  return 0;
}
