// The file of --trace: whole events whatever happens, a bound, and what its events say.
#include "timeline/timeline.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "../scratch_folder.hpp"

namespace bitnet::host::timeline {
namespace {

using nlohmann::json;

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

class file : public testing::Test {
 protected:
  std::string path(const std::string& name = "trace.json") {
    return (folder_.path() / name).string();
  }
  std::unique_ptr<event_file> open(uint64_t most = 1U << 20U) {
    auto out = event_file::open(path(), most);
    EXPECT_TRUE(out.has_value()) << out.error().message;
    return *std::move(out);
  }
  void put(const std::string& name, const std::string& text) {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  test::scratch_folder folder_;
};

TEST_F(file, is_an_array) {
  const auto f = open();
  f->add(R"({"name":"a"})");
  f->add(R"({"name":"b"})");
  ASSERT_TRUE(f->finish());
  const json all = json::parse(content(path()));
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[1]["name"], "b");
  EXPECT_EQ(all[2]["name"], "end of trace");
  EXPECT_EQ(all[2]["args"]["events"], 2);
  EXPECT_EQ(all[2]["args"]["dropped_events"], 0);
}

// What a kill leaves is the file without what waits in memory: whole events, and no end.
TEST_F(file, ends_with_a_whole_event_at_any_time) {
  const auto f = open(1U << 24U);
  const std::string event = R"({"name":")" + std::string(997, 'x') + R"("})";
  for (int i = 0; i < 500; ++i) f->add(event);
  const std::string text = content(path());
  ASSERT_GT(text.size(), 100000U);
  EXPECT_GT(json::parse(text + "\n]").size(), 100U);
}

TEST_F(file, keeps_to_its_bound_and_counts) {
  const auto f = open(event_file::least_bytes);
  const std::string event = R"({"name":")" + std::string(90, 'x') + R"("})";
  f->drop();  // before the file is full, which is said all the same
  for (int i = 0; i < 1000; ++i) f->add(event);
  f->drop();
  ASSERT_TRUE(f->finish());
  const std::string text = content(path());
  EXPECT_LE(text.size(), event_file::least_bytes);
  const json all = json::parse(text);
  const json& end = all.back()["args"];
  EXPECT_GT(end["dropped_events"].get<int>(), 800);
  // One of those that are there says where dropping began.
  EXPECT_EQ(end["events"].get<int>() - 1 + end["dropped_events"].get<int>(), 1002);
  EXPECT_EQ(all[all.size() - 2]["name"], "events are dropped from here on");
}

TEST_F(file, is_safe_of_several_threads) {
  const auto f = open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) f->add(R"({"name":"a","args":{"long":"enough"}})");
    });
  for (std::thread& t : threads) t.join();
  ASSERT_TRUE(f->finish());
  EXPECT_EQ(json::parse(content(path())).size(), 2001U);
}

TEST_F(file, replaces_a_trace_and_nothing_else) {
  struct row {
    std::string text;
    bool replaced;
    const char* why;
  };
  for (const row& r :
       {row{"", true, "empty"}, row{"[\n", true, "a trace without events"},
        row{"[\n{\"name\":\"x\"},\n", true, "a cut trace"}, row{"GGUF", false, "a model"},
        row{"[", false, "shorter than a trace"}, row{"[\n1]", false, "other JSON"}}) {
    put("trace.json", r.text);
    const auto out = event_file::open(path(), 1U << 20U);
    EXPECT_EQ(out.has_value(), r.replaced) << r.why;
    if (out) continue;
    EXPECT_EQ(out.error().exit_code, exit_code::usage) << r.why;
    EXPECT_EQ(content(path()), r.text) << r.why;
  }
}

TEST_F(file, is_a_regular_one) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  for (const std::string& name :
       {path("pipe"), path(""), path("none/x"), std::string("/dev/null")}) {
    const auto out = event_file::open(name, 1U << 20U);
    ASSERT_FALSE(out.has_value()) << name;
    EXPECT_NE(out.error().message.find("cannot write " + name), std::string::npos)
        << out.error().message;
  }
}

bitnet_str str(std::string_view text) {
  return {text.data(), text.size()};
}

bitnet_trace_event event(uint32_t kind, uint64_t runner = 1) {
  bitnet_trace_event out{};
  out.struct_size = sizeof out;
  out.kind = kind;
  out.runner = runner;
  out.step = 7;
  out.begin_ns = 1002003004;
  out.end_ns = 1002003104;
  out.n_sequences = 2;
  out.n_tokens = 5;
  out.n_outputs = 3;
  out.device = str("cpu:0");
  return out;
}

class events : public file {
 protected:
  // What the file has once these were reported.
  json all_of(const std::vector<bitnet_trace_event>& given) {
    auto t = timeline::open(path(), 16U << 20U, "1.2.3");
    EXPECT_TRUE(t.has_value());
    for (const bitnet_trace_event& one : given) timeline::on_event(t->get(), &one);
    EXPECT_TRUE((*t)->finish());
    return json::parse(content(path()));
  }
  static json named(const json& all, const std::string& name, int process) {
    for (const json& one : all)
      if (one["name"] == name && one["pid"] == process && one["ph"] != "M") return one;
    return {};
  }
};

TEST_F(events, say_what_was_measured) {
  const json all =
      all_of({event(BITNET_TRACE_SUBMIT), event(BITNET_TRACE_WAIT), event(BITNET_TRACE_DEVICE),
              event(BITNET_TRACE_STEP), event(BITNET_TRACE_SAMPLE)});
  const json step = named(all, "step", 1);
  EXPECT_EQ(step["ph"], "X");
  EXPECT_DOUBLE_EQ(step["ts"].get<double>(), 1002003.004);
  EXPECT_DOUBLE_EQ(step["dur"].get<double>(), 0.1);
  EXPECT_EQ(step["args"], json::parse(R"({"runner":1,"step":7,"sequences":2,"tokens":5,"rows":3,
                                          "ended":"ok"})"));
  for (const char* name : {"submit", "wait", "sample"})
    EXPECT_EQ(named(all, name, 1)["ph"], "X") << name;
  EXPECT_EQ(named(all, "step", 2)["args"]["measured"], "by the host");
  EXPECT_EQ(named(all, "begin of trace", 1)["args"]["program"], "bitnet 1.2.3");
}

TEST_F(events, of_kernels_are_sums_without_duration) {
  bitnet_trace_event one = event(BITNET_TRACE_KERNEL);
  one.begin_ns = one.end_ns;
  one.kernel = str("rms_norm.scalar");
  one.op = str("rms_norm");
  one.calls = 4;
  bitnet_trace_event timed = one;
  timed.kernel = str("linear.avx2");
  timed.time_ns = 40;
  timed.bytes = 400;
  const json all = all_of({one, timed});
  const json plain = named(all, "rms_norm.scalar", 2);
  EXPECT_EQ(plain["ph"], "i");
  EXPECT_FALSE(plain.contains("dur"));
  EXPECT_EQ(plain["args"]["sum_of"], "step");
  EXPECT_EQ(plain["args"]["calls"], 4);
  EXPECT_FALSE(plain["args"].contains("time_ns")) << "it was not measured";
  EXPECT_EQ(named(all, "linear.avx2", 2)["args"]["time_ns"], 40);
  EXPECT_EQ(named(all, "linear.avx2", 2)["args"]["bytes"], 400);
}

TEST_F(events, say_how_a_step_ended) {
  bitnet_trace_event cancelled = event(BITNET_TRACE_STEP), failed = cancelled;
  cancelled.status = BITNET_CANCELLED;
  failed.status = BITNET_DEVICE_LOST;
  EXPECT_EQ(named(all_of({cancelled}), "step", 1)["args"]["ended"], "cancelled");
  EXPECT_EQ(named(all_of({failed}), "step", 1)["args"]["ended"], "failed with status 8");
}

TEST_F(events, of_two_runners_lie_on_two_tracks) {
  const json all = all_of({event(BITNET_TRACE_DEVICE, 1), event(BITNET_TRACE_DEVICE, 2),
                           event(BITNET_TRACE_DEVICE, 1)});
  std::vector<int> tracks;
  std::vector<std::string> names;
  for (const json& one : all) {
    if (one["ph"] == "X") tracks.push_back(one["tid"]);
    if (one["name"] == "thread_name") names.push_back(one["args"]["name"]);
  }
  EXPECT_EQ(tracks, (std::vector<int>{1, 2, 1}));
  EXPECT_EQ(names, (std::vector<std::string>{"cpu:0, runner 1", "cpu:0, runner 2"}));
}

TEST_F(events, take_any_text_of_a_backend) {
  bitnet_trace_event one = event(BITNET_TRACE_KERNEL);
  one.kernel = str("\"\n\xff\x01]}");
  one.device = str("\\\"");
  one.op = {};
  const json all = all_of({one, event(99)});
  EXPECT_EQ(all.back()["args"]["dropped_events"], 1) << "of a kind that is not known";
  EXPECT_EQ(all[all.size() - 2]["args"]["device"], "\\\"");
}

TEST_F(events, have_tracks_within_a_bound) {
  std::vector<bitnet_trace_event> given;
  for (uint64_t runner = 1; runner <= 5000; ++runner)
    given.push_back(event(BITNET_TRACE_DEVICE, runner));
  EXPECT_EQ(all_of(given).back()["args"]["dropped_events"].get<int>(), 5000 - 4096);
}

}  // namespace
}  // namespace bitnet::host::timeline
