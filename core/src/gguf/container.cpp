#include "gguf/container.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "gguf/cursor.hpp"
#include "gguf/stand_in.hpp"
#include "gguf/text.hpp"
#include "gguf/types.hpp"

namespace bitnet::gguf {
namespace {

constexpr std::string_view magic = "GGUF";
constexpr uint64_t default_alignment = 32;
constexpr uint64_t smallest_entry = 8 + 1 + 4 + 1;           // key, type, value of one byte
constexpr uint64_t smallest_tensor = 8 + 1 + 4 + 8 + 4 + 8;  // name, rank, one extent, type, offset
constexpr uint64_t longest_key = 65535;                      // GGUF specification
constexpr uint64_t longest_name = 63;                        // ggml keeps 64 bytes with the NUL
constexpr uint32_t most_dimensions = 4;

std::unexpected<failure> bad(std::string message) {
  return fail(BITNET_BAD_DATA, std::move(message));
}

struct header {
  uint32_t version;
  uint64_t n_tensors;
  uint64_t n_entries;
};

result<header> read_header(cursor& in) {
  const auto start = in.take(magic.size(), "the magic number");
  if (in.failed()) return in.why();
  const std::string_view found(reinterpret_cast<const char*>(start.data()), start.size());
  if (found != magic)
    return bad(
        fmt::format("not a GGUF model: expected the file to begin with 'GGUF', found {}; name a "
                    ".gguf file, and if it is one, download it again",
                    quote(found)));
  header fields{};
  fields.version = in.number<uint32_t>("the header");
  fields.n_tensors = in.number<uint64_t>("the header");
  fields.n_entries = in.number<uint64_t>("the header");
  if (in.failed()) return in.why();
  if (fields.version != 0 && (fields.version & 0xffffU) == 0)
    return fail(BITNET_UNSUPPORTED,
                "the file is big-endian; this program reads little-endian GGUF: convert it anew on "
                "or for a little-endian machine");
  if (fields.version != 2 && fields.version != 3)
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format("GGUF version {}; this program reads versions 2 and 3: {}", fields.version,
                    fields.version < 2 ? "convert the model anew with a current converter"
                                       : "a newer version of this program may read it"));
  if (fields.n_entries > in.remaining() / smallest_entry)
    return bad(
        fmt::format("the header claims {} metadata entries, more than the {} bytes behind it can "
                    "hold; the file is cut off or damaged",
                    fields.n_entries, in.remaining()));
  if (fields.n_tensors > in.remaining() / smallest_tensor)
    return bad(
        fmt::format("the header claims {} tensors, more than the {} bytes behind it can hold; the "
                    "file is cut off or damaged",
                    fields.n_tensors, in.remaining()));
  return fields;
}

result<value_type> read_type(cursor& in, std::string_view key) {
  const auto id = in.number<uint32_t>("a metadata type");
  if (in.failed()) return in.why();
  if (id >= n_value_types)
    return bad(
        fmt::format("metadata key {} has value type {}; GGUF knows 0 to {}; the file is damaged",
                    quote(key), id, n_value_types - 1));
  return static_cast<value_type>(id);
}

result<void> check_booleans(const value& v, std::string_view key) {
  for (const std::byte b : v.bytes)
    if (std::to_integer<int>(b) > 1)
      return bad(fmt::format("metadata key {} is a bool of value {}; expected 0 or 1", quote(key),
                             std::to_integer<int>(b)));
  return {};
}

result<value> read_array(cursor& in, std::string_view key) {
  const auto element = read_type(in, key);
  if (!element) return std::unexpected(element.error());
  if (*element == value_type::array)
    return bad(
        fmt::format("metadata key {} is an array of arrays, which is not supported", quote(key)));
  value v{.type = value_type::array, .element = *element};
  v.count = in.number<uint64_t>("a metadata array");
  if (in.failed()) return in.why();
  const uint64_t width = *element == value_type::string ? sizeof(uint64_t) : width_of(*element);
  if (v.count > in.remaining() / width)
    return bad(
        fmt::format("metadata key {} claims {} elements, more than the {} bytes behind it can "
                    "hold; the file is cut off or damaged",
                    quote(key), v.count, in.remaining()));
  if (*element == value_type::string) {
    cursor ahead = in;
    for (uint64_t i = 0; i < v.count && !ahead.failed(); ++i) ahead.string("a metadata array");
    if (ahead.failed()) return ahead.why();
    v.bytes = in.take(ahead.position() - in.position(), "a metadata array");
  } else {
    v.bytes = in.take(v.count * width, "a metadata array");
  }
  return v;
}

result<value> read_value(cursor& in, std::string_view key) {
  const auto type = read_type(in, key);
  if (!type) return std::unexpected(type.error());
  result<value> v{value{.type = *type}};
  if (*type == value_type::array) {
    v = read_array(in, key);
    if (!v) return v;
  } else if (*type == value_type::string) {
    const auto text = in.string("a metadata string");
    v->bytes = std::as_bytes(std::span(text));
  } else {
    v->bytes = in.take(width_of(*type), "a metadata value");
  }
  if (in.failed()) return in.why();
  if (v->type == value_type::boolean ||
      (v->type == value_type::array && v->element == value_type::boolean))
    if (auto ok = check_booleans(*v, key); !ok) return std::unexpected(ok.error());
  return v;
}

// Names appear in messages, tables and other programs' C strings.
result<void> check_name(std::string_view name, std::string_view what, uint64_t longest) {
  if (name.empty()) return bad(fmt::format("a {} is empty; the file is damaged", what));
  if (name.size() > longest)
    return bad(fmt::format("a {} has {} bytes, at most {} are allowed: {}", what, name.size(),
                           longest, quote(name)));
  if (name.find('\0') != std::string_view::npos)
    return bad(fmt::format("a {} contains a NUL byte: {}", what, quote(name)));
  if (!is_utf8(name)) return bad(fmt::format("a {} is not UTF-8: {}", what, quote(name)));
  return {};
}

// Indices sorted by name, or the first duplicate name.
template <class Range, class Name>
result<std::vector<size_t>> sorted_by(const Range& items, Name name, std::string_view what) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto key = [&](size_t i) { return items[i].*name; };
  std::ranges::sort(order, {}, key);
  const auto twice = std::ranges::adjacent_find(order, {}, key);
  if (twice != order.end())
    return bad(
        fmt::format("the {} {} occurs twice; the file is damaged", what, quote(key(*twice))));
  return order;
}

result<uint64_t> read_alignment(const value* v) {
  if (v == nullptr) return default_alignment;
  if (v->type != value_type::u32)
    return bad(fmt::format("general.alignment is of type {}; expected u32", name_of(v->type)));
  const auto alignment = load<uint32_t>(v->bytes);
  if (alignment < 8 || !std::has_single_bit(alignment))
    return bad(
        fmt::format("general.alignment is {}; expected a power of two, 8 or more", alignment));
  return alignment;
}

result<tensor_info> read_tensor(cursor& in) {
  tensor_info t;
  t.name = in.string("a tensor name");
  t.rank = in.number<uint32_t>("a tensor description");
  if (in.failed()) return in.why();
  if (auto ok = check_name(t.name, "tensor name", longest_name); !ok)
    return std::unexpected(ok.error());
  const auto wrong = [&](const std::string& message) {
    return bad(fmt::format("tensor {}{}", quote(t.name), message));
  };
  if (t.rank == 0 || t.rank > most_dimensions)
    return wrong(fmt::format(" has {} dimensions; expected 1 to {}", t.rank, most_dimensions));
  for (uint32_t d = 0; d < t.rank; ++d) t.ne[d] = in.number<uint64_t>("a tensor description");
  t.type = in.number<uint32_t>("a tensor description");
  t.offset = in.number<uint64_t>("a tensor description");
  if (in.failed()) return in.why();
  if (t.type >= type::first_own)
    return wrong(fmt::format(" has type {}, which no program writes; the file is damaged", t.type));
  // Other readers and the ABI count in signed 64 bits.
  constexpr uint64_t most = INT64_MAX;
  for (uint32_t d = 0; d < t.rank; ++d) {
    if (t.ne[d] == 0) return wrong(fmt::format(": dimension {} is 0; expected at least 1", d));
    const auto product = checked_mul(t.elements, t.ne[d]);
    if (!product || *product > most)
      return wrong(" has more elements than 63 bits can count; the file is damaged");
    t.elements = *product;
  }
  if (const auto size = size_of(t.type)) {
    if (t.ne[0] % size->block != 0)
      return wrong(fmt::format(" of type {} has rows of {} elements; expected a multiple of {}",
                               type_name(t.type), t.ne[0], size->block));
    t.exact_bytes = checked_mul(t.elements / size->block, size->bytes);
    if (!t.exact_bytes) return wrong(" has more bytes than 64 bits can count; the file is damaged");
  }
  return t;
}

// Converts offsets to positions in the file and finds each tensor's bytes.
result<void> place(std::vector<tensor_info>& tensors, std::span<const std::byte> file,
                   uint64_t table_end, uint64_t alignment) {
  if (tensors.empty()) return {};
  const auto start = checked_pad(table_end, alignment);
  if (!start || *start > file.size())
    return bad(
        fmt::format("the tensor data should begin at byte {}, but the file has {} bytes: it is cut "
                    "off; download it again",
                    start.value_or(UINT64_MAX), file.size()));
  const uint64_t data_bytes = file.size() - *start;

  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return tensors[i].offset; });
  for (size_t i = 0; i < order.size(); ++i) {
    tensor_info& t = tensors[order[i]];
    const auto wrong = [&](const std::string& message) {
      return bad(fmt::format("tensor {}{}", quote(t.name), message));
    };
    if (t.offset % alignment != 0)
      return wrong(fmt::format(
          " begins at offset {}, which is no multiple of the alignment {}; the file is damaged",
          t.offset, alignment));
    if (t.offset >= data_bytes || t.exact_bytes.value_or(1) > data_bytes - t.offset)
      return wrong(
          fmt::format(" needs {} bytes at offset {}, but the file holds {} bytes of tensors: it is "
                      "cut off; download it again",
                      t.exact_bytes.value_or(1), t.offset, data_bytes));
    const bool last = i + 1 == order.size();
    t.available = (last ? data_bytes : tensors[order[i + 1]].offset) - t.offset;
    if (t.available < t.exact_bytes.value_or(1))
      return wrong(
          fmt::format(" overlaps {}; the file is damaged", quote(tensors[order[i + 1]].name)));
    t.offset += *start;
    t.bytes = file.subspan(t.offset, t.exact_bytes.value_or(t.available));
  }
  return {};
}

template <class T>
result<std::optional<T>> as_kind(const value* v, std::optional<T> (*read)(const value&),
                                 std::string_view key, std::string_view expected) {
  if (v == nullptr) return std::nullopt;
  auto out = read(*v);
  if (!out)
    return bad(fmt::format("metadata key {} should be {}, but is {}{}", quote(key), expected,
                           v->type == value_type::array ? "an array" : "of type ",
                           v->type == value_type::array ? "" : name_of(v->type)));
  return out;
}

}  // namespace

result<container> container::parse(std::span<const std::byte> bytes) {
  container c;
  if (const std::string what = stand_in(bytes); !what.empty())
    return bad(fmt::format("is no GGUF model: it {}", what));
  cursor in(bytes);
  const auto header = read_header(in);
  if (!header) return std::unexpected(header.error());
  c.version_ = header->version;

  for (uint64_t i = 0; i < header->n_entries; ++i) {
    entry e;
    e.key = in.string("a metadata key");
    if (in.failed()) return in.why();
    if (auto ok = check_name(e.key, "metadata key", longest_key); !ok)
      return std::unexpected(ok.error());
    auto content = read_value(in, e.key);
    if (!content) return std::unexpected(content.error());
    e.content = *content;
    c.entries_.push_back(e);
  }
  auto keys = sorted_by(c.entries_, &entry::key, "metadata key");
  if (!keys) return std::unexpected(keys.error());
  c.by_key_ = std::move(*keys);

  const auto alignment = read_alignment(c.find("general.alignment"));
  if (!alignment) return std::unexpected(alignment.error());
  c.alignment_ = *alignment;

  for (uint64_t i = 0; i < header->n_tensors; ++i) {
    auto t = read_tensor(in);
    if (!t) return std::unexpected(t.error());
    c.tensors_.push_back(*t);
  }
  if (auto unique = sorted_by(c.tensors_, &tensor_info::name, "tensor name"); !unique)
    return std::unexpected(unique.error());
  if (auto ok = place(c.tensors_, bytes, in.position(), c.alignment_); !ok)
    return std::unexpected(ok.error());
  return c;
}

const value* container::find(std::string_view key) const {
  const auto key_of = [&](size_t i) { return entries_[i].key; };
  const auto at = std::ranges::lower_bound(by_key_, key, {}, key_of);
  return at != by_key_.end() && key_of(*at) == key ? &entries_[*at].content : nullptr;
}

result<std::optional<int64_t>> container::integer(std::string_view key) const {
  return as_kind(find(key), to_integer, key, "an integer of at most 63 bits");
}

result<std::optional<double>> container::real(std::string_view key) const {
  return as_kind(find(key), to_real, key, "a number");
}

result<std::optional<bool>> container::boolean(std::string_view key) const {
  return as_kind(find(key), to_boolean, key, "a bool");
}

result<std::optional<std::string_view>> container::text(std::string_view key) const {
  return as_kind(find(key), to_string, key, "a string");
}

}  // namespace bitnet::gguf
