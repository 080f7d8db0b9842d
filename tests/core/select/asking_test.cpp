// Probing takes no time from running work: what cannot win is not probed, the rest idle-class,
// one at a time, once for all, and the answer outlives the process that asked.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "../../fakes/loader_fixture.hpp"
#include "../../fakes/probing.hpp"
#include "select/selection.hpp"

namespace bitnet::select {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using test::folder;
using test::manifest_text;
using test::recording_host;
namespace fs = std::filesystem;

const backend_report& find(const report& r, const std::string& name) {
  static const backend_report none;
  const auto at = std::ranges::find(r.backends, name, &backend_report::name);
  return at == r.backends.end() ? none : *at;
}

class asking : public testing::Test {
 protected:
  void SetUp() override { how.cache = files.path() / "probe"; }
  void install(const std::string& fake, const std::string& device_class) {
    files.write("backends.d/50-" + fake + ".yaml",
                manifest_text(fake, files.fake(fake), {{"class", device_class}}));
  }
  registry scan() { return registry::scan({files.path() / "backends.d"}, host, {}, how); }

  // The file or folder of a backend that ends so, "" if there is none.
  [[nodiscard]] fs::path beside(const std::string& fake, const std::string& end) const {
    std::error_code ignored;
    for (const auto& one : fs::directory_iterator(how.cache, ignored))
      if (const std::string name = one.path().filename().string();
          name.starts_with(fake + "-") && name.ends_with(end))
        return one.path();
    return "";
  }
  // How many probes of it there were, by what they wrote.
  [[nodiscard]] std::size_t probes_of(const std::string& fake) const {
    const fs::path file = beside(fake, ".drivers") / "probes";
    return fs::exists(file) ? folder::read(file).size() : 0;
  }
  template <class Condition>
  static bool becomes(Condition condition) {
    const auto end = clock::now() + std::chrono::seconds(120);
    while (!condition() && clock::now() < end) std::this_thread::sleep_for(milliseconds(20));
    return condition();
  }

  folder files;
  recording_host host;
  probe::settings how = test::probing();
};

TEST_F(asking, without_a_device_no_driver_is_asked_for_a_run) {
  install("soft", "gpu");
  install("alpha", "cpu");
  how.shows_devices = false;
  report out;
  ASSERT_TRUE(scan().select({}, out));
  EXPECT_EQ(out.line(), "requested=auto detected=[alpha] selected=alpha");
  EXPECT_EQ(find(out, "soft").code, "BN-S-NOT-PROBED");
  EXPECT_NE(find(out, "soft").reason.find("shows no device of class gpu"), std::string::npos)
      << find(out, "soft").reason;
  EXPECT_EQ(find(out, "soft").stage, "inspected");
  EXPECT_EQ(beside("soft", ".lock"), "") << "nor in the background";

  registry all = scan();  // but for `backends`, which chooses first
  ASSERT_TRUE(all.select({}, out));
  EXPECT_EQ(find(out, "soft").code, "BN-S-NOT-PROBED");
  all.probe_all(out);
  EXPECT_EQ(find(out, "soft").code, "BN-OK") << find(out, "soft").reason;
  EXPECT_EQ(find(out, "soft").reason.find("usable, "), 0U) << find(out, "soft").reason;
  ASSERT_TRUE(scan().select({}, out));
  EXPECT_EQ(out.line(), "requested=auto detected=[alpha,soft] selected=alpha") << "remembered";
  EXPECT_EQ(find(out, "soft").code, "BN-S-OUTRANKED");
  EXPECT_EQ(probes_of("soft"), 1U);
}

TEST_F(asking, a_request_for_a_driver_in_software_gets_it) {
  install("soft", "gpu");
  install("alpha", "cpu");
  how.shows_devices = false;
  report out;
  ASSERT_TRUE(scan().select({.text = "soft,cpu"}, out));
  EXPECT_EQ(out.selected, "soft") << "by its name";
  EXPECT_FALSE(scan().select({.text = "gpu"}, out)) << "it is none";
  EXPECT_NE(find(out, "soft").code, "BN-S-NOT-PROBED");
}

TEST_F(asking, classes_ranked_below_the_chosen_one_are_not_probed) {
  install("alpha", "cpu");
  install("neural", "npu");
  install("twin", "gpu");
  report out;
  ASSERT_TRUE(scan().select({.text = "twin"}, out));
  ASSERT_TRUE(scan().select({}, out));
  EXPECT_EQ(out.selected, "twin");
  EXPECT_EQ(find(out, "neural").code, "BN-S-NOT-PROBED");
  EXPECT_NE(find(out, "neural").reason.find("would come after twin:0"), std::string::npos)
      << find(out, "neural").reason;
}

TEST_F(asking, a_probe_is_idle_class_and_the_processors_own_is_not) {
  install("takes-a-second", "gpu");
  how.always_needed = false;
  report out;
  registry all = scan();
  all.probe_all(out);
  ASSERT_EQ(find(out, "takes-a-second").code, "BN-OK") << find(out, "takes-a-second").reason;
  EXPECT_NE(find(out, "takes-a-second").probed->output.find("policy 5 nice 19 disk 3"),
            std::string::npos)
      << find(out, "takes-a-second").probed->output;
  how.fresh = true;
  ASSERT_TRUE(scan().select({.text = "takes-a-second"}, out));
  EXPECT_NE(find(out, "takes-a-second").probed->output.find("policy 0 nice 0"), std::string::npos)
      << "nothing else would do: " << find(out, "takes-a-second").probed->output;
}

TEST_F(asking, twenty_cold_starts_run_one_probe) {
  install("takes-a-second", "gpu");
  install("alpha", "cpu");
  std::vector<std::string> selected(20);
  std::vector<std::thread> starts;
  starts.reserve(selected.size());
  for (std::string& one : selected)
    starts.emplace_back([&] {
      recording_host own;
      registry all = registry::scan({files.path() / "backends.d"}, own, {}, how);
      report out;
      if (all.select({}, out)) one = out.line();
    });
  for (std::thread& one : starts) one.join();
  EXPECT_EQ(probes_of("takes-a-second"), 1U);
  for (const std::string& one : selected)
    EXPECT_EQ(one, "requested=auto detected=[takes-a-second,alpha] selected=takes-a-second");
}

TEST_F(asking, one_at_a_time_among_all_processes) {
  install("takes-a-second", "gpu");
  install("alpha", "cpu");
  how.wait_ms = 0;
  how.always_needed = false;
  fs::create_directories(how.cache);
  const int held = open((how.cache / "probing.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(flock(held, LOCK_EX | LOCK_NB), 0);
  registry all = scan();
  report out;
  ASSERT_TRUE(all.select({}, out)) << "the processor's own backend does not wait for its turn";
  EXPECT_EQ(out.selected, "alpha");
  ASSERT_TRUE(becomes([&] { return beside("takes-a-second", ".lock") != ""; }));
  EXPECT_FALSE(all.wait(clock::now() + milliseconds(300)));
  EXPECT_EQ(probes_of("takes-a-second"), 0U);
  close(held);
  EXPECT_TRUE(all.wait(clock::now() + std::chrono::seconds(120)));
  EXPECT_EQ(probes_of("takes-a-second"), 1U);
}

TEST_F(asking, a_probe_outlives_its_asker_and_leaves_its_answer) {
  install("takes-a-second", "gpu");
  install("alpha", "cpu");
  how.wait_ms = 0;
  report out;
  ASSERT_TRUE(scan().select({}, out));  // the registry has gone after this line
  EXPECT_EQ(find(out, "takes-a-second").code, "BN-P-PENDING");
  EXPECT_EQ(out.line(), "requested=auto detected=[alpha] selected=alpha");
  ASSERT_TRUE(becomes([&] { return beside("takes-a-second", ".probe") != ""; }));
  how.helper = "/nowhere";  // a probe from now on fails
  ASSERT_TRUE(scan().select({}, out));
  EXPECT_EQ(out.line(), "requested=auto detected=[takes-a-second,alpha] selected=takes-a-second");
  EXPECT_TRUE(find(out, "takes-a-second").probed->cached);
}

TEST_F(asking, a_backend_known_to_be_slow_is_not_awaited) {
  install("takes-long", "gpu");
  install("alpha", "cpu");
  report out;
  ASSERT_TRUE(scan().select({.text = "cpu"}, out));
  how.wait_ms = 2000;
  auto begin = clock::now();
  ASSERT_TRUE(scan().select({}, out));
  EXPECT_GE(clock::now() - begin, milliseconds(how.wait_ms)) << "it could have won";
  EXPECT_EQ(find(out, "takes-long").code, "BN-P-PENDING");
  ASSERT_TRUE(becomes([&] { return probes_of("takes-long") == 1; }));
  // Then the probe has run for longer than a selection waits.
  std::this_thread::sleep_for(milliseconds(how.wait_ms));
  begin = clock::now();
  ASSERT_TRUE(scan().select({}, out));
  EXPECT_LT(clock::now() - begin, milliseconds(how.wait_ms)) << "its probe is under way still";
  EXPECT_EQ(out.selected, "alpha");
  EXPECT_EQ(find(out, "takes-long").code, "BN-P-PENDING");

  ASSERT_TRUE(becomes([&] { return beside("takes-long", ".probe") != ""; }));
  host.settings = {{"any", "thing"}};  // another fingerprint
  begin = clock::now();
  ASSERT_TRUE(scan().select({}, out));
  EXPECT_LT(clock::now() - begin, milliseconds(how.wait_ms)) << "it was slow the last time";
  EXPECT_EQ(find(out, "takes-long").code, "BN-P-PENDING") << "but it is asked again";
}

TEST_F(asking, a_driver_in_software_is_asked_again_behind_when_something_changed) {
  install("soft", "gpu");
  install("alpha", "cpu");
  report out;
  ASSERT_TRUE(scan().select({}, out));
  EXPECT_EQ(out.selected, "alpha");
  EXPECT_EQ(find(out, "soft").code, "BN-S-OUTRANKED") << "nothing was known: waited for";
  ASSERT_EQ(probes_of("soft"), 1U);
  host.settings = {{"any", "thing"}};
  ASSERT_TRUE(scan().select({}, out));
  EXPECT_TRUE(becomes([&] { return probes_of("soft") == 2; }));
  how.shows_devices = false;
  host.settings = {{"another", "thing"}};
  ASSERT_TRUE(scan().select({}, out));
  EXPECT_EQ(find(out, "soft").code, "BN-S-NOT-PROBED");
}

TEST_F(asking, what_drivers_compiled_is_kept_within_bounds) {
  install("takes-a-second", "gpu");
  install("hoards", "gpu");
  install("crash-enumerate", "gpu");
  report out;
  for (int i = 0; i < 2; ++i) {
    registry all = scan();
    all.probe_all(out);
    how.fresh = true;
  }
  EXPECT_EQ(probes_of("takes-a-second"), 2U) << "the folder was there for the second one";
  const auto mode = fs::status(beside("takes-a-second", ".drivers")).permissions();
  EXPECT_EQ(mode, fs::perms::owner_all);
  EXPECT_EQ(find(out, "hoards").code, "BN-OK") << find(out, "hoards").reason;
  EXPECT_EQ(beside("hoards", ".drivers"), "") << "129 MiB are too much";
  EXPECT_EQ(find(out, "crash-enumerate").code, "BN-P-CRASH");
  EXPECT_EQ(beside("crash-enumerate", ".drivers"), "") << "what a crash left is not believed";
}

TEST_F(asking, a_folder_of_drivers_that_others_may_enter_is_not_used) {
  install("takes-a-second", "gpu");
  report out;
  scan().probe_all(out);
  const fs::path kept = beside("takes-a-second", ".drivers");
  ASSERT_FALSE(kept.empty());
  fs::permissions(kept, fs::perms::owner_all | fs::perms::others_all);
  how.fresh = true;
  scan().probe_all(out);
  EXPECT_EQ(find(out, "takes-a-second").code, "BN-OK");
  EXPECT_EQ(probes_of("takes-a-second"), 1U) << "the second one had a folder that went with it";
}

}  // namespace
}  // namespace bitnet::select
