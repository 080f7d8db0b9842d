// Backends that one process cannot have loaded beside each other.

#include "select/coexistence.hpp"

#include <gtest/gtest.h>

#include "../../fakes/loader_fixture.hpp"
#include "../../fakes/probing.hpp"
#include "select/selection.hpp"

namespace bitnet::select {
namespace {

using test::folder;
using test::manifest_text;
using test::recording_host;

TEST(join_loaded, keeps_apart_what_either_manifest_excludes) {
  EXPECT_EQ(join_loaded("a", {}), std::nullopt);
  EXPECT_EQ(join_loaded("b", {"x", "a"}), "a") << "the manifest of the second";
  EXPECT_EQ(join_loaded("b", {"x"}), std::nullopt) << "what was rejected is not noted";
  EXPECT_EQ(join_loaded("x", {}), "b") << "the manifest of the first";
  EXPECT_EQ(join_loaded("b", {"b", "a"}), "a") << "a reload whose manifest has learned it";
  EXPECT_EQ(join_loaded("b", {"b"}), std::nullopt) << "a backend is no other one";
  leave_loaded("b");
  EXPECT_EQ(join_loaded("x", {}), "b") << "one of its two copies is there";
  leave_loaded("b");
  EXPECT_EQ(join_loaded("x", {}), std::nullopt);
  leave_loaded("never");
}

class conflicting : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(directory());
    add("alpha", "cpu", "[]");
    add("rocm", "gpu", "[opencl]");
    add("opencl", "gpu", "[]");
  }
  void add(const std::string& fake, const std::string& device_class, const std::string& conflicts) {
    folder_.write("backends.d/50-" + fake + ".yaml",
                  manifest_text(fake, folder_.fake(fake),
                                {{"class", device_class}, {"conflicts", conflicts}}));
  }
  [[nodiscard]] std::filesystem::path directory() const { return folder_.path() / "backends.d"; }
  registry scan() { return registry::scan({directory()}, host_, {}, test::probing()); }
  static const backend_report& row_of(const report& r, const std::string& name) {
    return *std::ranges::find(r.backends, name, &backend_report::name);
  }

  folder folder_;
  recording_host host_;
};

TEST_F(conflicting, one_of_two_is_loaded_and_the_other_says_why) {
  registry first = scan();
  report out;
  ASSERT_TRUE(first.select({.text = "opencl"}, out));
  EXPECT_EQ(out.selected, "opencl");

  registry second = scan();  // of another runtime of the process
  report later;
  const auto rejected = second.select({.text = "rocm"}, later);
  ASSERT_FALSE(rejected);
  const backend_report& why = row_of(later, "rocm");
  EXPECT_EQ(why.code, "BN-S-CONFLICT");
  EXPECT_NE(why.reason.find("cannot be loaded beside opencl"), std::string::npos) << why.reason;

  report fallback;
  const auto other = second.select({.text = "rocm,alpha"}, fallback);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(fallback.selected, "alpha");
  report same;
  ASSERT_TRUE(second.select({.text = "opencl"}, same)) << "it stays usable itself";
}

}  // namespace
}  // namespace bitnet::select
