// What a child says: written and read it is the same, and nonsense is rejected.

#include "probe/outcome.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <ostream>
#include <string>

#include "plugin/codes/text.hpp"

namespace bitnet::probe {
namespace {

facts sound() {
  facts f;
  f.version = "1.2.3";
  f.life_flags = 5;
  f.disabled = {"linear.fast"};
  f.self_test = "add: right";
  f.sandbox = "landlock 4";
  f.peak_bytes = 4096;
  f.unloads = true;
  device_report d;
  d.info.struct_size = sizeof d.info;
  d.info.device_class = BITNET_DEVICE_GPU;
  std::strcpy(d.info.name, "fake device");
  std::strcpy(d.info.uuid, "uuid-1");
  d.info.memory_total_bytes = uint64_t{1} << 40;
  d.info.buffer_alignment_bytes = 64;
  d.kernels.push_back({sizeof(bitnet_kernel_info), 4, 8, 2, 1, 0, "linear.slow"});
  d.rates = {7'000'000'000, 8, 9};
  d.status.rejected = "device_status() failed: no luck";
  f.devices = {d, d};
  bitnet_device_status s{};
  s.struct_size = sizeof s;
  s.known = BITNET_STATUS_MEMORY | BITNET_STATUS_TEMPERATURE | BITNET_STATUS_ECC;
  s.memory_total_bytes = uint64_t{1} << 40;
  s.memory_free_bytes = 5;
  s.temperature_millicelsius = -1500;
  s.ecc_corrected = UINT64_MAX;
  f.devices[1].status = {s, ""};
  return f;
}

TEST(facts, are_read_as_they_were_written) {
  facts f = sound();
  f.fault = plugin::defect{plugin::code::probe_failed, BITNET_UNAVAILABLE, "no luck", "try again"};
  const auto again = read_facts(write_facts(f));
  ASSERT_TRUE(again.has_value()) << again.error().reason;
  EXPECT_EQ(write_facts(*again), write_facts(f));
  EXPECT_EQ(again->fault->code, plugin::code::probe_failed);
  EXPECT_TRUE(again->unloads);
  EXPECT_EQ(again->devices.at(1).rates, (product_rates{7'000'000'000, 8, 9}));
  EXPECT_EQ(again->devices[0].status.rejected, "device_status() failed: no luck");
  EXPECT_FALSE(again->devices[0].status.reported);
  ASSERT_TRUE(again->devices[1].status.reported);
  EXPECT_EQ(again->devices[1].status.reported->temperature_millicelsius, -1500);
  EXPECT_EQ(again->devices[1].status.reported->ecc_corrected, UINT64_MAX);
  EXPECT_TRUE(differences(f.version, f.devices, again->version, again->devices).empty());
}

TEST(outcome, is_read_as_it_was_written) {
  outcome f;
  f.what = sound();
  f.reached = stage::close;
  f.stage_ms = {1, 2, 3, 4, 5};
  f.output = "one\ntwo\n";
  f.output_bytes = 8;
  f.notes.assign(most_notes, "slow");
  const auto again = read_outcome(write_outcome(f));
  ASSERT_TRUE(again.has_value()) << again.error().reason;
  EXPECT_EQ(write_outcome(*again), write_outcome(f));
  EXPECT_EQ(again->reached, stage::close);
}

struct row {
  const char* why;
  std::string text;
};
std::ostream& operator<<(std::ostream& out, const row& r) {
  return out << r.why;
}
class nonsense : public testing::TestWithParam<row> {};
TEST_P(nonsense, is_rejected) {
  const auto got = read_facts(GetParam().text);
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, plugin::code::probe_message);
}

std::string many(const char* item, int n) {
  std::string out = "{\"devices\":[";
  for (int i = 0; i < n; ++i) out += (i == 0 ? "" : ",") + std::string(item);
  return out + "]}";
}

const row rows[] = {
    {"nothing", ""},
    {"no JSON", "{\"devices\":"},
    {"a list", "[]"},
    {"devices that are no list", "{\"devices\":{}}"},
    {"a device that is no object", "{\"devices\":[1]}"},
    {"a device of no class", "{\"devices\":[{\"class\":0}]}"},
    {"an alignment that is none", "{\"devices\":[{\"class\":1,\"buffer_alignment_bytes\":48}]}"},
    {"a number that is none", "{\"devices\":[{\"class\":1,\"compute_units\":\"many\"}]}"},
    {"a negative number", "{\"devices\":[{\"class\":1,\"compute_units\":-1}]}"},
    {"a number that is too large", "{\"devices\":[{\"class\":1,\"compute_units\":4294967296}]}"},
    {"more devices than there are", many("{\"class\":1}", 1025)},
    {"a kernel that is no object", "{\"devices\":[{\"class\":1,\"kernels\":[0]}]}"},
    {"a status that is none", "{\"devices\":[{\"class\":1,\"status\":7}]}"},
    {"a status of no number",
     "{\"devices\":[{\"class\":1,\"status\":{\"known\":1,\"memory_total_bytes\":\"x\"}}]}"},
    {"a temperature that is too large",
     "{\"devices\":[{\"class\":1,\"status\":{\"known\":8,\"temperature_millicelsius\":"
     "3000000000}}]}"},
    {"a status that cannot be",
     "{\"devices\":[{\"class\":1,\"status\":{\"known\":4,\"utilisation_percent\":101}}]}"},
    {"a fault without a code", "{\"fault\":{\"status\":3,\"reason\":\"x\"}}"},
    {"a fault of an unknown code", "{\"fault\":{\"code\":\"BN-X\",\"status\":3,\"reason\":\"x\"}}"},
    {"a fault that is none", "{\"fault\":{\"code\":\"BN-OK\",\"status\":3,\"reason\":\"x\"}}"},
    {"a fault of no status",
     "{\"fault\":{\"code\":\"BN-P-FAILED\",\"status\":0,\"reason\":\"x\"}}"},
};
INSTANTIATE_TEST_SUITE_P(rows, nonsense, testing::ValuesIn(rows));

TEST(facts, hold_no_escape_sequences) {
  const auto got = read_facts("{\"devices\":[{\"class\":1,\"name\":\"\\u001b[2J\"}]}");
  ASSERT_TRUE(got.has_value());
  EXPECT_STREQ(got->devices[0].info.name, "\\x1b[2J");
}

TEST(differences, name_what_changed) {
  const facts a = sound();
  facts b = sound();
  std::strcpy(b.devices[1].info.uuid, "uuid-2");
  std::strcpy(b.devices[0].kernels[0].id, "linear.other");
  b.devices[0].info.memory_total_bytes = 1;  // may change
  const auto found = differences("1", a.devices, "2", b.devices);
  EXPECT_EQ(plugin::join(found, "|"),
            "version: 1, then 2|device 0: kernel 'linear.slow', then 'linear.other'|device 1: '2 "
            "fake device uuid-1  ', then '2 fake device uuid-2  '");
}

}  // namespace
}  // namespace bitnet::probe
