// The container against right files and every wrong one that
// docs/reference/gguf.md#rules names.
#include "gguf/container.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "gguf_builder.hpp"

namespace bitnet::gguf {
namespace {

using tests::bytes;
using tests::gguf_builder;

gguf_builder small() {
  gguf_builder b;
  b.text("general.architecture", "bitnet").u32("general.alignment", 32);
  b.boolean("yes", 1).f32("pi", 3.5F).texts("words", {"a", "", "ccc"});
  b.numbers<int16_t>("shorts", 3, {-1, 2});
  b.add("one", {4, 3}, 0, bytes(48)).add("two", {32}, 8, bytes(34));
  return b;
}

TEST(container, reads_what_a_writer_wrote) {
  for (const uint32_t version : {2U, 3U}) {
    gguf_builder b = small();
    b.version = version;
    const bytes file = b.build();
    const auto c = container::parse(file);
    ASSERT_TRUE(c) << c.error().message;
    EXPECT_EQ(c->version(), version);
    EXPECT_EQ(c->alignment(), 32U);
    EXPECT_EQ(c->text("general.architecture")->value(), "bitnet");
    EXPECT_EQ(c->boolean("yes")->value(), true);
    EXPECT_EQ(c->real("pi")->value(), 3.5);
    EXPECT_FALSE(c->integer("absent")->has_value());
    ASSERT_NE(c->find("words"), nullptr);
    std::vector<std::string> words;
    for_each_element(*c->find("words"), [&](const value& v) {
      words.emplace_back(*to_string(v));
      return true;
    });
    EXPECT_EQ(words, (std::vector<std::string>{"a", "", "ccc"}));
    ASSERT_EQ(c->tensors().size(), 2U);
    const tensor_info& two = c->tensors()[1];
    EXPECT_EQ(two.name, "two");
    EXPECT_EQ(two.offset % 32, 0U);
    EXPECT_EQ(two.exact_bytes, 34U);
    EXPECT_EQ(two.bytes.data() + two.bytes.size(), file.data() + file.size());
    EXPECT_EQ(c->tensors()[0].available, 64U) << "up to the next tensor, padding included";
  }
}

TEST(container, reads_every_integer_width) {
  struct row {
    uint32_t type;
    uint64_t bits;
    size_t width;
    std::optional<int64_t> expected;
  };
  const row rows[] = {
      {0, 0xff, 1, 255},
      {1, 0xff, 1, -1},
      {2, 0xffff, 2, 65535},
      {3, 0xffff, 2, -1},
      {4, 0xffffffff, 4, 4294967295},
      {5, 0xffffffff, 4, -1},
      {10, 7, 8, 7},
      {10, uint64_t{1} << 63, 8, std::nullopt},  // does not fit 63 bits
      {11, ~uint64_t{0}, 8, -1},
      {6, 0, 4, std::nullopt},  // a float is no integer
      {7, 1, 1, std::nullopt},  // nor is a bool
  };
  for (const row& r : rows) {
    bytes content;
    tests::put(content, r.bits);
    content.resize(r.width);
    gguf_builder b;
    b.raw("n", r.type, content);
    const bytes file = b.build();
    const auto c = container::parse(file);
    ASSERT_TRUE(c) << c.error().message;
    const auto n = c->integer("n");
    ASSERT_EQ(n.has_value(), r.expected.has_value()) << "type " << r.type;
    if (n) {
      EXPECT_EQ(**n, *r.expected) << "type " << r.type;
    }
  }
}

struct hostile {
  const char* why;
  std::function<void(gguf_builder&)> change;
  const char* says;  // part of the message
  bitnet_status status = BITNET_BAD_DATA;
};

bytes array_head(uint32_t element, uint64_t count) {
  bytes out;
  tests::put(out, element);
  tests::put(out, count);
  return out;
}

const hostile hostiles[] = {
    {"another magic", [](auto& b) { b.magic = "GGML"; }, "begin with 'GGUF', found 'GGML'"},
    {"a magic with bytes that a terminal obeys", [](auto& b) { b.magic = "\x1b[2J"; },
     "'\\x1b[2J'"},
    {"version 0", [](auto& b) { b.version = 0; }, "GGUF version 0", BITNET_UNSUPPORTED},
    {"version 1 had 32-bit lengths", [](auto& b) { b.version = 1; }, "convert the model anew",
     BITNET_UNSUPPORTED},
    {"version 4 is unknown", [](auto& b) { b.version = 4; }, "a newer version", BITNET_UNSUPPORTED},
    {"a big-endian file", [](auto& b) { b.version = 0x03000000; }, "big-endian",
     BITNET_UNSUPPORTED},
    {"more entries than bytes", [](auto& b) { b.n_entries = 1000; },
     "claims 1000 metadata entries"},
    {"entries that wrap", [](auto& b) { b.n_entries = UINT64_MAX / 14 + 1; }, "metadata entries"},
    {"the largest entry count", [](auto& b) { b.n_entries = UINT64_MAX; }, "metadata entries"},
    {"-1 tensors", [](auto& b) { b.n_tensors = UINT64_MAX; }, "tensors, more than"},
    {"one tensor more than there is", [](auto& b) { b.n_tensors = 3; }, "tensor name is empty"},
    {"one entry more than there is", [](auto& b) { b.n_entries = 7; }, ""},
    {"an empty key", [](auto& b) { b.u32("", 1); }, "metadata key is empty"},
    {"a key with a NUL", [](auto& b) { b.u32(std::string("a\0b", 3), 1); }, "NUL byte: 'a\\x00b'"},
    {"a key that is not UTF-8", [](auto& b) { b.u32("\xff", 1); }, "not UTF-8"},
    {"an overlong UTF-8 key", [](auto& b) { b.u32("\xc0\x80", 1); }, "not UTF-8"},
    {"a surrogate in a key", [](auto& b) { b.u32("\xed\xa0\x80", 1); }, "not UTF-8"},
    {"a key above 65535 bytes", [](auto& b) { b.u32(std::string(65536, 'k'), 1); }, "65536 bytes"},
    {"a key twice", [](auto& b) { b.entries.push_back(b.entries.front()); }, "occurs twice"},
    {"value type 13", [](auto& b) { b.raw("k", 13, bytes(8)); }, "value type 13"},
    {"value type -1", [](auto& b) { b.raw("k", UINT32_MAX, bytes(8)); }, "value type 4294967295"},
    {"a bool of 2", [](auto& b) { b.boolean("k", 2); }, "a bool of value 2"},
    {"a bool of 255 in an array", [](auto& b) { b.template numbers<uint8_t>("k", 7, {1, 255}); },
     "a bool of value 255"},
    {"an array of arrays", [](auto& b) { b.raw("k", 9, array_head(9, 1)); }, "array of arrays"},
    {"array elements of type 13", [](auto& b) { b.raw("k", 9, array_head(13, 1)); },
     "value type 13"},
    {"an array longer than the file", [](auto& b) { b.raw("k", 9, array_head(0, 1000000)); },
     "claims 1000000 elements"},
    {"an array whose bytes wrap to 0",
     [](auto& b) { b.raw("k", 9, array_head(10, uint64_t{1} << 61)); }, "elements, more than"},
    {"2^64 - 1 strings", [](auto& b) { b.raw("k", 9, array_head(8, UINT64_MAX)); },
     "elements, more"},
    {"a string in an array that ends behind the file",
     [](auto& b) {
       bytes content = array_head(8, 1);
       tests::put(content, UINT64_MAX);
       b.raw("k", 9, content);
     },
     "the file ends inside a metadata array"},
    {"a string of 2^64 - 1 bytes",
     [](auto& b) {
       bytes content;
       tests::put(content, UINT64_MAX);
       b.raw("k", 8, content);
     },
     "the file ends inside a metadata string"},
    {"alignment 0", [](auto& b) { b.u32("general.alignment", 0); }, "general.alignment is 0"},
    {"alignment 1", [](auto& b) { b.u32("general.alignment", 1); }, "8 or more"},
    {"alignment 3", [](auto& b) { b.u32("general.alignment", 3); }, "power of two"},
    {"alignment 48", [](auto& b) { b.u32("general.alignment", 48); }, "power of two"},
    {"alignment 2^31", [](auto& b) { b.u32("general.alignment", uint32_t{1} << 31); },
     "should begin"},
    {"alignment as u64", [](auto& b) { b.template number<uint64_t>("general.alignment", 10, 32); },
     "of type u64; expected u32"},
    {"alignment as text", [](auto& b) { b.text("general.alignment", "32"); }, "of type string"},
    {"an empty tensor name", [](auto& b) { b.tensors[0].name = ""; }, "tensor name is empty"},
    {"a tensor name of 64 bytes", [](auto& b) { b.tensors[0].name = std::string(64, 'n'); },
     "64 bytes"},
    {"a tensor name with a NUL", [](auto& b) { b.tensors[0].name = std::string("w\0x", 3); },
     "NUL"},
    {"a tensor name that is not UTF-8", [](auto& b) { b.tensors[0].name = "\x80"; }, "not UTF-8"},
    {"a tensor name twice", [](auto& b) { b.tensors[0].name = "two"; }, "'two' occurs twice"},
    {"no dimensions", [](auto& b) { b.tensors[0].ne = {}; }, "has 0 dimensions"},
    {"five dimensions", [](auto& b) { b.tensors[0].ne = {1, 1, 1, 1, 1}; }, "has 5 dimensions"},
    {"2^32 - 1 dimensions", [](auto& b) { b.tensors[0].rank = UINT32_MAX; }, "dimensions"},
    {"a dimension of 0", [](auto& b) { b.tensors[0].ne = {4, 0}; }, "dimension 1 is 0"},
    {"a 0 that hides a product that wraps",
     [](auto& b) { b.tensors[0].ne = {uint64_t{1} << 40, uint64_t{1} << 40, 0}; }, "63 bits"},
    {"a product that wraps to 0",
     [](auto& b) { b.tensors[0].ne = {uint64_t{1} << 32, uint64_t{1} << 32}; }, "63 bits"},
    {"a product of INT64_MAX + 1", [](auto& b) { b.tensors[0].ne = {uint64_t{1} << 63}; },
     "63 bits"},
    {"a negative dimension", [](auto& b) { b.tensors[0].ne = {UINT64_MAX}; }, "63 bits"},
    {"bytes that wrap", [](auto& b) { b.tensors[0].ne = {(uint64_t{1} << 62) + 1}; }, "64 bits"},
    {"a size that wraps when it is padded",
     [](auto& b) { b.tensors[0].ne = {(uint64_t{1} << 62) - 1}; }, "bytes at offset 0"},
    {"rows that are no multiple of the block", [](auto& b) { b.tensors[1].ne = {33}; },
     "expected a multiple of 32"},
    {"an unaligned offset", [](auto& b) { b.tensors[1].offset = 72; },
     "no multiple of the alignment"},
    {"an offset behind the file", [](auto& b) { b.tensors[1].offset = 4096; },
     "bytes at offset 4096"},
    {"an offset at the very end",
     [](auto& b) { b.tensors[1].data = bytes(32), b.tensors[1].offset = 96; },
     "bytes at offset 96"},
    {"offset + size wraps", [](auto& b) { b.tensors[1].offset = UINT64_MAX - 31; },
     "bytes at offset"},
    {"a tensor longer than the file", [](auto& b) { b.tensors[1].ne = {64}; }, "needs 68 bytes"},
    {"two tensors at one place", [](auto& b) { b.tensors[1].offset = 0; }, "overlaps"},
    {"a tensor that reaches into the next", [](auto& b) { b.tensors[0].ne = {17}; },
     "overlaps 'two'"},
    {"unknown sizes at one place",
     [](auto& b) {
       b.tensors[0].type = b.tensors[1].type = 36;
       b.tensors[1].offset = 0;
     },
     "overlaps"},
};

TEST(container, rejects_hostile_files) {
  for (const hostile& row : hostiles) {
    gguf_builder b = small();
    row.change(b);
    const bytes file = b.build();
    const auto c = container::parse(file);
    ASSERT_FALSE(c) << row.why;
    EXPECT_NE(c.error().message.find(row.says), std::string::npos)
        << row.why << ": " << c.error().message;
    EXPECT_EQ(c.error().status, row.status) << row.why << ": " << c.error().message;
  }
}

struct harmless {
  const char* why;
  std::function<void(gguf_builder&)> change;
};

const harmless harmlesses[] = {
    {"no metadata at all", [](auto& b) { b.entries.clear(); }},
    {"no tensors", [](auto& b) { b.tensors.clear(); }},
    {"a tensor name of 63 bytes", [](auto& b) { b.tensors[0].name = std::string(63, 'n'); }},
    {"four dimensions", [](auto& b) { b.tensors[0].ne = {2, 2, 3, 1}; }},
    {"a gap between tensors, where TL1 files hide a scale",
     [](auto& b) { b.tensors[0].data.resize(96); }},
    {"tensors out of order",
     [](auto& b) {
       b.tensors[0].offset = 64;
       b.tensors[1].offset = 0;
       std::swap(b.tensors[0].data, b.tensors[1].data);
       b.tensors[0].data.resize(64);
     }},
    {"an unknown type: inspect should still report it", [](auto& b) { b.tensors[1].type = 999; }},
    {"an empty string and an empty array", [](auto& b) { b.text("s", "").texts("a", {}); }},
    {"text with a NUL in a value", [](auto& b) { b.text("s", std::string_view("a\0b", 3)); }},
    {"alignment 8", [](auto& b) { b.u32("general.alignment", 8); }},
    {"alignment 64",
     [](auto& b) {
       b.u32("general.alignment", 64);
       b.alignment = 64;
     }},
    {"no general.alignment means 32", [](auto& b) { b.erase("general.alignment"); }},
};

TEST(container, accepts_what_is_unusual_but_right) {
  for (const harmless& row : harmlesses) {
    gguf_builder b = small();
    row.change(b);
    const bytes file = b.build();
    const auto c = container::parse(file);
    EXPECT_TRUE(c) << row.why << ": " << c.error().message;
  }
}

TEST(container, notices_a_cut_at_every_byte) {
  const bytes file = small().build();
  for (size_t size = 0; size < file.size(); ++size) {
    // A copy of exactly this size: the sanitizer sees a read behind it.
    const bytes cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(size));
    const auto c = container::parse(cut);
    ASSERT_FALSE(c) << "cut at byte " << size;
    EXPECT_FALSE(c.error().message.empty());
  }
}

// Every 1, 2, 4 and 8 bytes of the header, metadata and tensor table at the extremes of their type.
TEST(container, survives_every_field_at_its_extremes) {
  const gguf_builder b = small();
  const bytes file = b.build();
  const size_t head = b.head().size();
  const uint64_t extremes[] = {0,
                               1,
                               0x7f,
                               0x80,
                               0xff,
                               0x7fffffff,
                               0x80000000,
                               0xffffffff,
                               0x100000000,
                               0x4000000000000000,
                               0x7fffffffffffffff,
                               0x8000000000000000,
                               0xffffffffffffffe0,
                               0xffffffffffffffff};
  size_t rejected = 0;
  for (const size_t width : {1U, 4U, 8U})
    for (size_t at = 0; at + width <= head; ++at)
      for (const uint64_t x : extremes) {
        bytes changed = file;
        std::memcpy(&changed[at], &x, width);
        const auto c = container::parse(changed);
        if (c) continue;
        ++rejected;
        ASSERT_FALSE(c.error().message.empty()) << "at " << at;
      }
  EXPECT_GT(rejected, head);
}

TEST(container, names_the_kind_it_found) {
  const bytes file = small().build();
  const auto c = container::parse(file);
  ASSERT_TRUE(c);
  EXPECT_EQ(
      c->integer("general.architecture").error().message,
      "metadata key 'general.architecture' should be an integer of at most 63 bits, but is of "
      "type string");
  EXPECT_EQ(c->text("words").error().message,
            "metadata key 'words' should be a string, but is an array");
}

}  // namespace
}  // namespace bitnet::gguf
