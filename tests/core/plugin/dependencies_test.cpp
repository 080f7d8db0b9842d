// Libraries that changed on disk after the process had loaded them.

#include "plugin/inspection/dependencies.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "../../fakes/loader_fixture.hpp"
#include "plugin/inspection/run_path.hpp"
#include "plugin/loading/loaded_libraries.hpp"
#include "plugin/trust/hash.hpp"

namespace bitnet::plugin {
namespace {

TEST(stale_libraries, are_those_that_were_replaced) {
  const test::folder f;
  const std::string bytes = test::folder::read(test::folder::built("good"));
  const auto common = f.write("libcommon.so.1", bytes, 0755);
  void* const loaded = dlopen(common.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(loaded, nullptr) << dlerror();
  inspection plugin;
  plugin.needed = {"libcommon.so.1", "libc.so.6"};
  EXPECT_TRUE(stale_libraries(plugin).empty());

  f.write("new", bytes, 0755);
  std::filesystem::rename(f.path() / "new", common);
  EXPECT_EQ(stale_libraries(plugin), std::vector<std::string>{common.string()});

  std::filesystem::remove(common);
  EXPECT_EQ(stale_libraries(plugin), std::vector<std::string>{common.string()})
      << "gone is not what the plugin was built for either";

  plugin.needed = {"libc.so.6"};
  EXPECT_TRUE(stale_libraries(plugin).empty()) << "other libraries do not count";
  dlclose(loaded);
}

// One library in a folder of its own, and a change of it.
class one_library {
 public:
  one_library() {
    plugin_.needed = {"libprivate.so"};
    plugin_.run_path = {(place_.path() / "lib").string()};
    plugin_.run_path_is_new = true;
    write("lib/libprivate.so", 0755);
  }
  void write(const std::string& name, mode_t mode) const {
    place_.write(name, test::folder::read(test::folder::built("good")), mode);
  }
  [[nodiscard]] std::filesystem::path at(const std::string& name) const {
    return place_.path() / name;
  }
  // "" or the code of what is wrong.
  [[nodiscard]] std::string fault() const {
    const auto fine = check_libraries(resolve_libraries(plugin_));
    return fine ? "" : std::string(code_text(fine.error().code)) + ": " + fine.error().reason;
  }
  inspection plugin_;

 private:
  test::folder place_;
};

void expect_fault(const one_library& l, const char* begin, const std::string& part) {
  EXPECT_TRUE(l.fault().starts_with(begin)) << l.fault();
  EXPECT_NE(l.fault().find(part), std::string::npos) << l.fault();
}

TEST(libraries, that_no_other_user_can_write_are_taken) {
  EXPECT_EQ(one_library().fault(), "");
}

TEST(libraries, that_others_may_write_are_rejected) {
  const one_library l;
  l.write("lib/libprivate.so", 0777);
  expect_fault(l, "BN-T-MODE", "needs libprivate.so, which ");
}

TEST(libraries, behind_a_link_are_judged_where_they_lie) {
  const one_library l;
  l.write("public/libprivate.so", 0755);
  std::filesystem::remove(l.at("lib/libprivate.so"));
  std::filesystem::create_symlink("../public/libprivate.so", l.at("lib/libprivate.so"));
  EXPECT_EQ(l.fault(), "");
  std::filesystem::permissions(l.at("public"), std::filesystem::perms::all);
  expect_fault(l, "BN-T-MODE", "public");
}

TEST(libraries, may_not_appear_in_a_folder_that_is_searched_before) {
  one_library l;
  std::filesystem::create_directory(l.at("first"));
  l.plugin_.run_path.insert(l.plugin_.run_path.begin(), l.at("first").string());
  EXPECT_EQ(l.fault(), "");
  std::filesystem::permissions(l.at("first"), std::filesystem::perms::all);
  expect_fault(l, "BN-T-MODE", "is looked for in '");
}

TEST(libraries, for_some_processors_are_judged_too) {
  const one_library l;
  l.write("lib/glibc-hwcaps/x86-64-v2/libprivate.so", 0755);
  EXPECT_EQ(l.fault(), "");
  l.write("lib/glibc-hwcaps/x86-64-v2/libprivate.so", 0777);
  expect_fault(l, "BN-T-MODE", "glibc-hwcaps");
}

// The linker knows more than a leading $ORIGIN, with and without braces.
TEST(run_path, has_no_text_that_the_linker_replaces) {
  const struct {
    const char *item, *why;
  } rows[] = {
      {"/${ORIGIN}/../cwd", "a '$'"},
      {"/usr/$LIB", "a '$'"},
      {"$ORIGIN/$LIB", "a '$'"},
      {"${ORIGIN", "a '$'"},
      {"$ORIGINAL/x", "a '$'"},
      {"${PLATFORM}", "a '$'"},
      {"lib", "relative"},
      {"", "relative"},
      {"$ORIGIN", ""},
      {"${ORIGIN}/private", ""},
      {"/usr/lib", ""},
  };
  for (const auto& row : rows) {
    const std::string fault = run_path_fault(row.item);
    EXPECT_EQ(fault.empty(), *row.why == '\0') << row.item << ": " << fault;
    EXPECT_NE(fault.find(row.why), std::string::npos) << row.item << ": " << fault;
  }
  EXPECT_EQ(run_path_folder("${ORIGIN}/../x", "/a/b"), "/a/b/../x");
  EXPECT_EQ(run_path_folder("$ORIGIN/x", ""), std::nullopt);
}

TEST(libraries, of_libraries_are_judged_too) {
  const one_library l;
  for (const char* fake : {"auxiliary", "filter", "needs-path", "relative-run-path",
                           "hidden-origin-run-path", "empty-run-path"}) {
    SCOPED_TRACE(fake);
    std::ofstream(l.at("lib/libprivate.so"), std::ios::binary)
        << test::folder::read(test::folder::built(fake));
    EXPECT_TRUE(l.fault().starts_with("BN-I-")) << l.fault();
  }
}

TEST(libraries, have_the_hashes_that_the_manifest_says) {
  const one_library l;
  const std::string bytes = test::folder::read(l.at("lib/libprivate.so"));
  const std::string hash = sha256_of(std::as_bytes(std::span(bytes.data(), bytes.size())));
  const auto examined = [&](const std::string& wanted) {
    findings found;
    examine_dependencies(resolve_libraries(l.plugin_), {}, {{"libprivate.so", wanted}}, found);
    return found.first_error() == nullptr ? "" : std::string(code_text(found.first_error()->code));
  };
  EXPECT_EQ(examined(hash), "");
  EXPECT_EQ(examined(std::string(64, '0')), "BN-T-HASH");
}

// After the load: what the linker took is compared with what was judged.
TEST(check_loaded, rejects_libraries_that_were_not_checked) {
  const one_library l;
  const auto before = loaded_objects();
  const auto judged = resolve_libraries(l.plugin_);
  l.write("other/libprivate.so", 0755);
  void* const handle = dlopen(l.at("other/libprivate.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  const auto swapped = check_loaded(before, {}, judged);
  ASSERT_FALSE(swapped.has_value()) << "another file under a judged name";
  EXPECT_EQ(swapped.error().code, code::trust_changed);
  EXPECT_TRUE(check_loaded(before, {}, {}).has_value()) << "trusted, and not one of the plugin's";
  std::filesystem::permissions(l.at("other"), std::filesystem::perms::all);
  const auto open_to_all = check_loaded(before, {}, {});
  ASSERT_FALSE(open_to_all.has_value());
  EXPECT_NE(open_to_all.error().reason.find("which was not checked"), std::string::npos);
  dlclose(handle);
}

}  // namespace
}  // namespace bitnet::plugin
