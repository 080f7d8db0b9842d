// What is written is read again; what is damaged, foreign or of another version is not.
#include "kv/saved_sequence.hpp"

#include <gtest/gtest.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <string>

namespace bitnet::kv {
namespace {

using bytes = std::vector<std::byte>;

struct example {
  bytes blocks, state;
  saved_sequence it;
};

example made(uint64_t n_blocks, uint64_t block_bytes, uint64_t state_bytes) {
  example out;
  out.blocks.resize(n_blocks * block_bytes);
  for (std::size_t i = 0; i < out.blocks.size(); ++i) out.blocks[i] = static_cast<std::byte>(i * 7);
  out.state.assign(state_bytes, std::byte{5});
  out.it.form = {4,
                 block_bytes,
                 state_bytes,
                 {{"model", "abc", "open that model"}, {"computed by", "cpu 0.1.0; x", "again"}}};
  out.it.tokens.resize(n_blocks * 4);
  std::iota(out.it.tokens.begin(), out.it.tokens.end(), -3);
  out.it.blocks = out.blocks;
  out.it.state = out.state;
  return out;
}

bytes file_of(const saved_sequence& s) {
  const saved_frame f = frame_of(s);
  bytes out = f.begin;
  out.insert(out.end(), s.blocks.begin(), s.blocks.end());
  out.insert(out.end(), s.state.begin(), s.state.end());
  out.insert(out.end(), f.end.begin(), f.end.end());
  return out;
}

void put(bytes& to, std::size_t at, uint64_t number) {
  std::memcpy(to.data() + at, &number, sizeof number);
}
void put_checksum(bytes& to) {
  put(to, to.size() - 8, XXH3_64bits(to.data(), to.size() - 8));
}

TEST(saved_sequence, is_read_as_it_was_written) {
  for (const auto& [n, block, state] : {std::tuple(1, 1, 0), std::tuple(3, 100, 0),
                                        std::tuple(5, 64, 4096), std::tuple(200, 8, 1)}) {
    const example e = made(n, block, state);
    const bytes file = file_of(e.it);
    const auto got = read_saved(file);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->tokens, e.it.tokens);
    EXPECT_TRUE(std::ranges::equal(got->blocks, e.blocks));
    EXPECT_TRUE(std::ranges::equal(got->state, e.state));
    EXPECT_TRUE(check_form(got->form, e.it.form));
    const auto outline = read_saved_outline(
        std::span(file).first(std::min(file.size(), saved_outline_bytes)), file.size());
    ASSERT_TRUE(outline);
    EXPECT_EQ(outline->n_blocks, static_cast<uint64_t>(n));
    EXPECT_EQ((reinterpret_cast<uintptr_t>(got->blocks.data()) -
               reinterpret_cast<uintptr_t>(file.data())) %
                  64,
              0U);
  }
}

TEST(saved_sequence, no_file_that_was_cut_or_changed_is_read) {
  const bytes whole = file_of(made(3, 50, 20).it);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const auto got = read_saved(std::span(whole).first(n));
    ASSERT_FALSE(got) << n;
    EXPECT_EQ(got.error().status, BITNET_BAD_DATA) << n;
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {
    bytes file = whole;
    file[i] ^= std::byte{4};
    EXPECT_FALSE(read_saved(file)) << i;
  }
}

struct hostile {
  const char* why;
  std::function<void(bytes&)> make;
  bitnet_status status;
  const char* says;
};

TEST(saved_sequence, hostile_fields_are_rejected) {
  constexpr uint64_t huge = UINT64_MAX / 2;
  const hostile rows[] = {
      {"another file", [](bytes& f) { f[0] = std::byte{'G'}; }, BITNET_BAD_DATA,
       "expected a saved sequence"},
      {"text mode", [](bytes& f) { f.erase(f.begin() + 5); }, BITNET_BAD_DATA,
       "expected a saved sequence"},
      {"a later version", [](bytes& f) { f[8] = std::byte{2}; }, BITNET_INCOMPATIBLE,
       "has version 2, and this library reads 1"},
      {"another size", [](bytes& f) { put(f, 16, f.size() + 1); }, BITNET_BAD_DATA, "says that it"},
      {"facts beyond all", [](bytes& f) { put(f, 24, huge); }, BITNET_BAD_DATA, "do not make"},
      {"blocks beyond all", [](bytes& f) { put(f, 32, huge); }, BITNET_BAD_DATA, "do not make"},
      {"no block", [](bytes& f) { put(f, 32, 0); }, BITNET_BAD_DATA, "do not make"},
      {"blocks whose sum wraps", [](bytes& f) { put(f, 40, huge); }, BITNET_BAD_DATA,
       "do not make"},
      {"a state whose sum wraps", [](bytes& f) { put(f, 48, UINT64_MAX); }, BITNET_BAD_DATA,
       "do not make"},
      {"a fact that is no line", [](bytes& f) { f[56 + 5] = std::byte{'x'}; }, BITNET_BAD_DATA,
       "fact 1"},
      {"a fact for a terminal", [](bytes& f) { f[56 + 8] = std::byte{0x1b}; }, BITNET_BAD_DATA,
       "fact 1"},
      {"no end of facts", [](bytes& f) { f[56 + 37 - 1] = std::byte{'x'}; }, BITNET_BAD_DATA,
       "fact 2"},
  };
  for (const hostile& row : rows) {
    bytes file = file_of(made(3, 50, 20).it);
    row.make(file);
    put_checksum(file);
    const auto got = read_saved(file);
    ASSERT_FALSE(got) << row.why;
    EXPECT_EQ(got.error().status, row.status) << row.why << ": " << got.error().message;
    EXPECT_NE(got.error().message.find(row.says), std::string::npos)
        << row.why << ": " << got.error().message;
  }
}

TEST(saved_sequence, a_form_that_differs_is_rejected_with_what_to_do) {
  const saved_form here = made(1, 8, 0).it.form;
  struct row {
    const char* why;
    std::function<void(saved_form&)> change;
    const char* says;
  };
  const row rows[] = {
      {"another model", [](saved_form& f) { f.facts[0].value = "xyz"; },
       "expected a sequence whose model is \"abc\", found \"xyz\": open that model"},
      {"nothing said", [](saved_form& f) { f.facts.erase(f.facts.begin() + 1); },
       "whose computed by is \"cpu 0.1.0; x\", found none: again"},
      {"more said", [](saved_form& f) { f.facts.push_back({"new", "1"}); }, "states 3 facts"},
      {"other blocks", [](saved_form& f) { f.block_bytes = 9; },
       "expected blocks of 4 tokens in 8 bytes and a state of 0, found 4 in 9 and 0"},
      {"a state", [](saved_form& f) { f.state_bytes = 4; }, "and a state of 0, found"},
  };
  for (const row& r : rows) {
    saved_form found = here;
    r.change(found);
    const auto got = check_form(found, here);
    ASSERT_FALSE(got) << r.why;
    EXPECT_EQ(got.error().status, BITNET_UNSUPPORTED);
    EXPECT_NE(got.error().message.find(r.says), std::string::npos)
        << r.why << ": " << got.error().message;
  }
}

}  // namespace
}  // namespace bitnet::kv
