// Selection and probes together: slow backends join late, what is remembered needs no child, and
// what is remembered wrongly is asked again.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include "../../fakes/loader_fixture.hpp"
#include "../../fakes/probing.hpp"
#include "select/selection.hpp"

namespace bitnet::select {
namespace {

using clock = std::chrono::steady_clock;
using test::folder;
using test::manifest_text;
using test::recording_host;

const backend_report& find(const report& r, const std::string& name) {
  static const backend_report none;
  const auto at = std::ranges::find(r.backends, name, &backend_report::name);
  return at == r.backends.end() ? none : *at;
}

class probing : public testing::Test {
 protected:
  void install(const std::string& fake, const std::string& device_class) {
    files.write("backends.d/50-" + fake + ".yaml",
                manifest_text(fake, files.fake(fake), {{"class", device_class}}));
  }
  registry scan() { return registry::scan({files.path() / "backends.d"}, host, {}, how); }

  folder files;
  recording_host host;
  probe::settings how = test::probing();
};

TEST_F(probing, a_slow_backend_joins_late) {
  install("slow", "gpu");
  install("alpha", "cpu");
  how.wait_ms = 0;
  registry all = scan();
  report out;
  // The first to answer serves; alpha does, unless the machine slept.
  const auto chosen = all.select({}, out);
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_EQ(out.selected, "alpha");
  EXPECT_EQ(find(out, "slow").stage, "probing");
  EXPECT_EQ(find(out, "slow").code, "BN-P-PENDING");
  EXPECT_NE(find(out, "slow").reason.find("still being probed"), std::string::npos);
  EXPECT_TRUE(all.wait(clock::now() + std::chrono::seconds(60)));
  EXPECT_TRUE(all.collect(out));
  EXPECT_EQ(find(out, "slow").code, "BN-OK");
  EXPECT_EQ(out.detected, (std::vector<std::string>{"alpha", "slow"}));
  EXPECT_EQ(out.selected, "alpha") << "a late one changes no choice";
}

TEST_F(probing, a_single_requested_backend_is_awaited) {
  install("slow", "gpu");
  install("alpha", "cpu");
  how.wait_ms = 0;
  registry all = scan();
  report out;
  ASSERT_TRUE(all.select({.text = "slow"}, out));
  EXPECT_EQ(out.selected, "slow");
}

TEST_F(probing, others_may_wait_while_one_selects_and_reports) {
  install("slow", "gpu");
  install("alpha", "cpu");
  install("beta", "cpu");
  how.wait_ms = 0;
  registry all = scan();
  report out;
  std::mutex mutex;  // as the runtime has one
  std::atomic<bool> done{false};
  std::thread waiter([&] {
    while (!done) (void)all.wait(clock::now() + std::chrono::milliseconds(5));
  });
  std::thread reader([&] {
    while (!done) {
      const std::scoped_lock lock(mutex);
      all.collect(out);
    }
  });
  {
    const std::scoped_lock lock(mutex);
    EXPECT_TRUE(all.select({}, out));
  }
  for (bool complete = false; !complete;) {
    const std::scoped_lock lock(mutex);
    complete = all.collect(out);
  }
  done = true;
  waiter.join();
  reader.join();
  EXPECT_EQ(find(out, "slow").code, "BN-OK");
}

// Of a session that serves on: its caller is kept for a while, and hears what did not answer.
TEST_F(probing, another_choice_does_not_wait_for_ever) {
  install("hang-enumerate", "gpu");
  install("alpha", "cpu");
  how.wait_ms = 0;
  how.longest_wait_ms = 100;
  registry all = scan();
  report out;
  ASSERT_TRUE(all.select({.text = "alpha"}, out));
  const auto first = all.select_other({.text = "hang-enumerate,alpha"}, {});
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->taken.device_name(), "alpha:0");
  EXPECT_EQ(first->late, std::vector<std::string>{"hang-enumerate"});
  const auto only = all.select_other({.text = "hang-enumerate"}, {});
  ASSERT_FALSE(only);
  EXPECT_EQ(only.error().status, BITNET_TIMEOUT);
  EXPECT_NE(only.error().message.find("hang-enumerate has not answered"), std::string::npos)
      << only.error().message;
  const auto plain = all.select_other({.text = "alpha"}, {});
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_TRUE(plain->late.empty());
}

TEST_F(probing, a_renewal_does_not_wait_for_ever) {
  install("hang-enumerate", "gpu");
  how.longest_wait_ms = 100;
  registry all = scan();
  auto fresh = all.renew("hang-enumerate");
  ASSERT_TRUE(fresh) << fresh.error().reason;
  const auto probed = fresh->probe();
  ASSERT_FALSE(probed);
  EXPECT_EQ(probed.error().status, BITNET_TIMEOUT);
  EXPECT_EQ(probed.error().code, plugin::code::probe_pending);
  EXPECT_NE(probed.error().reason.find("has not answered after"), std::string::npos);
}

TEST_F(probing, a_registry_that_goes_ends_its_children) {
  install("hang-enumerate", "gpu");
  install("alpha", "cpu");
  how.wait_ms = 0;
  const auto begin = clock::now();
  {
    registry all = scan();
    report out;
    ASSERT_TRUE(all.select({}, out));
  }
  EXPECT_LT(clock::now() - begin, std::chrono::seconds(50)) << "the deadline was waited for";
}

TEST_F(probing, files_that_a_driver_writes_are_removed) {
  how.scratch = files.path() / "scratch";
  std::filesystem::create_directory(how.scratch);
  how.most_stage_ms = 3000;
  // The fakes abort where their folder is not empty, or not theirs alone.
  const struct {
    const char *fake, *code, *why;
  } rows[] = {{"caches", "BN-OK", "a sound one"},
              {"caches-crash", "BN-P-CRASH", "one that crashes"},
              {"caches-hang", "BN-P-TIMEOUT", "one that hangs, and is killed"}};
  for (const auto& row : rows) install(row.fake, "gpu");
  registry all = scan();
  report out;
  all.probe_all(out);
  EXPECT_TRUE(std::filesystem::is_empty(how.scratch));
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    EXPECT_EQ(find(out, row.fake).code, row.code) << find(out, row.fake).reason;
    ASSERT_TRUE(find(out, row.fake).probed);
    const std::string& said = find(out, row.fake).probed->output;
    EXPECT_NE(said.find("cache in " + (how.scratch / "bitnet-probe-").string()), std::string::npos)
        << said;
  }
}

TEST_F(probing, a_registry_that_goes_takes_the_folders_with_it) {
  how.scratch = files.path() / "scratch";
  std::filesystem::create_directory(how.scratch);
  install("caches-hang", "gpu");
  install("alpha", "cpu");
  how.wait_ms = 0;
  {
    registry all = scan();
    report out;
    ASSERT_TRUE(all.select({}, out));
    const auto end = clock::now() + std::chrono::seconds(60);
    const auto written = [&] {
      for (const auto& entry : std::filesystem::directory_iterator(how.scratch))
        if (std::filesystem::exists(entry.path() / "deep/file")) return true;
      return false;
    };
    while (!written() && clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_TRUE(written());
  }
  EXPECT_TRUE(std::filesystem::is_empty(how.scratch));
}

TEST_F(probing, folders_of_killed_programs_are_removed) {
  how.scratch = files.path() / "scratch";
  files.write("scratch/bitnet-probe-killed/deep/file", "");
  std::filesystem::permissions(how.scratch / "bitnet-probe-killed",
                               std::filesystem::perms::owner_all);
  install("alpha", "cpu");
  report out;
  scan().probe_all(out);
  EXPECT_EQ(find(out, "alpha").code, "BN-OK");
  EXPECT_TRUE(std::filesystem::is_empty(how.scratch));
}

TEST_F(probing, without_a_place_to_write_the_probe_says_so) {
  how.scratch = "/proc";  // where folders cannot be made, not even by root
  install("alpha", "cpu");
  registry all = scan();
  report out;
  all.probe_all(out);
  EXPECT_EQ(find(out, "alpha").code, "BN-OK");
  EXPECT_NE(find(out, "alpha").reason.find("no folder for what its driver writes"),
            std::string::npos)
      << find(out, "alpha").reason;
}

TEST_F(probing, a_cached_answer_starts_no_child) {
  how.cache = files.path() / "probe";
  install("alpha", "cpu");
  report first;
  ASSERT_TRUE(scan().select({}, first));
  EXPECT_FALSE(find(first, "alpha").probed->cached);
  how.helper = "/nowhere";  // a child would fail
  report second;
  ASSERT_TRUE(scan().select({}, second));
  EXPECT_TRUE(find(second, "alpha").probed->cached);
  EXPECT_EQ(second.selected, "alpha");
  how.fresh = true;
  report third;
  EXPECT_FALSE(scan().select({}, third));
  EXPECT_EQ(find(third, "alpha").code, "BN-P-HELPER");
}

TEST_F(probing, without_a_helper_nothing_is_loaded) {
  how.helper = "/nowhere/bitnet-backend-probe";
  install("alpha", "cpu");
  report out;
  const auto chosen = scan().select({}, out);
  ASSERT_FALSE(chosen);
  EXPECT_EQ(find(out, "alpha").code, "BN-P-HELPER");
  EXPECT_NE(chosen.error().message.find("unprobed: not loaded"), std::string::npos);
  EXPECT_FALSE(host.said("alpha"));
}

TEST_F(probing, a_helper_that_others_may_write_is_not_run) {
  how.helper = files.write("helper", folder::read(how.helper), 0777);
  install("alpha", "cpu");
  report out;
  EXPECT_FALSE(scan().select({}, out));
  EXPECT_EQ(find(out, "alpha").code, "BN-P-HELPER");
  EXPECT_NE(find(out, "alpha").reason.find("writable by everybody"), std::string::npos);
}

TEST_F(probing, another_file_or_setting_is_asked_about_again) {
  how.cache = files.path() / "probe";
  install("alpha", "cpu");
  report out;
  ASSERT_TRUE(scan().select({}, out));
  host.settings = {{"isa", "other"}};
  ASSERT_TRUE(scan().select({}, out));
  EXPECT_FALSE(find(out, "alpha").probed->cached) << "another setting";
  ASSERT_TRUE(scan().select({}, out));
  EXPECT_TRUE(find(out, "alpha").probed->cached);
  // The same bytes under a new inode: a reinstalled plugin.
  std::filesystem::rename(files.path() / "lib/libfake-alpha.so", files.path() / "lib/old.so");
  std::filesystem::copy_file(files.path() / "lib/old.so", files.path() / "lib/libfake-alpha.so");
  ASSERT_TRUE(scan().select({}, out));
  EXPECT_FALSE(find(out, "alpha").probed->cached) << "another file";
}

TEST_F(probing, a_wrong_memory_is_dropped_and_asked_again) {
  how.cache = files.path() / "probe";
  install("shrinks", "gpu");  // two devices to a probe, one when loaded
  report out;
  EXPECT_FALSE(scan().select({}, out));
  EXPECT_EQ(find(out, "shrinks").code, "BN-P-MISMATCH");
  EXPECT_FALSE(find(out, "shrinks").probed->cached);
  EXPECT_FALSE(scan().select({}, out)) << "remembered, doubted, asked again, and still another";
  EXPECT_EQ(find(out, "shrinks").code, "BN-P-MISMATCH");
  EXPECT_FALSE(find(out, "shrinks").probed->cached);
}

TEST_F(probing, a_crash_is_remembered) {
  how.cache = files.path() / "probe";
  install("crash-enumerate", "gpu");
  report out;
  scan().probe_all(out);
  EXPECT_EQ(find(out, "crash-enumerate").code, "BN-P-CRASH");
  how.helper = "/nowhere";
  scan().probe_all(out);
  EXPECT_EQ(find(out, "crash-enumerate").code, "BN-P-CRASH") << "remembered";
  EXPECT_GT(find(out, "crash-enumerate").probed->retry_in_s, 0);
}

TEST_F(probing, a_disabled_kernel_stays_disabled_when_loaded) {
  how.cache = files.path() / "probe";
  install("wrong-kernel", "other");
  for (const bool cached : {false, true}) {
    report out;
    const auto chosen = scan().select({}, out);
    ASSERT_TRUE(chosen) << chosen.error().message;
    EXPECT_EQ(find(out, "wrong-kernel").probed->cached, cached);
    EXPECT_TRUE(host.said("kernel ternary.quick is disabled"));
    uint32_t count = 16;
    bitnet_kernel_info kernels[16] = {};
    bitnet_error err{};
    err.struct_size = sizeof err;
    const bitnet_backend_v0& t = chosen->backend->table();
    ASSERT_EQ(t.kernels(t.self, 0, kernels, sizeof kernels[0], &count, &err), BITNET_OK);
    EXPECT_TRUE(std::none_of(kernels, kernels + count, [](const bitnet_kernel_info& k) {
      return std::string(k.id) == "ternary.quick";
    }));
    EXPECT_NE(find(out, "wrong-kernel").reason.find("ternary.quick is disabled"),
              std::string::npos);
  }
}

// Its numbers are reported, in words and as JSON, and the stored answer has them too.
TEST_F(probing, results_of_a_wrong_kernel_are_reported_and_cached) {
  how.cache = files.path() / "probe";
  install("wrong-kernel", "other");
  for (const bool cached : {false, true}) {
    report out;
    ASSERT_TRUE(scan().select({}, out));
    ASSERT_EQ(find(out, "wrong-kernel").probed->cached, cached);
    const probe::facts& said = find(out, "wrong-kernel").probed->what;
    ASSERT_EQ(said.wrong_results.size(), 1U);
    // The fake is off by one.
    int found = 0, expected = 0;
    ASSERT_EQ(std::sscanf(said.wrong_results[0].c_str(),
                          "linear_ternary.ternary2: row 3 of token 0 of 1 is %d, not %d", &found,
                          &expected),
              2)
        << said.wrong_results[0];
    EXPECT_EQ(found, expected + 1);
    EXPECT_TRUE(said.wrong_results[0].ends_with(" (384 by 404, driver 5.4)"))
        << said.wrong_results[0];
    EXPECT_NE(find(out, "wrong-kernel").reason.find(said.wrong_results[0]), std::string::npos);
    EXPECT_NE(out.json().find("\"wrong_results\":[\"" + said.wrong_results[0] + "\"]"),
              std::string::npos);
    EXPECT_TRUE(host.said(said.wrong_results[0])) << "loading it says so";
  }
}

// A fused kernel that is made of a wrong one is wrong only as long as that runs.
TEST_F(probing, what_was_wrong_through_another_is_judged_again) {
  install("wrong-through", "other");
  report out;
  ASSERT_TRUE(scan().select({}, out));
  const auto& probed = find(out, "wrong-through").probed;
  EXPECT_EQ(probed->what.disabled, std::vector<std::string>{"ternary.quick"});
  EXPECT_NE(probed->what.self_test.find("bit_linear.ternary2: right"), std::string::npos)
      << probed->what.self_test;
}

// A backend may test its kernels itself, in the child. A kernel that it leaves out is disabled like
// one that the self-test finds: the warning that names it is the reason.
TEST_F(probing, a_kernel_that_a_backend_leaves_out_stays_out) {
  how.cache = files.path() / "probe";
  install("leaves-out", "other");
  for (const bool cached : {false, true}) {
    report out;
    const auto chosen = scan().select({}, out);
    ASSERT_TRUE(chosen) << chosen.error().message;
    const auto& probed = find(out, "leaves-out").probed;
    ASSERT_TRUE(probed);
    EXPECT_EQ(probed->cached, cached);
    EXPECT_EQ(probed->what.disabled, std::vector<std::string>{"ternary.quick"});
    EXPECT_EQ(probed->what.wrong_results,
              std::vector<std::string>{"ternary.quick has other bits than ternary.plain"});
    EXPECT_NE(probed->what.self_test.find("linear_ternary.ternary2: right"), std::string::npos);
    EXPECT_TRUE(probed->notes.empty()) << probed->notes.front();
    const bitnet_backend_v0& t = chosen->backend->table();
    uint32_t count = 0;
    bitnet_error err{};
    err.struct_size = sizeof err;
    ASSERT_EQ(t.kernels(t.self, 0, nullptr, sizeof(bitnet_kernel_info), &count, &err), BITNET_OK);
    EXPECT_EQ(count, 4U) << "of five";
  }
}

// One whose test loses the device ends the child: another probes without it.
TEST_F(probing, a_kernel_that_ends_the_probe_is_disabled_alone) {
  how.cache = files.path() / "probe";
  install("leaves-out-lost", "other");
  for (const bool cached : {false, true}) {
    report out;
    const auto chosen = scan().select({}, out);
    ASSERT_TRUE(chosen) << find(out, "leaves-out-lost").reason;
    const auto& probed = find(out, "leaves-out-lost").probed;
    ASSERT_TRUE(probed);
    EXPECT_EQ(probed->cached, cached);
    EXPECT_EQ(probed->what.disabled, std::vector<std::string>{"ternary.quick"});
    EXPECT_EQ(probed->what.wrong_results,
              std::vector<std::string>{"ternary.quick has other bits than ternary.plain"});
    EXPECT_EQ(probed->reached, probe::stage::close);
    // The first child printed "lost" and slept for 400 ms in its self-test.
    EXPECT_EQ(probed->notes,
              (std::vector<std::string>{"it printed 5 bytes",
                                        "the probe began again without kernel ternary.quick"}));
    EXPECT_GE(probed->stage_ms[static_cast<std::size_t>(probe::stage::self_test)], 350U);
    EXPECT_EQ(probed->output_bytes, 5U);
    EXPECT_NE(probed->output.find("lost\n"), std::string::npos) << probed->output;
  }
}

// Plugins log from any thread. Of many warnings the last are kept, which name the wrong kernel.
TEST_F(probing, a_warning_behind_many_of_other_threads_is_the_reason) {
  install("leaves-out-loudly", "other");
  report out;
  const auto chosen = scan().select({}, out);
  ASSERT_TRUE(chosen) << find(out, "leaves-out-loudly").reason;
  const auto& probed = find(out, "leaves-out-loudly").probed;
  ASSERT_TRUE(probed);
  EXPECT_EQ(probed->what.wrong_results,
            std::vector<std::string>{"ternary.quick has other bits than ternary.plain"});
}

// The process that computes learns that a probe served; the child does not.
TEST_F(probing, a_backend_learns_that_a_probe_served) {
  install("leaves-out", "other");
  report out;
  ASSERT_TRUE(scan().select({}, out));
  EXPECT_TRUE(host.said("probed=yes"));
  EXPECT_EQ(find(out, "leaves-out").probed->output.find("probed=yes"), std::string::npos);
}

TEST_F(probing, a_backend_without_a_kernel_left_is_not_used) {
  install("wrong-alone", "cpu");
  install("alpha", "cpu");
  registry all = scan();
  report out;
  all.probe_all(out);
  const auto chosen = all.select({}, out);
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_EQ(out.line(), "requested=auto detected=[alpha] selected=alpha");
  EXPECT_EQ(find(out, "wrong-alone").code, "BN-P-SELF-TEST");
  EXPECT_EQ(find(out, "wrong-alone").reason.find("usable"), std::string::npos);
  EXPECT_FALSE(all.select({.text = "wrong-alone"}, out));
}

}  // namespace
}  // namespace bitnet::select
