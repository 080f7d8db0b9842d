// Settings that are measured: what can be adopted, that measuring ends, and that no result depends
// on them.

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "forms.hpp"
#include "host.hpp"
#include "ops/ops.hpp"
#include "ops/tuning.hpp"

namespace bitnet::parity {
namespace {

class tuned : public testing::Test {
 protected:
  ~tuned() override { cpu::adopt_tuning("ahead=8192 tile_rows=64"); }
};

TEST_F(tuned, adopts_what_it_wrote_and_nothing_else) {
  ASSERT_TRUE(cpu::adopt_tuning("ahead=2048 tile_rows=16"));
  EXPECT_EQ(cpu::describe_tuning(), "ahead=2048 tile_rows=16");
  for (const char* bad :
       {"", " ", "ahead=4096", "ahead=4096 tile_rows=", "ahead=4096 tile_rows=129",
        "ahead=4097 tile_rows=64", "tile_rows=64 ahead=4096", "ahead=4096 tile_rows=64 ",
        "ahead=-1 tile_rows=64", "ahead=99999999999 tile_rows=64"}) {
    EXPECT_FALSE(cpu::adopt_tuning(bad)) << bad;
    EXPECT_EQ(cpu::describe_tuning(), "ahead=2048 tile_rows=16") << bad;
  }
}

TEST_F(tuned, results_do_not_depend_on_it) {
  constexpr uint64_t k = 640, m = 200, tokens = 37;
  std::mt19937 random(5);
  std::vector<uint8_t> codes(m * k / 4);
  for (uint8_t& c : codes)
    c = static_cast<uint8_t>((random() % 3) * 85);  // 00, 01 or 10 four times
  std::vector<int8_t> q(tokens * k);
  for (int8_t& v : q) v = static_cast<int8_t>(random() % 255 - 127);
  const std::vector<float> s(tokens, 3.0f);
  const float scale = 0.5f;
  const sdk::weight w{BITNET_FORMAT_TERNARY2, k, m, codes.data(), k / 4, &scale, 0};
  std::vector<float> expected;
  for (const char* text : {"ahead=8192 tile_rows=64", "ahead=2048 tile_rows=16",
                           "ahead=32768 tile_rows=128", "ahead=4096 tile_rows=32"}) {
    ASSERT_TRUE(cpu::adopt_tuning(text));
    for (const cpu::isa_form* form : all_forms()) {
      std::vector<float> y(tokens * m);
      cpu::linear_ternary(*form, w, q.data(), s.data(), tokens, 0, m, y.data());
      if (expected.empty()) expected = y;
      ASSERT_TRUE(std::equal(y.begin(), y.end(), expected.begin(), expected.end()))
          << text << ' ' << form->name;
    }
  }
}

TEST_F(tuned, measuring_ends_with_what_can_be_adopted) {
  if (emulated()) GTEST_SKIP() << "measures the emulator";
  const tiny_host host(2);
  cpu::measure_tuning(*all_forms().front(), sdk::host(host.table()), 1'000'000);
  const std::string found = cpu::describe_tuning();
  EXPECT_TRUE(cpu::adopt_tuning(found)) << found;
  printf("measured: %s\n", found.c_str());
}

}  // namespace
}  // namespace bitnet::parity
