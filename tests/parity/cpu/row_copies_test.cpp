// Copies of rows that are the caller's: made as a token by itself reads them, read once they are
// whole, and without a change of a bit; where there is no room, all goes on without.

#include "bitnet/sdk/interpreter/row_copies.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "bitnet/sdk/interpreter.hpp"
#include "forms.hpp"
#include "ops/ops.hpp"
#include "ops/top_head.hpp"
#include "room.hpp"

namespace bitnet::parity {
namespace {

bool always(uint64_t) {
  return true;
}
bool never(uint64_t) {
  return false;
}
constexpr uint64_t enough_steps = sdk::row_copy::patience + sdk::row_copy::parts;

// A ternary matrix in the caller's memory and activations for it.
struct product {
  explicit product(uint64_t rows, uint64_t tokens = 1)
      : m(rows), codes(m * row_bytes), q(tokens * k), s(tokens, 3.0f) {
    std::mt19937 random(static_cast<uint32_t>(m));
    for (uint8_t& c : codes) c = static_cast<uint8_t>(random() % 3 * 85);
    for (int8_t& v : q) v = static_cast<int8_t>(random() % 255 - 127);
    weight = {BITNET_FORMAT_TERNARY2, k, m, codes.data(), row_bytes, &scale, 0};
  }
  std::vector<float> run(uint64_t tokens = 1) const {
    std::vector<float> y(tokens * m);
    run(tokens, 0, m, y.data());
    return y;
  }
  void run(uint64_t tokens, uint64_t first, uint64_t last, float* y) const {
    cpu::linear_ternary(*form, weight, q.data(), s.data(),
                        {.tokens = tokens, .first = first, .last = last, .y = y}, product_room());
  }
  const cpu::isa_form* form = &cpu::scalar_form;
  static constexpr uint64_t k = 256, row_bytes = k / 4;
  uint64_t m;
  float scale = 0.5f;
  std::vector<uint8_t> codes;
  std::vector<int8_t> q;
  std::vector<float> s;
  sdk::weight weight{};
};

TEST(row_copies, are_read_once_they_are_whole) {
  for (const cpu::isa_form* form : all_forms()) {
    SCOPED_TRACE(form->name);
    for (const uint64_t m : {1, 15, 16, 37, 64}) {
      product p(m, 40);
      p.form = form;
      const auto expected = p.run(), of_many = p.run(40);
      sdk::copy_room room(nullptr, always);
      sdk::row_copy before(room, 3, 64), copy(room, m, product::row_bytes);
      p.weight.copy = &copy;
      EXPECT_EQ(p.run(40), of_many) << "many tokens";
      EXPECT_EQ(copy.data(), nullptr) << "and copy nothing";
      for (uint64_t step = 0; step < enough_steps; ++step) {
        EXPECT_EQ(copy.data(), nullptr) << step;
        EXPECT_EQ(p.run(), expected);
      }
      ASSERT_NE(copy.data(), nullptr) << m;
      EXPECT_TRUE(std::ranges::equal(p.codes, std::span(copy.data(), p.codes.size())));
      std::ranges::fill(p.codes, uint8_t{0});
      EXPECT_EQ(p.run(), expected) << "from the copy";
      EXPECT_EQ(p.run(40), of_many);
      EXPECT_EQ(before.data(), nullptr) << "it was never read";
    }
  }
}

// A server whose steps always have several tokens gets its rows copied as well, but not in a code
// that serves one token only.
TEST(row_copies, are_made_by_steps_that_stream) {
  for (const uint64_t tokens :
       {uint64_t{2}, uint64_t{7}, uint64_t{16}, sdk::most_streaming_tokens}) {
    for (const cpu::isa_form* form : all_forms()) {
      SCOPED_TRACE(std::string(form->name) + " " + std::to_string(tokens));
      product p(64, tokens);
      p.form = form;
      const auto expected = p.run(tokens);
      sdk::copy_room room(nullptr, always);
      sdk::row_copy copy(room, p.m, product::row_bytes);
      p.weight.copy = &copy;
      for (uint64_t step = 0; step < enough_steps; ++step) {
        EXPECT_EQ(copy.data(), nullptr) << step;
        EXPECT_EQ(p.run(tokens), expected);
      }
      ASSERT_NE(copy.data(), nullptr);
      std::ranges::fill(p.codes, uint8_t{0});
      EXPECT_EQ(p.run(tokens), expected) << "from the copy";
    }
    product p(64, tokens);
    const sdk::copy_code half = {
        [](const sdk::weight&) -> uint64_t { return product::row_bytes / 2; },
        [](const sdk::weight&, const void*, uint64_t, uint64_t, uint8_t*) noexcept {
          return true;
        }};
    sdk::copy_room room(nullptr, always);
    sdk::row_copy coded(room, p.weight, half, nullptr);
    p.weight.copy = &coded;
    for (uint64_t step = 0; step < enough_steps; ++step) p.run(tokens);
    EXPECT_EQ(coded.data(), nullptr) << tokens;
  }
}

TEST(row_copies, of_ranges_that_cut_runs_are_not_taken_for_whole) {
  product p(64);
  const auto expected = p.run();
  sdk::copy_room room(nullptr, always);
  sdk::row_copy copy(room, p.m, product::row_bytes);
  p.weight.copy = &copy;
  std::vector<float> y(p.m);
  for (uint64_t step = 0; step < enough_steps; ++step) {
    for (const auto& [first, last] : {std::pair{0, 24}, {24, 64}})
      p.run(1, static_cast<uint64_t>(first), static_cast<uint64_t>(last), y.data());
    EXPECT_EQ(y, expected);
    EXPECT_EQ(copy.data(), nullptr) << "rows 16 to 31 are read in two pieces";
  }
  for (uint64_t step = 0; step < enough_steps; ++step) EXPECT_EQ(p.run(), expected);
  EXPECT_NE(copy.data(), nullptr);
}

TEST(row_copies, are_made_by_many_threads_together) {
  product p(640);
  const auto expected = p.run();
  sdk::copy_room room(nullptr, always);
  sdk::row_copy copy(room, p.m, product::row_bytes);
  p.weight.copy = &copy;
  std::vector<std::vector<float>> found(4, std::vector<float>(p.m));
  std::vector<std::thread> readers;
  for (uint64_t t = 0; t < found.size(); ++t)
    readers.emplace_back([&, t] {
      for (uint64_t i = 0; i < 20 * enough_steps; ++i) {
        const uint64_t first = (i + 3 * t) % 10 * 64;
        p.run(1, first, first + 64, found[t].data());
      }
    });
  for (std::thread& t : readers) t.join();
  for (const auto& y : found) EXPECT_EQ(y, expected);
  ASSERT_NE(copy.data(), nullptr);
  EXPECT_TRUE(std::ranges::equal(p.codes, std::span(copy.data(), p.codes.size())));
}

TEST(row_copies, need_room) {
  product p(64);
  const auto expected = p.run();
  const auto none = [&](sdk::copy_room& room) {
    sdk::row_copy copy(room, p.m, product::row_bytes);
    p.weight.copy = &copy;
    for (uint64_t step = 0; step < enough_steps; ++step) EXPECT_EQ(p.run(), expected);
    return copy.data() == nullptr;
  };
  sdk::copy_room refused(nullptr, never), unwanted(nullptr, nullptr), open(nullptr, always);
  EXPECT_FALSE(unwanted.wanted());
  EXPECT_TRUE(none(refused));
  EXPECT_TRUE(none(unwanted));
  sdk::budget little(p.codes.size() - 1), enough(p.codes.size());
  sdk::copy_room over(&little, always);
  EXPECT_TRUE(none(over));
  EXPECT_EQ(little.used(), 0u);
  {
    sdk::copy_room within(&enough, always);
    EXPECT_FALSE(none(within));
    EXPECT_EQ(enough.used(), p.codes.size());
  }
  EXPECT_EQ(enough.used(), 0u) << "given back with the room";
  EXPECT_FALSE(none(open));
  EXPECT_TRUE(none(open)) << "reserved after the room was made";
}

TEST(row_copies, of_the_heads_codes) {
  constexpr uint64_t k = 128, m = 1041;  // the last row is in no pair
  std::mt19937 random(9);
  std::vector<uint16_t> rows(k * m);
  for (uint16_t& v : rows) v = sdk::f32_to_f16(static_cast<float>(random() % 2001) / 1000 - 1);
  sdk::packed_form form;
  sdk::weight w{BITNET_FORMAT_F16, k, m,    reinterpret_cast<const uint8_t*>(rows.data()), 2 * k,
                nullptr,           0, &form};
  std::vector<float> x(k), y(m), expected;
  for (float& v : x) v = static_cast<float>(random() % 2001) / 1000 - 1;
  for (const cpu::top_head_bits bits :
       {cpu::top_head_bits::eight, cpu::top_head_bits::six, cpu::top_head_bits::four}) {
    form.own = sdk::memory(cpu::top_head::packed_bytes(w, bits));
    cpu::top_head::pack(w, bits, cpu::scalar_form, 0, m, form.own.data());
    form.data = form.own.data();
    const auto run = [&] {
      cpu::top_head two(w, bits, 1);
      two.take(0, x.data());
      two.approximate(cpu::scalar_form, 0, 1, 4, 0, m, y.data(), true);
      two.settle(cpu::scalar_form, 1, 1, 4, x.data(), 0, m, y.data(), product_room());
      two.refine(cpu::scalar_form, 1, 1, 4, x.data(), 0, m, y.data(), product_room());
      return y;
    };
    form.copy = nullptr;
    expected = run();
    sdk::copy_room room(nullptr, always);
    form.copy = std::make_unique<sdk::row_copy>(room, m, cpu::top_head::row_bytes(w, bits));
    for (uint64_t step = 0; step < enough_steps; ++step) EXPECT_EQ(run(), expected);
    ASSERT_NE(form.copy->data(), nullptr);
    std::fill_n(form.own.data(), cpu::top_head::row_bytes(w, bits) * m, uint8_t{0});
    EXPECT_EQ(run(), expected) << "from the copy";
    form.copy = nullptr;
  }
}

// What a set of weights copies: ternary rows that are the caller's, where the author wants it.
TEST(row_copies, are_for_rows_that_are_the_callers) {
  bitnet_host_v0 services{};
  services.struct_size = sizeof services;
  services.cancelled = [](void*, uint64_t) -> uint32_t { return 0; };
  const sdk::host host(&services);
  bitnet_error err{};
  err.struct_size = sizeof err;
  const sdk::reporter report(&err, "test");
  product p(48);
  bitnet_tensor_desc desc{};
  desc.struct_size = sizeof desc;
  desc.format = BITNET_FORMAT_TERNARY2;
  desc.rank = 2;
  desc.ne[0] = product::k, desc.ne[1] = 48, desc.ne[2] = desc.ne[3] = 1;
  desc.data_bytes = p.codes.size();
  desc.n_scales = 1;
  desc.scales = &p.scale;
  for (const bool wanted : {true, false}) {
    sdk::definition author;
    author.copies_rows = wanted ? always : nullptr;
    for (const bool aliased : {true, false}) {
      sdk::weight_set set(author, host);
      ASSERT_EQ(set.create(&desc, sizeof desc, 1, sdk::scales_are::given, report), BITNET_OK)
          << err.message;
      const auto given = aliased ? set.alias(0, p.codes.data(), p.codes.size(), report)
                                 : set.write(0, 0, p.codes.data(), p.codes.size(), report);
      ASSERT_EQ(given, BITNET_OK) << err.message;
      ASSERT_EQ(set.seal(0, report), BITNET_OK) << err.message;
      EXPECT_EQ(set.at(0).view.copy != nullptr, wanted && aliased);
      // In a code of fewer bytes rows in memory of our own have one as well.
      author.copies_code.row_bytes = [](const sdk::weight&) -> uint64_t { return 32; };
      sdk::weight_set coded(author, host);
      ASSERT_EQ(coded.create(&desc, sizeof desc, 1, sdk::scales_are::given, report), BITNET_OK);
      ASSERT_EQ(aliased ? coded.alias(0, p.codes.data(), p.codes.size(), report)
                        : coded.write(0, 0, p.codes.data(), p.codes.size(), report),
                BITNET_OK);
      ASSERT_EQ(coded.seal(0, report), BITNET_OK) << err.message;
      ASSERT_EQ(coded.at(0).view.copy != nullptr, wanted);
      if (wanted) {
        EXPECT_TRUE(coded.at(0).view.copy->coded());
        EXPECT_EQ(coded.at(0).view.copy->row_bytes(), 32u);
      }
      author.copies_code = {};
    }
  }
}

}  // namespace
}  // namespace bitnet::parity
