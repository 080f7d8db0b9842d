// Any vocabulary and any text: the vocabulary is rejected with a reason, or every text that it
// takes comes back from its ids. WordPiece gives plain words back, which have the same ids again;
// what drops white space gives no more than the rest.
//
// Input  lines up to an empty one describe the vocabulary, the rest is the text. The first letter
//        of a line says what it holds: m model, p pre, a architecture, t token (type digit, score
//        letter, text), g merge, + the 256 tokens that stand for the bytes, b e o u s d special ids
//        (bos eos eot unknown separator padding), f flags (512 and more: a rule by its number)
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/byte_table.hpp"
#include "tokenizer/pre_tokenizer.hpp"
#include "tokenizer/tokenizer.hpp"

namespace {

using namespace bitnet::tokenizer;  // NOLINT(google-build-using-namespace): the subject

void must(bool truth) {
  if (!truth) std::abort();
}

void add_token(vocabulary_data& v, std::string text, int type, float score) {
  v.tokens.push_back(std::move(text));
  v.types.push_back(type);
  v.scores.push_back(score);
}

alphabet letters_of(const vocabulary_data& v) {
  return pre_rule_for(v.model == "gpt2" ? v.pre : v.model, v.architecture).letters;
}

void add_byte_tokens(vocabulary_data& v) {
  for (int b = 0; b < 256; ++b) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    if (v.model == "llama" || letters_of(v) != alphabet::bytes) {
      add_token(v, std::string("<0x") + digits[b / 16] + digits[b % 16] + ">", 6, 0);
    } else {
      add_token(v, std::string(byte_to_text(static_cast<unsigned char>(b))), 1, 0);
    }
  }
}

std::string any_rule(size_t index) {
  const auto names = pre_tokenizer_names();
  return std::string(names[index % names.size()]);
}

void read_line(vocabulary_data& v, std::string_view line) {
  const std::string_view rest = line.substr(1);
  int64_t id = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), id);
  switch (line[0]) {
    case 'm':
      v.model = rest;
      break;
    case 'p':
      v.pre = rest;
      break;
    case 'a':
      v.architecture = rest;
      break;
    case 't':
      if (rest.size() >= 2) {
        add_token(v, std::string(rest.substr(2)), rest[0] - '0', static_cast<float>(rest[1]));
      }
      break;
    case 'g':
      v.merges.emplace_back(rest);
      break;
    case '+':
      add_byte_tokens(v);
      break;
    case 'b':
      v.bos = id;
      break;
    case 'e':
      v.eos = id;
      break;
    case 'o':
      v.eot = id;
      break;
    case 'u':
      v.unknown = id;
      break;
    case 's':
      v.separator = id;
      break;
    case 'd':
      v.padding = id;
      break;
    case 'f':
      if ((id & 1) != 0) v.add_space_prefix = (id & 2) != 0;
      if ((id & 4) != 0) v.types.clear();
      if ((id & 8) != 0) v.scores.clear();
      if ((id & 32) != 0) v.compose = true;
      if ((id & 64) != 0) v.lowercase = false;
      if ((id & 128) != 0) v.strip_accents = false;
      if ((id & 256) != 0) v.model = "bert";
      if ((id & 512) != 0) v.pre = any_rule(static_cast<size_t>(id) >> 10);
      if ((id & 16) != 0) v.scores.assign(v.scores.size(), 0.0F / static_cast<float>(id - id));
      break;
    default:
      break;
  }
}

// Whether a blank, marked, went out as the three bytes of its mark: a merge had made it a part of
// what is no token. Bytes are read back as they are.
bool blank_in_bytes(const tokenizer& t, const std::vector<token>& ids) {
  const auto first = t.find("<0xE2>"), second = t.find("<0x96>"), third = t.find("<0x81>");
  if (!first || !second || !third) return false;
  return !std::ranges::search(ids, std::vector{*first, *second, *third}).empty();
}

// Whether the ids must give exactly `text` back: nothing was lost to the unknown token, and what
// marks blanks can write ones that the text did not hold already.
bool reversible(const tokenizer& t, alphabet letters, bool blank_is_text, std::string_view text,
                const std::vector<token>& ids) {
  if (t.unknown() && std::ranges::find(ids, *t.unknown()) != ids.end()) return false;
  if (t.kind() == "bert") return false;
  if (t.kind() != "llama" && letters != alphabet::marked_characters) {
    return letters == alphabet::bytes;
  }
  if (text.find("\xE2\x96\x81") != std::string_view::npos) return false;
  return blank_is_text && (t.kind() == "llama" || !blank_in_bytes(t, ids));
}

// Whether the ids stand for words of WordPiece, all known and none of them cut out of the text.
bool words_only(const tokenizer& t, const std::vector<int32_t>& types,
                const std::vector<token>& ids) {
  if (t.kind() != "bert" || std::ranges::find(types, 4) != types.end()) return false;
  return !t.unknown() || std::ranges::find(ids, *t.unknown()) == ids.end();
}

// Where all is plain, no control token comes, though they are parsed; half a text may be plain.
void check_plain_ranges(const tokenizer& t, const std::vector<int32_t>& types,
                        std::string_view text) {
  const text_range all[] = {{0, text.size()}};
  const text_range second_half[] = {{text.size() / 2, text.size()}};
  const auto parsed = t.encode(text, {.parse_special = true});
  const auto plain = t.encode(text, {.parse_special = true, .plain = all});
  const auto half = t.encode(text, {.parse_special = true, .plain = second_half});
  must(parsed.has_value() == plain.has_value() && parsed.has_value() == half.has_value());
  if (!plain || types.empty()) return;
  for (const token id : *plain) must(types[static_cast<size_t>(id)] != 3 || id == t.unknown());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  vocabulary_data v;
  while (!input.empty()) {
    const std::string_view line = input.substr(0, input.find('\n'));
    input.remove_prefix(std::min(line.size() + 1, input.size()));
    if (line.empty()) break;
    read_line(v, line);
  }
  const auto types = v.types;
  const alphabet letters = letters_of(v);
  const bool composing = v.compose.value_or(false);
  const auto made = tokenizer::make(std::move(v));
  if (!made) {
    must(!made.error().message.empty());
    return 0;
  }
  const auto blank = made->find("\xE2\x96\x81");
  const bool blank_is_text = blank && !types.empty() && types[static_cast<size_t>(*blank)] == 1;
  for (const bool parse_special : {false, true}) {
    const auto ids = made->encode(input, {.parse_special = parse_special});
    if (!ids) {
      must(!ids.error().message.empty());
      continue;
    }
    const auto text = made->decode(*ids, true);
    must(text.has_value());
    if (!parse_special && words_only(*made, types, *ids)) {
      const auto again = made->encode(*text, {.parse_special = parse_special});
      must(again && *again == *ids);
    }
    if (!composing && reversible(*made, letters, blank_is_text, input, *ids)) must(*text == input);
    utf8_stream stream;
    for (const token id : *ids) {
      must(id >= 0 && static_cast<uint32_t>(id) < made->size());
      const bool control = !types.empty() && types[static_cast<size_t>(id)] == 3;
      must(parse_special || !control || id == made->unknown());
      (void)stream.push(*made->piece(id, false, false));
    }
    (void)stream.finish();
  }
  check_plain_ranges(*made, types, input);
  return 0;
}
