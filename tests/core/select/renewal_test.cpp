// The registry looks at a backend's files again, and chooses around devices that are gone.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "../../fakes/loader_fixture.hpp"
#include "../../fakes/probing.hpp"
#include "select/selection.hpp"

namespace bitnet::select {
namespace {

using test::folder;
using test::manifest_text;
using test::recording_host;

class renewal : public testing::Test {
 protected:
  renewal() {
    add("alpha", "cpu", 50);
    add("beta", "cpu", 10);
    add("twin", "gpu", 50);
  }
  void add(const std::string& fake, const std::string& device_class, int priority) {
    folder_.write("backends.d/50-" + fake + ".yaml",
                  manifest_text(fake, library(fake),
                                {{"class", device_class}, {"priority", std::to_string(priority)}}));
    install(fake, fake);
  }
  [[nodiscard]] std::filesystem::path library(const std::string& name) const {
    return folder_.path() / "lib" / (name + ".so");
  }
  // Puts a fake under the library name of a backend, as a new file.
  void install(const std::string& name, const std::string& fake) {
    const auto fresh = folder_.write("lib/fresh", folder::read(folder::built(fake)), 0755);
    std::filesystem::rename(fresh, library(name));
  }
  registry scan() {
    return registry::scan({folder_.path() / "backends.d"}, host_, {}, test::probing());
  }
  static request asking(const std::string& text) {
    request r;
    r.text = text;
    return r;
  }

  folder folder_;
  recording_host host_;
};

TEST_F(renewal, loads_the_new_file_beside_the_old_one) {
  registry all = scan();
  report out;
  const auto before = all.select(asking("alpha"), out);
  ASSERT_TRUE(before.has_value()) << before.error().message;
  EXPECT_EQ(all.loaded("alpha").backend, before->backend);
  EXPECT_EQ(all.loaded("beta").backend, nullptr);
  EXPECT_EQ(all.loaded("nobody").backend, nullptr);
  EXPECT_FALSE(before->build_id.empty());

  install("alpha", "alpha");
  auto fresh = all.renew("alpha");
  ASSERT_TRUE(fresh.has_value()) << fresh.error().reason;
  EXPECT_EQ(fresh->facts().build_id, before->build_id);
  EXPECT_NE(fresh->file().inode, before->backend->file().inode);
  ASSERT_TRUE(fresh->probe().has_value());
  const auto after = fresh->load(0);
  ASSERT_TRUE(after.has_value()) << after.error().reason;
  EXPECT_NE(after->backend, before->backend);
  EXPECT_NE(after->backend->mapped(), before->backend->mapped());
  EXPECT_EQ(fresh->load(0)->backend, after->backend) << "one copy for all devices";
  const auto none = fresh->load(7);
  ASSERT_FALSE(none.has_value());
  EXPECT_NE(none.error().reason.find("device 7"), std::string::npos) << none.error().reason;

  EXPECT_EQ(all.loaded("alpha").backend, before->backend) << "nothing changes before it is adopted";
  all.adopt(std::move(*fresh), out);
  EXPECT_EQ(all.loaded("alpha").backend, after->backend);
  EXPECT_EQ(out.selected, "alpha");
  const auto row = std::ranges::find(out.backends, "alpha", &backend_report::name);
  ASSERT_NE(row, out.backends.end());
  EXPECT_EQ(row->stage, "selected");
  EXPECT_NE(row->reason.find("reloaded"), std::string::npos) << row->reason;
}

TEST_F(renewal, a_backend_that_was_installed_since_is_found) {
  registry all = scan();
  EXPECT_FALSE(all.renew("rocm").has_value());
  add("rocm", "gpu", 50);
  auto fresh = all.renew("rocm");
  ASSERT_TRUE(fresh.has_value()) << fresh.error().reason;
  ASSERT_TRUE(fresh->probe().has_value());
  report out;
  all.adopt(std::move(*fresh), out);
  EXPECT_TRUE(std::ranges::any_of(out.backends, [](const auto& b) { return b.name == "rocm"; }));
  EXPECT_TRUE(all.select(asking("rocm"), out).has_value());
}

// A name, or the path of one of its two files.
TEST_F(renewal, a_backend_by_its_path) {
  registry all = scan();
  std::filesystem::create_symlink(library("alpha"), folder_.path() / "link.so");
  const std::string here = folder_.path().string();
  const struct {
    std::string text, name;  // "": it is rejected
  } rows[] = {
      {"alpha", "alpha"},
      {"not-installed", "not-installed"},  // renew() says what is wrong with a name
      {library("alpha").string(), "alpha"},
      {here + "/lib/../lib/beta.so", "beta"},
      {here + "/link.so", "alpha"},
      {here + "/backends.d/50-twin.yaml", "twin"},
      {here + "/lib/absent.so", ""},
      {here + "/lib", ""},
      {"/", ""},
  };
  for (const auto& row : rows) {
    const auto found = all.meant_by(row.text);
    EXPECT_EQ(found.value_or(""), row.name) << row.text;
    if (row.name.empty()) {
      EXPECT_NE(found.error().reason.find("no manifest names " + row.text), std::string::npos);
      EXPECT_NE(found.error().reason.find(library("alpha").string()), std::string::npos);
    }
  }
  add("rocm", "gpu", 50);  // since the registry was made
  EXPECT_EQ(all.meant_by(library("rocm").string()).value_or(""), "rocm");
}

TEST_F(renewal, a_second_manifest_of_the_same_name_does_not_hide_the_one_that_counts) {
  folder_.write("backends.d/60-alpha.yaml", manifest_text("alpha", library("alpha")));
  registry all = scan();
  const auto fresh = all.renew("alpha");
  EXPECT_TRUE(fresh.has_value()) << fresh.error().reason;
}

struct rejected_row {
  const char* why;
  const char* fake;  // that lies where alpha's library lay
  bool at_probe;     // else at inspection
  const char* code;
};

TEST_F(renewal, invalid_files_are_rejected_with_their_code) {
  const rejected_row rows[] = {
      {"another backend", "beta", false, "BN-I-NAME"},
      {"no plugin", "no-entry", false, "BN-I-NO-ENTRY"},
  };
  registry all = scan();
  for (const rejected_row& r : rows) {
    install("alpha", r.fake);
    auto fresh = all.renew("alpha");
    ASSERT_EQ(fresh.has_value(), r.at_probe) << r.why;
    EXPECT_EQ(plugin::code_text(fresh.error().code), r.code) << r.why;
  }
  // What breaks when it is asked for its devices is rejected then.
  add("count-fails", "cpu", 1);
  auto fresh = all.renew("count-fails");
  ASSERT_TRUE(fresh.has_value()) << fresh.error().reason;
  EXPECT_FALSE(fresh->probe().has_value());
}

struct other_row {
  const char* why;
  const char* wanted;
  bool fallback;
  std::set<std::string> without;
  const char* device;  // "" if there is none
};

TEST_F(renewal, another_device_is_chosen_without_those_that_are_gone) {
  const other_row rows[] = {
      {"nothing is gone", "twin,alpha", false, {}, "twin:0"},
      {"its second device", "twin,alpha", false, {"twin:0"}, "twin:1"},
      {"the next of the list", "twin,alpha", false, {"twin:0", "twin:1"}, "alpha:0"},
      {"a whole backend", "twin,alpha", false, {"twin"}, "alpha:0"},
      {"an index is that device or none", "twin:0,beta", false, {"twin:0"}, "beta:0"},
      {"a class", "gpu", false, {"twin:0"}, "twin:1"},
      {"anything", "auto", false, {"twin:0", "twin:1"}, "alpha:0"},
      {"one name is not widened", "twin", false, {"twin:0", "twin:1"}, ""},
      {"unless that was asked for", "twin", true, {"twin:0", "twin:1", "alpha:0"}, "beta:0"},
      {"no device is left", "alpha", false, {"alpha:0"}, ""},
      {"an unknown index", "twin:5", false, {}, ""},
      {"an unknown name", "cuda", false, {}, ""},
      {"no request at all", ",", false, {}, ""},
  };
  registry all = scan();
  for (const other_row& r : rows) {
    request wanted = asking(r.wanted);
    wanted.allow_fallback = r.fallback;
    const auto chosen = all.select_other(wanted, r.without);
    if (*r.device != '\0') {
      ASSERT_TRUE(chosen.has_value()) << r.why << ": " << chosen.error().message;
      EXPECT_EQ(chosen->taken.device_name(), r.device) << r.why;
    } else {
      ASSERT_FALSE(chosen.has_value()) << r.why;
      EXPECT_FALSE(chosen.error().message.empty()) << r.why;
    }
  }
}

}  // namespace
}  // namespace bitnet::select
