#include "select/ranking.hpp"

#include <gtest/gtest.h>

#include "bitnet/abi/tensor.h"

namespace bitnet::select {
namespace {

probe::device_report device(uint32_t device_class, const char* pci = "", const char* uuid = "") {
  probe::device_report out;
  out.info.device_class = device_class;
  std::string(pci).copy(out.info.pci_address, sizeof out.info.pci_address - 1);
  std::string(uuid).copy(out.info.uuid, sizeof out.info.uuid - 1);
  return out;
}

bitnet_kernel_info kernel(uint32_t format, uint32_t level) {
  bitnet_kernel_info out{};
  out.format = format;
  out.level = level;
  return out;
}

TEST(ranking, follows_the_facts_in_their_order) {
  const struct {
    score high, low;
    const char* why;
  } rows[] = {{{BITNET_DEVICE_GPU, 0, 0, 0},
               {BITNET_DEVICE_NPU, BITNET_LEVEL_FUSED, 80, 99},
               "gpu comes before npu"},
              {{BITNET_DEVICE_NPU, 0, 0, 0},
               {BITNET_DEVICE_CPU, BITNET_LEVEL_FUSED, 80, 99},
               "npu comes before cpu"},
              {{BITNET_DEVICE_CPU, 0, 0, 0},
               {BITNET_DEVICE_OTHER, BITNET_LEVEL_FUSED, 80, 99},
               "cpu comes before other"},
              {{BITNET_DEVICE_GPU, BITNET_LEVEL_FUSED, 1, 0},
               {BITNET_DEVICE_GPU, BITNET_LEVEL_OPTIMISED, 80, 99},
               "fused ternary kernels come before optimised"},
              {{BITNET_DEVICE_GPU, BITNET_LEVEL_REFERENCE, 1, 0},
               {BITNET_DEVICE_GPU, 0, 80, 99},
               "reference ternary kernels come before none"},
              {{BITNET_DEVICE_GPU, BITNET_LEVEL_FUSED, 80, 0},
               {BITNET_DEVICE_GPU, BITNET_LEVEL_FUSED, 24, 99},
               "80 GiB of memory is more than 24"},
              {{BITNET_DEVICE_GPU, BITNET_LEVEL_FUSED, 80, 60},
               {BITNET_DEVICE_GPU, BITNET_LEVEL_FUSED, 80, 50},
               "priority 60 is above 50"},
              {{BITNET_DEVICE_GPU, BITNET_LEVEL_FUSED, 80, 50, {3'000'000'000}},
               {BITNET_DEVICE_GPU, BITNET_LEVEL_FUSED, 80, 50, {1'500'000'000}},
               "equal in class, kernels, memory and priority, and measured faster: 3000 million "
               "ternary products a second, not 1500 million"},
              {{BITNET_DEVICE_GPU, BITNET_LEVEL_FUSED, 80, 50, {1'000'000}},
               {BITNET_DEVICE_GPU, BITNET_LEVEL_FUSED, 80, 50, {0}},
               "equal in class, kernels, memory and priority, and measured faster: 1 million "
               "ternary products a second, not an unknown number of"}};
  for (const auto& r : rows) {
    EXPECT_GT(order_of(r.high), order_of(r.low)) << r.why;
    EXPECT_EQ(why_behind(r.high, r.low), r.why);
  }
  const score same{BITNET_DEVICE_CPU, 1, 2, 3, {1'000'000'000}};
  const score nearly{BITNET_DEVICE_CPU, 1, 2, 3, {1'010'000'000}};
  EXPECT_EQ(order_of(same), order_of(nearly)) << "no two measurements agree";
  EXPECT_EQ(order_of(same), order_of(same));
  EXPECT_NE(why_behind(same, same).find("the name decides"), std::string::npos);
}

TEST(ranking, takes_its_facts_from_the_device) {
  auto d = device(BITNET_DEVICE_GPU);
  d.info.memory_total_bytes = (uint64_t{24} << 30) + 5;
  d.kernels = {kernel(BITNET_FORMAT_F16, BITNET_LEVEL_FUSED),
               kernel(BITNET_FORMAT_TERNARY2, BITNET_LEVEL_REFERENCE),
               kernel(BITNET_FORMAT_TERNARY2, BITNET_LEVEL_OPTIMISED),
               kernel(BITNET_FORMAT_TERNARY2, 77)};
  d.rates.small = 5;
  const score s = score_of(d, -7);
  EXPECT_EQ(s.rates.small, 5U);
  EXPECT_EQ(s.device_class, BITNET_DEVICE_GPU);
  EXPECT_EQ(s.kernels, BITNET_LEVEL_OPTIMISED) << "an unknown level does not count";
  EXPECT_EQ(s.memory_gib, 24U);
  EXPECT_EQ(s.priority, -7);
  EXPECT_STREQ(level_name(s.kernels), "optimised");
}

TEST(ranking, a_processor_is_its_own_backends) {
  auto d = device(BITNET_DEVICE_CPU);
  const score native = score_of(d, 1, BITNET_DEVICE_CPU);
  d.info.memory_total_bytes = uint64_t{99} << 30;
  d.kernels = {kernel(BITNET_FORMAT_TERNARY2, BITNET_LEVEL_FUSED)};
  const score software = score_of(d, 99, BITNET_DEVICE_GPU);
  EXPECT_GT(order_of(native), order_of(software)) << "whatever a driver in software claims";
  EXPECT_NE(why_behind(native, software).find("driver in software"), std::string::npos);
  EXPECT_FALSE(score_of(device(BITNET_DEVICE_GPU), 1, BITNET_DEVICE_CPU).software);
}

// Facts and rates of a GPU as a backend shows it: {small, token, prompt} in millions.
struct shown {
  std::string backend, pci;
  int32_t priority = 50;
  probe::product_rates millions = {};
};
std::vector<std::string> ordered(const std::vector<shown>& all, std::vector<std::string>* why) {
  std::vector<bitnet_device_info> infos;
  for (const shown& one : all) infos.push_back(device(BITNET_DEVICE_GPU, one.pci.c_str()).info);
  std::vector<contender> contenders;
  for (std::size_t i = 0; i < all.size(); ++i) {
    score s{BITNET_DEVICE_GPU, BITNET_LEVEL_FUSED, 24, all[i].priority};
    const auto& [small, token, prompt] = all[i].millions;
    s.rates = {small * 1'000'000, token * 1'000'000, prompt * 1'000'000};
    contenders.push_back({&infos[i], s, all[i].backend, 0});
  }
  const auto numbers = order(contenders);
  std::vector<std::string> out;
  for (const std::size_t i : numbers) out.push_back(all[i].backend);
  for (std::size_t i = 0; i + 1 < numbers.size(); ++i)
    why->push_back(why_lower(contenders[numbers[i]], contenders[numbers[i + 1]]));
  return out;
}

TEST(ranking, of_one_device_the_backend_that_was_measured_faster_comes_first) {
  using names = std::vector<std::string>;
  const std::string here = "0000:01:00.0", there = "0000:02:00.0";
  const struct {
    std::vector<shown> all;
    names order;
    std::string why;  // of the second
  } rows[] = {
      {{{"native", here, 60, {100, 100, 100}}, {"portable", here, 50, {90, 150, 200}}},
       {"portable", "native"},
       "measured 1.7 times as fast on the same device: 150 million ternary products a second with "
       "one token, not 100 million; 200 million with 64 tokens, not 100 million"},
      // One rate is higher by as much as the other is lower.
      {{{"native", here, 60, {100, 100, 200}}, {"portable", here, 50, {100, 200, 100}}},
       {"native", "portable"},
       "priority 60 is above 50"},
      // As two measurements of one thing differ.
      {{{"native", here, 60, {100, 100, 100}}, {"portable", here, 50, {100, 108, 108}}},
       {"native", "portable"},
       "priority 60 is above 50"},
      // More was measured of one of them only: then by what was measured of both.
      {{{"native", here, 60, {100, 0, 0}}, {"portable", here, 50, {300, 900, 900}}},
       {"portable", "native"},
       "measured 3.0 times as fast on the same device: 300 million ternary products a second, not "
       "100 million"},
      {{{"native", here, 60}, {"portable", here, 50, {300, 900, 900}}},
       {"native", "portable"},
       "priority 60 is above 50"},
      // Other hardware is ranked by its facts.
      {{{"native", here, 60, {100, 100, 100}}, {"portable", there, 50, {900, 900, 900}}},
       {"native", "portable"},
       "priority 60 is above 50"},
      // Not clearly faster than the second, but than the one that would be first by priority.
      {{{"a", here, 60, {1, 100, 100}},
        {"b", here, 50, {1, 112, 112}},
        {"c", here, 55, {1, 105, 105}}},
       {"b", "a", "c"},
       "measured 1.1 times as fast on the same device: 112 million ternary products a second with "
       "one token, not 100 million; 112 million with 64 tokens, not 100 million"},
  };
  for (const auto& r : rows) {
    std::vector<std::string> why;
    EXPECT_EQ(ordered(r.all, &why), r.order) << r.why;
    EXPECT_EQ(why.at(0), r.why);
  }
}

TEST(ranking, knows_one_device_behind_two_backends) {
  const struct {
    const char *pci_a, *uuid_a, *pci_b, *uuid_b;
    bool same;
    const char* why;
  } rows[] = {{"0000:01:00.0", "", "0000:01:00.0", "", true, "one address"},
              {"0000:01:00.0", "", "01:00.0", "", true, "the domain left out"},
              {"000000:0A:00.0", "", "0000:0a:00.0", "", true, "more digits and capitals"},
              {"0001:01:00.0", "", "01:00.0", "", false, "another domain"},
              {"0000:01:00.0", "x1", "0000:02:00.0", "x1", false, "the address decides"},
              {"", "GPU-8a7b-01", "", "8A7B01", true, "one UUID, written in two ways"},
              {"0000:01:00.0", "u1", "", "u1", true, "one of them has no address"},
              {"", "", "", "", false, "nothing is known"},
              {"nonsense", "", "nonsense", "", false, "no address"},
              {"", "--", "", "--", false, "no UUID"}};
  for (const auto& r : rows) {
    const auto a = device(BITNET_DEVICE_GPU, r.pci_a, r.uuid_a),
               b = device(BITNET_DEVICE_GPU, r.pci_b, r.uuid_b);
    EXPECT_EQ(is_same_hardware(a.info, b.info), r.same) << r.why;
    EXPECT_EQ(is_same_hardware(b.info, a.info), r.same) << r.why;
  }
  const auto gpu = device(BITNET_DEVICE_GPU, "", "u"), cpu = device(BITNET_DEVICE_CPU, "", "u");
  EXPECT_FALSE(is_same_hardware(gpu.info, cpu.info));
}

}  // namespace
}  // namespace bitnet::select
