#include "kv/saved_sequence.hpp"

#define XXH_INLINE_ALL
#include <fmt/core.h>

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace bitnet::kv {
namespace {

static_assert(std::endian::native == std::endian::little, "the numbers of a file are not swapped");

constexpr uint32_t version = 1;
// Its line ends show whether a file was transferred as text, which changes them.
constexpr char magic[8] = {'B', 'N', 'S', 'E', 'Q', '\r', '\n', '\x1a'};
constexpr uint64_t alignment = 64;  // of the blocks in the file
constexpr uint64_t most_blocks = uint64_t{1} << 30;
constexpr uint32_t most_tokens_per_block = 1U << 16;

struct header {
  char magic[8];
  uint32_t version;
  uint32_t tokens_per_block;
  uint64_t file_bytes;
  uint64_t facts_bytes;
  uint64_t n_blocks;
  uint64_t block_bytes;
  uint64_t state_bytes;
};
static_assert(sizeof(header) == 56);
constexpr uint64_t longest_facts = saved_outline_bytes - sizeof(header);

std::unexpected<failure> damaged(const std::string& what) {
  return bad_data(what + "; the file is damaged: remove it, compute the prompt again and save it");
}

uint64_t aligned(uint64_t n) {
  return (n + alignment - 1) / alignment * alignment;
}

// Where the parts of a file begin.
struct extent {
  uint64_t tokens = 0, n_tokens = 0, blocks = 0, state = 0, checksum = 0;
};

// nullopt: no file can be so large. Counts are bounded before they are multiplied.
std::optional<extent> extent_of(const header& fields) {
  if (fields.facts_bytes > longest_facts || fields.n_blocks > most_blocks ||
      fields.tokens_per_block == 0 || fields.tokens_per_block > most_tokens_per_block)
    return std::nullopt;
  extent e;
  e.tokens = sizeof(header) + fields.facts_bytes;
  e.n_tokens = fields.n_blocks * fields.tokens_per_block;
  e.blocks = aligned(e.tokens + e.n_tokens * sizeof(int32_t));
  uint64_t all = 0;
  if (__builtin_mul_overflow(fields.n_blocks, fields.block_bytes, &all) ||
      __builtin_add_overflow(all, e.blocks, &e.state) ||
      __builtin_add_overflow(e.state, fields.state_bytes, &e.checksum) ||
      e.checksum > UINT64_MAX - sizeof(uint64_t))
    return std::nullopt;
  return e;
}

std::string text_of(const std::vector<fact>& facts) {
  std::string out;
  for (const fact& f : facts) out += f.name + ": " + f.value + "\n";
  return out;
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
}

result<std::vector<fact>> read_facts(std::string_view text) {
  std::vector<fact> out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const std::size_t colon = line.find(": ");
    if (end == std::string_view::npos || colon == std::string_view::npos || colon == 0 ||
        line.substr(0, colon).contains(':') || !is_printable(line))
      return damaged(fmt::format("fact {} of the saved sequence is no line of a name and a value",
                                 out.size() + 1));
    out.push_back({std::string(line.substr(0, colon)), std::string(line.substr(colon + 2))});
    text.remove_prefix(end + 1);
  }
  return out;
}

result<header> read_header(std::span<const std::byte> begin, uint64_t file_bytes) {
  header fields{};
  if (!begin.empty()) std::memcpy(&fields, begin.data(), std::min(begin.size(), sizeof fields));
  if (std::memcmp(fields.magic, magic, sizeof magic) != 0)
    return bad_data(
        "expected a saved sequence, found a file that does not begin like one: give one that "
        "bitnet_scheduler_save wrote");
  if (begin.size() < sizeof fields ||
      begin.size() < std::min<uint64_t>(file_bytes, saved_outline_bytes))
    return damaged(fmt::format("the file ends after {} bytes, within the begin of a saved sequence",
                               begin.size()));
  if (fields.version != version)
    return fail(BITNET_INCOMPATIBLE,
                fmt::format("the saved sequence has version {}, and this library reads {}: compute "
                            "the prompt again and save it, or use the library that saved it",
                            fields.version, version));
  if (fields.file_bytes != file_bytes)
    return damaged(fmt::format("the saved sequence says that it has {} bytes, and the file has {}",
                               fields.file_bytes, file_bytes));
  return fields;
}

bool ends_with_its_checksum(std::span<const std::byte> file) {
  const auto body = file.first(file.size() - sizeof(uint64_t));
  uint64_t said = 0;
  std::memcpy(&said, file.data() + body.size(), sizeof said);
  return said == XXH3_64bits(body.data(), body.size());
}

std::string shown(std::string_view value) {
  constexpr std::size_t most = 100;
  return value.size() <= most ? std::string(value) : std::string(value.substr(0, most)) + "...";
}

}  // namespace

saved_frame frame_of(const saved_sequence& s) {
  const std::string facts = text_of(s.form.facts);
  header fields{};
  std::memcpy(fields.magic, magic, sizeof magic);
  fields.version = version;
  fields.tokens_per_block = s.form.tokens_per_block;
  fields.facts_bytes = facts.size();
  fields.n_blocks = s.tokens.size() / s.form.tokens_per_block;
  fields.block_bytes = s.form.block_bytes;
  fields.state_bytes = s.form.state_bytes;
  const uint64_t tokens_at = sizeof fields + facts.size();
  const std::span tokens = std::as_bytes(std::span(s.tokens));
  saved_frame out;
  out.begin.resize(aligned(tokens_at + tokens.size()));
  fields.file_bytes = out.begin.size() + s.blocks.size() + s.state.size() + out.end.size();
  std::memcpy(out.begin.data(), &fields, sizeof fields);
  std::memcpy(out.begin.data() + sizeof fields, facts.data(), facts.size());
  std::ranges::copy(tokens, out.begin.begin() + static_cast<std::ptrdiff_t>(tokens_at));
  XXH3_state_t hash;
  XXH3_64bits_reset(&hash);
  for (const std::span<const std::byte> part :
       {std::span<const std::byte>(out.begin), s.blocks, s.state})
    XXH3_64bits_update(&hash, part.data(), part.size());
  const uint64_t sum = XXH3_64bits_digest(&hash);
  std::memcpy(out.end.data(), &sum, sizeof sum);
  return out;
}

result<saved_outline> read_saved_outline(std::span<const std::byte> begin, uint64_t file_bytes) {
  const auto fields = read_header(begin, file_bytes);
  if (!fields) return std::unexpected(fields.error());
  const auto e = extent_of(*fields);
  if (!e || e->checksum + sizeof(uint64_t) != file_bytes || fields->n_blocks == 0 ||
      fields->block_bytes == 0)
    return damaged(
        fmt::format("the saved sequence says that it has {} blocks of {} bytes and a "
                    "state of {}, which do not make the {} bytes of the file",
                    fields->n_blocks, fields->block_bytes, fields->state_bytes, file_bytes));
  const auto text = begin.subspan(sizeof(header), fields->facts_bytes);
  auto facts = read_facts({reinterpret_cast<const char*>(text.data()), text.size()});
  if (!facts) return std::unexpected(std::move(facts.error()));
  return saved_outline{
      {fields->tokens_per_block, fields->block_bytes, fields->state_bytes, std::move(*facts)},
      fields->n_blocks};
}

result<saved_sequence> read_saved(std::span<const std::byte> file) {
  auto outline = read_saved_outline(file, file.size());
  if (!outline) return std::unexpected(std::move(outline.error()));
  if (!ends_with_its_checksum(file))
    return damaged("the checksum of the saved sequence is not that of its bytes");
  const auto fields = read_header(file, file.size());
  const extent e = *extent_of(*fields);
  const auto tokens = file.subspan(e.tokens, e.n_tokens * sizeof(int32_t));
  const auto gap = file.subspan(e.tokens + tokens.size(), e.blocks - e.tokens - tokens.size());
  if (!std::ranges::all_of(gap, [](std::byte b) { return b == std::byte{0}; }))
    return damaged("bytes of the saved sequence that are nothing are not 0");
  saved_sequence out;
  out.form = std::move(outline->form);
  out.tokens.resize(e.n_tokens);
  std::memcpy(out.tokens.data(), tokens.data(), tokens.size());
  out.blocks = file.subspan(e.blocks, e.state - e.blocks);
  out.state = file.subspan(e.state, e.checksum - e.state);
  return out;
}

result<void> check_form(const saved_form& found, const saved_form& here) {
  for (const fact& wanted : here.facts) {
    const auto said = std::ranges::find(found.facts, wanted.name, &fact::name);
    const bool is_said = said != found.facts.end();
    if (is_said && said->value == wanted.value) continue;
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format("expected a sequence whose {} is \"{}\", found {}: {}",
                    wanted.called.empty() ? wanted.name : wanted.called, shown(wanted.value),
                    is_said ? fmt::format("\"{}\"", shown(said->value)) : "none", wanted.advice));
  }
  if (found.facts.size() != here.facts.size())
    return fail(BITNET_UNSUPPORTED,
                fmt::format("the saved sequence states {} facts about itself, and this library "
                            "knows {}: use the library that saved it",
                            found.facts.size(), here.facts.size()));
  if (found.tokens_per_block == here.tokens_per_block && found.block_bytes == here.block_bytes &&
      found.state_bytes == here.state_bytes)
    return {};
  return fail(BITNET_UNSUPPORTED,
              fmt::format("expected blocks of {} tokens in {} bytes and a state of {}, found {} in "
                          "{} and {}: compute the prompt again and save it",
                          here.tokens_per_block, here.block_bytes, here.state_bytes,
                          found.tokens_per_block, found.block_bytes, found.state_bytes));
}

}  // namespace bitnet::kv
