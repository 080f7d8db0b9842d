// The table of pre-tokenizer names; rules and sources: docs/reference/tokenizers.md#splitting-rules
// Expressions are the published ones unless a comment says otherwise.
#include <fmt/core.h>

#include <algorithm>

#include "tokenizer/pre_tokenizer.hpp"
#include "tokenizer/utf8.hpp"

namespace bitnet::tokenizer {
namespace {

using steps = std::vector<split_step>;

// ---- one expression each
constexpr std::string_view gpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view llama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view qwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view qwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view no_contractions =
    R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view whole_numbers =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view bailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view seed_coder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view jais2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})";
// Published with `(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+`, which matches the same: the character behind
// a letter decides. Possessive, so that a long text needs no stack.
constexpr std::string_view exaone_moe =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}\p{M}*+(?: ?\p{L}\p{M}*+)*+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";

// ---- words by capital and small letters
constexpr std::string_view gpt_4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view gpt_4o_single_digits =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view tekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Published with the intersections [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]] and
// [\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]. PCRE2 has no intersections, so each is written as a
// negation.
constexpr std::string_view kimi =
    R"(\p{sc:Han}+|[^\r\n\p{L}\p{N}]?[^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}]*[^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}]+[^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// ---- parts of rules with several steps
constexpr std::string_view digit = R"(\p{N})";
constexpr std::string_view digits = R"(\p{N}+)";
constexpr std::string_view three_digits = R"(\p{N}{1,3})";
constexpr std::string_view three_ascii_digits = R"([0-9][0-9][0-9])";
constexpr std::string_view line_end = R"([\r\n])";
constexpr std::string_view falcon_punctuation = R"([\p{P}\$\+<=>\^~\|`]+)";
constexpr std::string_view punctuation = R"([\p{P}\$\+<=>\^~\|]+)";

// The next three count digits from the end of a number. As published, each look-ahead reads the
// whole rest of the number. Here only the first group of a number looks ahead; behind a group the
// next three digits are the next group.
// \d{1,3}(?=(?:\d{3})*\b), with \b as in Oniguruma, the engine of Hugging Face's tokenizers: there
// the numerals of Latin-1, such as U+00B2, are word characters, too.
constexpr std::string_view thousands =
    R"(\G(?<=\p{Nd})\p{Nd}{3}|(?<!\p{Nd})\p{Nd}{1,3}(?=(?:\p{Nd}{3})*+(?![\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE}])))";
// \p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))
constexpr std::string_view thousands_of_any_numeral =
    R"(\G(?<=\p{N})\p{N}{3}|(?<!\p{N})\p{N}{1,3}(?=(?:\p{N}{3})*+(?!\p{N})))";
// (?=(\d{3})+(?!\d)), a cut before each group: hence with split_step::cut_before
constexpr std::string_view before_thousands =
    R"(\G(?<=\p{Nd}{3})\p{Nd}{3}|\p{Nd}{3}(?=(?:\p{Nd}{3})*+(?!\p{Nd})))";

constexpr std::string_view deepseek3_han =
    R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr std::string_view deepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view spark =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view deepseek_letters =
    R"(\s?[)"
    R"(\x{41}-\x{5A}\x{61}-\x{7A}\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA})"
    R"(\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377})"
    R"(\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1})"
    R"(\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5})"
    R"(\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF})"
    R"(\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15})"
    R"(\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59})"
    R"(\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE})"
    R"(\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB})"
    R"(\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107})"
    R"(\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128})"
    R"(\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149})"
    R"(\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE})"
    R"(\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F})"
    R"(\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06})"
    R"(\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F})"
    R"(\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})"
    R"(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943})"
    R"(]+)";
constexpr std::string_view deepseek_signs =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
// Published as \s+$, which reads each run of blanks again from each blank in it.
constexpr std::string_view blanks_at_the_end = R"((?<!\s)\s++\z)";
constexpr std::string_view deepseek_han =
    R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr std::string_view youtu_scripts =
    R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr std::string_view afmoe_scripts =
    R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF}\x{FF65}-\x{FF9F}\x{2F00}-\x{2FDF}\x{E40}-\x{E7F}\x{E80}-\x{EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)";
constexpr std::string_view bloom =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)";
// Published as (?:\r?
// )+(?!\r?
// ), whose look-ahead never fails after the longest run.
constexpr std::string_view line_ends = R"((?:\r?\n)++)";
constexpr std::string_view line_feeds = R"(\n+)";

struct row {
  std::vector<std::string_view> names;
  steps split;
  whole_words whole = whole_words::none;
  begin_rule bos = begin_rule::if_asked;
  alphabet letters = alphabet::bytes;
};

const std::vector<row>& rule_table() {
  static const std::vector<row> rows = {
      {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0",
                 "lfm2", "jina-v5-nano", "falcon_e", "falcon-e"},
       .split = {llama3},
       .whole = whole_words::all,
       .bos = begin_rule::by_default},
      {.names = {"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"}, .split = {llama3}},
      {.names = {"jais-2"}, .split = {jais2}},
      {.names = {"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan",
                 "solar-open", "grok-2"},
       .split = {qwen2}},
      {.names = {"qwen35"}, .split = {qwen35}},
      {.names = {"ufakzeka"}, .split = {no_contractions}},
      {.names = {"bailingmoe", "bailingmoe2", "llada-moe"}, .split = {bailing}},
      {.names = {"seed-coder"}, .split = {seed_coder}},
      {.names = {"exaone-moe"}, .split = {exaone_moe}},
      {.names = {"minicpm5"}, .split = {three_digits, whole_numbers}, .whole = whole_words::all},
      {.names = {"laguna"}, .split = {{line_ends, split_step::cut_before}, qwen2}},
      {.names = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, .split = {gpt_4o}},
      {.names = {"granite-embed-multi-97m"}, .split = {gpt_4o}, .whole = whole_words::all},
      {.names = {"tiny_aya", "cohere2moe"}, .split = {thousands, gpt_4o}},
      {.names = {"youtu"},
       .split = {youtu_scripts, gpt_4o_single_digits},
       .whole = whole_words::all},
      {.names = {"tekken"},
       .split = {tekken},
       .whole = whole_words::all,
       .bos = begin_rule::by_default},
      {.names = {"kimi-k2", "kimi-k25"}, .split = {kimi}},
      {.names = {"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "exaone4",
                 "gigachat", "a.x-4.0", "mellum", "modern-bert", "jina-es", "jina-de", "jina-v2-es",
                 "jina-v2-de", "jina-v1-en", "jina-v2-code", "roberta-bpe"},
       .split = {gpt2}},
      {.names = {"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b",
                 "mellum2"},
       .split = {digit, gpt2}},
      {.names = {"falcon"}, .split = {falcon_punctuation, gpt2, three_ascii_digits}},
      {.names = {"bloom", "poro-chat", "gpt3-finnish"}, .split = {bloom}},
      {.names = {"viking"}, .split = {bloom, digit}},
      {.names = {"superbpe"}, .split = {digits, {before_thousands, split_step::cut_before}}},
      {.names = {"deepseek-llm"},
       .split = {line_end, deepseek_letters, deepseek_signs, blanks_at_the_end, deepseek_han,
                 digit}},
      {.names = {"deepseek-coder"},
       .split = {line_end, R"(\s?\p{L}+)", R"(\s?\p{P}+)", deepseek_han, digit}},
      {.names = {"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
       .split = {three_digits, deepseek3_han, deepseek3}},
      {.names = {"spark2_5"}, .split = {three_digits, deepseek3_han, spark, digit}},
      {.names = {"afmoe"}, .split = {thousands_of_any_numeral, afmoe_scripts, deepseek3}},
      {.names = {"chameleon"},
       .split = {"<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", R"([\t\n]|    |  )", digit,
                 R"([\p{P}!-/:-@\[-`{-~])", gpt2},
       .bos = begin_rule::by_default},
      {.names = {"gemma4", "granite-embed-multi-311m"},
       .split = {line_feeds},
       .whole = whole_words::line_ends,
       .bos = begin_rule::always,
       .letters = alphabet::marked_characters},
      {.names = {"sarvam-moe"}, .split = {line_feeds}, .letters = alphabet::marked_characters},
      {.names = {"whitespace"},
       .split = {{R"(\S+)", split_step::only_matches}},
       .letters = alphabet::characters},
      // Also for unknown names.
      {.names = {"default"}, .split = {punctuation, gpt2, digits, three_ascii_digits}},
  };
  return rows;
}

const row* find_row(std::string_view name) {
  for (const row& r : rule_table()) {
    if (std::ranges::find(r.names, name) != r.names.end()) return &r;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string_view> pre_tokenizer_names() {
  std::vector<std::string_view> out;
  for (const row& r : rule_table()) out.insert(out.end(), r.names.begin(), r.names.end());
  return out;
}

pre_rule pre_rule_for(std::string_view pre, std::string_view architecture) {
  // The official BitNet file lacks the key, and any other rule breaks its text.
  if (pre.empty() && architecture.starts_with("bitnet")) pre = "llama-bpe";
  const row* found = find_row(pre);
  const row& r = found != nullptr ? *found : rule_table().back();
  pre_rule rule{.split = r.split, .letters = r.letters, .whole = r.whole, .bos = r.bos, .note = ""};
  if (pre.empty()) {
    rule.note =
        "the file has no tokenizer.ggml.pre; \"default\" is used and some text may be split "
        "wrongly";
  } else if (pre == "falcon_e" || pre == "falcon-e") {
    rule.note = fmt::format(
        "the pre-tokenizer {} is not documented; llama-bpe is used, as other readers do",
        in_quotes(pre));
  } else if (found == nullptr) {
    rule.note = fmt::format(
        "the pre-tokenizer {} is not known; \"default\" is used and some text may be split wrongly",
        in_quotes(pre));
  }
  return rule;
}

}  // namespace bitnet::tokenizer
