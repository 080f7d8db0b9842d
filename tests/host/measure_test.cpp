// What `bench` makes of numbers that users write, of files of the system, and of its rows.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fake_machine.hpp"
#include "measure/energy.hpp"
#include "measure/machine_load.hpp"
#include "measure/number_list.hpp"
#include "measure/sql_rows.hpp"

namespace bitnet::host::measure {
namespace {

using nlohmann::ordered_json;
using numbers = std::vector<uint32_t>;

TEST(number_list, ranges_are_those_of_llama_bench) {
  for (const auto& [text, want] :
       std::initializer_list<std::pair<const char*, numbers>>{{"512", {512}},
                                                              {"0", {0}},
                                                              {"1,8, 2", {1, 8, 2}},
                                                              {"1k,2K", {1000, 2048}},
                                                              {"128-512+128", {128, 256, 384, 512}},
                                                              {"128-500+128", {128, 256, 384}},
                                                              {"1-64*2", {1, 2, 4, 8, 16, 32, 64}},
                                                              {"1-5*3", {1, 3}},
                                                              {"3-6", {3, 4, 5, 6}},
                                                              {"7-7", {7}},
                                                              {"7-7+100", {7}},
                                                              {"1-4*2,100", {1, 2, 4, 100}}}) {
    const auto found = number_list(text, 0, 1 << 20);
    ASSERT_TRUE(found) << text;
    EXPECT_EQ(*found, want) << text;
  }
}

TEST(number_list, others_are_named) {
  for (const char* text : {"",
                           "x",
                           "-1",
                           "1,,2",
                           "5 6",
                           "9999999999",
                           "1-",
                           "-",
                           "1-2+",
                           "1-2*",
                           "1-2+0",
                           "1-8*1",
                           "0-8*2",
                           "1-8*0",
                           "1-8*-2",
                           "9-1",
                           "1-2000000",
                           "1-2-3",
                           "1+2",
                           "1-2+3+4",
                           "1--2",
                           "1-4+-1",
                           "9223372036854775807"}) {
    const auto found = number_list(text, 0, 1 << 20);
    ASSERT_FALSE(found) << text;
    EXPECT_EQ(found.error(), "'" + std::string(text) + "'");
  }
  EXPECT_EQ(number_list("0-1048576", 0, 1 << 20).error(), "more than 1000 of them");
  EXPECT_EQ(number_list("1-9+9223372036854775807", 0, 1 << 20).error(),
            "a step of 9223372036854775807");
  EXPECT_FALSE(number_list("1,2,3", 2, 8));
  EXPECT_EQ(*number_list("4294967295-4294967295*2147483647", 0, UINT32_MAX), numbers{UINT32_MAX});
}

class machine_load_of : public ::testing::Test {
 protected:
  load_reading reading(const char* stat, const char* load) {
    machine_.file("proc/stat", stat);
    machine_.file("proc/loadavg", load);
    load_reading out = load_now(doctor::system_tree(machine_.root()));
    out.own_ticks = 0;
    return out;
  }
  fake_machine machine_;
};

TEST_F(machine_load_of, two_readings_is_their_difference) {
  // user nice system idle iowait irq softirq steal guest guest_nice
  const auto begin = reading("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2\n", "0.50 0 0 1/2 3\n");
  auto end = reading("cpu  180 0 70 850 50 0 0 50 0 0\n", "1.25 0 0 1/2 3\n");
  end.own_ticks = 60;
  const machine_load load = load_between(begin, end);
  EXPECT_EQ(load.load_begin, 0.5);
  EXPECT_EQ(load.load_end, 1.25);
  EXPECT_EQ(load.stolen_pct, 25);  // 50 of 200 ticks
  EXPECT_EQ(load.others_pct, 20);  // 100 busy, of which 60 are ours
  EXPECT_EQ(load.line(),
            "load: 0.50 at the begin, 1.25 at the end; 25.0 % of the processors' time was "
            "stolen, 20.0 % was that of other processes\n");
  EXPECT_EQ(load.json().dump(),
            R"({"load_begin":0.5,"load_end":1.25,"stolen_pct":25.0,"others_pct":20.0})");
}

TEST_F(machine_load_of, files_without_valid_numbers_is_unknown) {
  const auto good = reading("cpu  100 0 50 800 50 0 0 0 0 0\n", "0.5 0 0 1/2 3\n");
  for (const char* stat :
       {"", "cpu\n", "cpu 1 2 3\n", "cpu a b c d e f g h i j\n", "cpu -1 0 0 0 0 0 0 0 0 0\n",
        "intr 1 2 3 4 5 6 7 8 9\n", "cpu 99999999999999999999 0 0 0 0 0 0 0 0 0\n"}) {
    const machine_load load = load_between(good, reading(stat, "x"));
    EXPECT_FALSE(load.stolen_pct) << stat;
    EXPECT_FALSE(load.load_end) << stat;
    EXPECT_EQ(load.line(), "");
  }
  EXPECT_FALSE(load_between(good, good).stolen_pct) << "no tick has passed";
}

TEST(energy, whole_packages_count_once_and_wrap) {
  fake_machine machine;
  const doctor::system_tree system(machine.root());
  EXPECT_FALSE(energy_meter(system).known());
  const auto put = [&](const std::string& folder, const char* name, const char* uj) {
    machine.file("sys/class/powercap/" + folder + "/name", name);
    machine.file("sys/class/powercap/" + folder + "/energy_uj", uj);
    machine.file("sys/class/powercap/" + folder + "/max_energy_range_uj", "1000000\n");
  };
  put("intel-rapl:0", "package-0\n", "100000\n");
  put("intel-rapl:0:0", "core\n", "5\n");
  put("intel-rapl:1", "package-1\n", "900000\n");
  put("intel-rapl:2", "psys\n", "5\n");
  put("intel-rapl-mmio:0", "package-0\n", "5\n");
  energy_meter meter(system);
  EXPECT_EQ(meter.source(), "package-0 package-1");
  meter.start();
  EXPECT_EQ(meter.joules(), 0);
  put("intel-rapl:0", "package-0\n", "350000\n");  // 0.25 J
  put("intel-rapl:1", "package-1\n", "400000\n");  // wrapped: 0.1 + 0.4 J
  EXPECT_DOUBLE_EQ(meter.joules().value_or(0), 0.75);
  put("intel-rapl:1", "package-1\n", "no number\n");
  EXPECT_FALSE(meter.joules());
  EXPECT_FALSE(energy_meter(system).known()) << "one of two packages is not the machine";
}

TEST(sql, columns_have_the_types_of_all_rows) {
  const std::vector<ordered_json> rows = {
      {{"test", "it's"}, {"n", 4}, {"ts", 2}, {"list", {1, 2}}, {"on", true}},
      {{"test", "a\"b"}, {"n", nullptr}, {"ts", 2.5}, {"more;--", std::string("x\0y", 3)}}};
  EXPECT_EQ(sql_rows(rows), R"(CREATE TABLE IF NOT EXISTS bitnet_bench (
  "test" TEXT,
  "n" INTEGER,
  "ts" REAL,
  "on" INTEGER,
  "more;--" TEXT
);

INSERT INTO bitnet_bench ("test", "n", "ts", "on", "more;--") VALUES ('it''s', 4, 2, 1, NULL);
INSERT INTO bitnet_bench ("test", "n", "ts", "on", "more;--") VALUES ('a"b', NULL, 2.5, NULL, 'xy');
)");
  EXPECT_EQ(sql_rows({}), "");
  EXPECT_EQ(sql_rows({{{"only", ordered_json::array()}}}), "");
}

}  // namespace
}  // namespace bitnet::host::measure
