// The report on the copies of a plugin, from the one that serves to those that are gone.

#include "reload/backend_copies.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "../../fakes/loader_fixture.hpp"

namespace bitnet::reload {
namespace {

using test::folder;
using test::recording_host;

class copies : public testing::Test {
 protected:
  // A new copy of a fake in memory, from a file of its own.
  select::choice load(const std::string& fake) {
    const auto fresh = folder_.fake(fake);
    const auto file = folder_.path() / ("copy" + std::to_string(++serial_) + ".so");
    std::filesystem::rename(fresh, file);  // what is loaded is never written over
    auto b = plugin::backend::load(file, fake, BITNET_PURPOSE_LOAD, host_);
    if (!b) throw std::runtime_error(b.error().message);
    return {*b, 0, {}, "build " + std::to_string(serial_)};
  }
  std::vector<std::string> states() {
    std::vector<std::string> out;
    for (const backend_copy& g : all_.all())
      out.push_back(std::to_string(g.number) + " " + g.state);
    return out;
  }

  folder folder_;
  recording_host host_;
  backend_copies all_;
  int serial_ = 0;
};

TEST_F(copies, go_through_their_states) {
  auto first = load("unloadable");
  EXPECT_EQ(all_.serve(first), 1u);
  EXPECT_EQ(all_.serve(first), 1u) << "it is known";
  EXPECT_EQ(states(), (std::vector<std::string>{"1 active"}));
  auto second = load("unloadable");
  EXPECT_EQ(all_.serve(second), 2u);
  EXPECT_EQ(states(), (std::vector<std::string>{"1 draining", "2 active"}));
  EXPECT_EQ(all_.old_copies("unloadable"), 1u);
  first = {};
  EXPECT_EQ(states(), (std::vector<std::string>{"1 unloaded", "2 active"}));
  EXPECT_EQ(all_.old_copies("unloadable"), 0u);
  all_.reject("unloadable", "", "it is broken");
  EXPECT_EQ(states(), (std::vector<std::string>{"1 unloaded", "2 active", "3 failed"}));
  EXPECT_EQ(all_.all().back().reason, "it is broken");
  all_.lose(*second.backend, "the device is gone");
  EXPECT_EQ(states(), (std::vector<std::string>{"1 unloaded", "2 failed", "3 failed"}));
}

TEST_F(copies, that_cannot_be_unmapped_count_for_ever) {
  for (int i = 0; i < 3; ++i) all_.serve(load("good"));
  const auto last = load("good");
  all_.serve(last);
  EXPECT_EQ(states(),
            (std::vector<std::string>{"1 retired", "2 retired", "3 retired", "4 active"}));
  EXPECT_EQ(all_.old_copies("good"), 3u);
  EXPECT_EQ(all_.old_copies("alpha"), 0u);
}

TEST_F(copies, of_the_past_are_forgotten) {
  select::choice c;
  for (int i = 0; i < 40; ++i) {
    c = load("unloadable");
    all_.serve(c);
    all_.reject("unloadable", "", "again");
  }
  EXPECT_LT(all_.all().size(), 12u);
  EXPECT_EQ(all_.old_copies("unloadable"), 0u);
  bool active = false;
  for (const backend_copy& g : all_.all())
    active |= g.state == "active" && g.build_id == "build 40";
  EXPECT_TRUE(active);
}

}  // namespace
}  // namespace bitnet::reload
