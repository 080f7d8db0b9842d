// When a device's settings are measured, adopted and kept: by what a backend of the test's own
// offers as "bitnet.tuning".

#include "engine/tuning.hpp"

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engines.hpp"
#include "patched_slot.hpp"

namespace bitnet::engine {
namespace {

using test::fail_with;
using test::patched;

// What the fake was called with, and what it answers.
struct fake_tuning {
  std::string used = "ahead=default";
  std::string measured = "ahead=8192 ahead:4096=30.1~2";
  bitnet_status describes = BITNET_OK, measures = BITNET_OK, adopts = BITNET_OK;
  std::vector<uint64_t> budgets;     // of each measure()
  std::vector<std::string> adopted;  // by each adopt()
  uint64_t last_token = 99;
};
fake_tuning fake;

bitnet_status describe(bitnet_device*, char* out, uint64_t capacity, bitnet_error* err) {
  if (fake.describes != BITNET_OK) return fail_with(err, fake.describes, "no words");
  if (fake.used.size() + 1 > capacity) return BITNET_INVALID_ARGUMENT;
  std::memcpy(out, fake.used.c_str(), fake.used.size() + 1);
  return BITNET_OK;
}
bitnet_status measure(bitnet_device*, uint64_t budget, uint64_t token, bitnet_error* err) {
  fake.budgets.push_back(budget);
  fake.last_token = token;
  if (fake.measures != BITNET_OK && fake.measures != BITNET_UNAVAILABLE)
    return fail_with(err, fake.measures, "it broke");
  fake.used = fake.measured;
  return fake.measures == BITNET_OK ? BITNET_OK : fail_with(err, fake.measures, "others compute");
}
bitnet_status adopt(bitnet_device*, bitnet_str settings, bitnet_error* err) {
  fake.adopted.emplace_back(settings.data, settings.size);
  if (fake.adopts != BITNET_OK && fake.adopts != BITNET_UNAVAILABLE)
    return fail_with(err, fake.adopts, "cannot be read");
  fake.used = fake.adopted.back();
  return fake.adopts == BITNET_OK ? BITNET_OK : fail_with(err, fake.adopts, "it is old");
}

class tuning : public test::engines {
 protected:
  void SetUp() override {
    test::engines::SetUp();
    fake = {};
    table_ = {{sizeof(bitnet_tuning_v1), 1}, describe, measure, adopt};
    offers_.emplace(*cpu_.backend, [this](bitnet_backend*, bitnet_str name, uint32_t version) {
      EXPECT_EQ(std::string_view(name.data, name.size), BITNET_INTERFACE_TUNING);
      EXPECT_EQ(version, 1U);
      return offered_ ? &table_.header : nullptr;
    });
  }
  std::string start(bool now = false, bool has_cache = true) {
    notes_.clear();
    const pack_cache cache({.folder = scratch_.path() / "packed",
                            .note = [this](uint32_t level, const std::string& text) {
                              notes_ +=
                                  (level == BITNET_LOG_WARN ? "warning: " : "info: ") + text + "\n";
                            }});
    return tune(cpu_, nullptr, has_cache ? &cache : nullptr, now);
  }
  void expect_note(const char* what) const {
    EXPECT_NE(notes_.find(what), std::string::npos) << what << " in: " << notes_;
  }

  bitnet_tuning_v1 table_{};
  bool offered_ = true;
  std::string notes_;
  std::optional<patched<&bitnet_backend_v0::query_interface>> offers_;
};

TEST_F(tuning, is_measured_at_the_first_start_and_adopted_at_the_next) {
  EXPECT_EQ(start(), fake.measured);
  EXPECT_EQ(fake.budgets, (std::vector<uint64_t>{60'000'000}));
  EXPECT_EQ(fake.last_token, 0U);
  EXPECT_TRUE(fake.adopted.empty());
  expect_note("info: backend cpu: measured ahead=8192 ahead:4096=30.1~2");
  fake.used = "ahead=default";
  fake.measured = "ahead=1";
  EXPECT_EQ(start(), "ahead=8192 ahead:4096=30.1~2");
  EXPECT_EQ(fake.adopted, (std::vector<std::string>{"ahead=8192 ahead:4096=30.1~2"}));
  EXPECT_EQ(fake.budgets.size(), 1U) << "not measured again";
  EXPECT_EQ(notes_, "");
}

TEST_F(tuning, is_measured_longer_when_it_is_asked_for_and_then_kept) {
  start();
  fake.measured = "ahead=2";
  EXPECT_EQ(start(true), "ahead=2");
  EXPECT_EQ(fake.budgets, (std::vector<uint64_t>{60'000'000, 600'000'000}));
  EXPECT_EQ(fake.adopted.size(), 1U) << "from what was kept";
  start();
  EXPECT_EQ(fake.adopted.back(), "ahead=2");
}

TEST_F(tuning, without_a_cache_is_what_the_backend_begins_with) {
  EXPECT_EQ(start(false, false), "ahead=default");
  EXPECT_TRUE(fake.budgets.empty());
  EXPECT_EQ(start(true, false), fake.measured) << "unless it is asked for";
  EXPECT_EQ(fake.budgets.size(), 1U);
}

TEST_F(tuning, that_cannot_be_read_or_is_old_is_measured_again) {
  const struct {
    bitnet_status status;
    const char* note;
  } rows[] = {
      {BITNET_INVALID_ARGUMENT, "warning: backend cpu: settings are measured again: "},
      {BITNET_UNAVAILABLE, "info: backend cpu: settings are measured again: "},
  };
  for (const auto& row : rows) {
    fake = {};
    start();
    fake.adopts = row.status;
    fake.measured = "ahead=3";
    EXPECT_EQ(start(), "ahead=3");
    expect_note(row.note);
    fake.adopts = BITNET_OK;
    start();
    EXPECT_EQ(fake.adopted.back(), "ahead=3") << "the new one is kept";
  }
}

TEST_F(tuning, that_cannot_be_believed_is_kept_and_one_that_failed_is_not) {
  fake.measures = BITNET_UNAVAILABLE;
  EXPECT_EQ(start(), fake.measured);
  expect_note("info: backend cpu: its settings stay as they are: ");
  expect_note("others compute");
  start();
  EXPECT_EQ(fake.adopted.size(), 1U);

  fake = {};
  fake.measures = BITNET_INTERNAL;
  cpu_.device.compute_units += 1;  // another device, of which nothing is kept
  EXPECT_EQ(start(), "ahead=default");
  expect_note("warning: backend cpu: measuring its settings failed: ");
  expect_note("it broke");
  start();
  EXPECT_TRUE(fake.adopted.empty());
  EXPECT_EQ(fake.budgets.size(), 2U);
}

// What was measured on one machine says nothing of another.
TEST_F(tuning, is_kept_for_the_device_and_driver_that_it_was_measured_on) {
  const auto measured_again = [&](const auto& change) {
    start();
    const std::size_t before = fake.budgets.size();
    change(cpu_.device);
    start();
    return fake.budgets.size() != before;
  };
  EXPECT_FALSE(measured_again([](bitnet_device_info&) {}));
  EXPECT_TRUE(measured_again([](bitnet_device_info& d) { d.compute_units += 1; }));
  EXPECT_TRUE(measured_again([](bitnet_device_info& d) { d.name[0] ^= 1; }));
  EXPECT_TRUE(measured_again([](bitnet_device_info& d) { d.arch[0] = 'z'; }));
  EXPECT_TRUE(measured_again([](bitnet_device_info& d) { d.driver_version[0] = 'z'; }));
  EXPECT_FALSE(measured_again([](bitnet_device_info& d) { d.memory_total_bytes += 1; }));
}

TEST_F(tuning, that_no_backend_offers_is_nothing) {
  offered_ = false;
  EXPECT_EQ(start(true), "");
  offered_ = true;
  table_.measure = nullptr;  // a table that lacks a slot counts as none
  EXPECT_EQ(start(true), "");
  EXPECT_TRUE(fake.budgets.empty());
  table_.measure = measure;
  fake.describes = BITNET_INTERNAL;
  EXPECT_EQ(start(false, false), "");
}

TEST(tuning_words, are_settings_or_figures) {
  const struct {
    const char* text;
    const char* settings;
    std::vector<std::string> figures;  // setting=value=figure~spread
    const char* why;
  } rows[] = {
      {"", "", {}, "nothing"},
      {"ahead=8192 rows=64", "ahead=8192 rows=64", {}, "settings alone"},
      {"ahead=8192 ahead:4096=30.5~2 ahead:0=7~0.5",
       "ahead=8192",
       {"ahead=4096=30.5~2", "ahead=0=7~0.5"},
       "two figures"},
      {"a:b=1", "a:b=1", {}, "no spread"},
      {"a=b:1~2", "a=b:1~2", {}, "the colon stands behind"},
      {"a:b=x~2", "a:b=x~2", {}, "no number"},
      {"a:b=1~", "a:b=1~", {}, "no number of the spread"},
      {"a:b=1~2x", "a:b=1~2x", {}, "more behind it"},
      {"a:b=inf~1", "a:b=inf~1", {}, "no finite number"},
      {"a:b=1,5~1", "a:b=1,5~1", {}, "a comma of some locale"},
  };
  for (const auto& row : rows) {
    const tuning_text got = read_tuning(row.text);
    EXPECT_EQ(got.settings, row.settings) << row.why;
    std::vector<std::string> figures;
    for (const tuning_figure& f : got.figures)
      figures.push_back(fmt::format("{}={}={}~{}", f.setting, f.value, f.figure, f.spread_percent));
    EXPECT_EQ(figures, row.figures) << row.why;
  }
}

}  // namespace
}  // namespace bitnet::engine
