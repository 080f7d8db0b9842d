// Everything that can be wrong with one backend, as messages report it: asked for by name, alone
// under auto, and beside a good one. One row, one plugin or manifest.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <ostream>
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

// Installs one backend into `f`/backends.d/50-x.yaml; returns nothing, breaks something.
using install = std::function<void(const folder& f, const std::string& name)>;

void write_manifest(const folder& f, const std::string& name, const std::filesystem::path& library,
                    const std::map<std::string, std::string>& changes = {}) {
  f.write("backends.d/50-" + name + ".yaml", manifest_text(name, library, changes));
}

// The fake of that name as it is.
void as_built(const folder& f, const std::string& name) {
  write_manifest(f, name, f.fake(name));
}

install edited(const std::function<void(std::string&)>& edit) {
  return [edit](const folder& f, const std::string& name) {
    std::string bytes = folder::read(folder::built("good"));
    edit(bytes);
    write_manifest(f, name, f.write("lib/x.so", bytes));
  };
}

install requiring(const std::string& needs) {
  return [needs](const folder& f, const std::string& name) {
    write_manifest(f, name, f.fake(name), {{"requires", needs}});
  };
}

install with_mode(mode_t mode) {
  return [mode](const folder& f, const std::string& name) {
    const auto file = f.fake(name);
    if (chmod(file.c_str(), mode) != 0) throw std::runtime_error("chmod");
    write_manifest(f, name, file);
  };
}

install with_manifest(const std::function<std::string(const folder&)>& text) {
  return [text](const folder& f, const std::string& name) {
    f.write("backends.d/50-" + name + ".yaml", text(f));
  };
}

struct row {
  const char* why;
  const char* name;  // of the backend, and of the fake where it is one
  install put;
  const char* stage;
  const char* code;
  bitnet_status status;               // REJECTED or UNAVAILABLE
  std::vector<const char*> mentions;  // of the message
};

std::ostream& operator<<(std::ostream& out, const row& r) {
  return out << r.why;
}

class rejection : public testing::TestWithParam<row> {};

const backend_report* find(const report& r, const std::string& name) {
  const auto at = std::ranges::find(r.backends, name, &backend_report::name);
  return at == r.backends.end() ? nullptr : &*at;
}

TEST_P(rejection, is_clear_and_stops_no_other) {
  const row& r = GetParam();
  SCOPED_TRACE(r.why);
  const folder f;
  recording_host host;
  r.put(f, r.name);
  const std::vector<std::filesystem::path> directories{f.path() / "backends.d"};

  for (const char* text : {r.name, "auto"}) {
    registry all = registry::scan(directories, host, {}, test::probing());
    report out;
    const auto chosen = all.select({.text = text}, out);
    ASSERT_FALSE(chosen.has_value());
    EXPECT_EQ(chosen.error().status, r.status) << chosen.error().message;
    for (const char* mention : r.mentions)
      EXPECT_NE(chosen.error().message.find(mention), std::string::npos)
          << "'" << mention << "' is not in: " << chosen.error().message;
    EXPECT_EQ(out.line(), std::string("requested=") + text + " detected=[] selected=none");
    const backend_report* b = find(out, r.name);
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(b->stage, r.stage);
    EXPECT_EQ(b->code, r.code) << b->reason;
    EXPECT_FALSE(b->hint.empty());
  }

  write_manifest(f, "alpha", f.write("good/alpha.so", folder::read(folder::built("alpha")), 0755),
                 {{"class", "cpu"}});
  registry all = registry::scan(directories, host, {}, test::probing());
  report out;
  all.probe_all(out);  // a run would leave alone what cannot win
  const auto chosen = all.select({}, out);
  ASSERT_TRUE(chosen.has_value()) << chosen.error().message;
  EXPECT_EQ(out.line(), "requested=auto detected=[alpha] selected=alpha");
  EXPECT_EQ(find(out, r.name)->code, r.code);
}

constexpr bitnet_status rejected = BITNET_REJECTED;
constexpr bitnet_status absent = BITNET_UNAVAILABLE;

const row rows[] = {
    // Plugins that break the contract.
    {"no entry symbol",
     "no-entry",
     as_built,
     "found",
     "BN-I-NO-ENTRY",
     rejected,
     {"exports no entry symbol bitnet_backend_abi0", "try: build the plugin with"}},
    {"another major",
     "other-major",
     as_built,
     "found",
     "BN-A-MAJOR",
     rejected,
     {"backend other-major speaks ABI major 1, this core speaks 0", "try: install a bitnet"}},
    {"a major that only the note has",
     "note-major",
     as_built,
     "found",
     "BN-A-MAJOR",
     rejected,
     {"speaks ABI major 3"}},
    {"a newer minor",
     "note-minor",
     as_built,
     "found",
     "BN-A-MINOR",
     rejected,
     {"speaks ABI 0.6 to 0.9, this core speaks 0.1", "try: upgrade bitnet"}},
    {"an older minor",
     "note-old",
     as_built,
     "found",
     "BN-A-MINOR",
     rejected,
     {"speaks ABI 0.0, this core speaks 0.1", "try: upgrade the backend, or build it again"}},
    {"no note", "no-note", as_built, "found", "BN-I-NO-NOTE", rejected, {"no identity note"}},
    {"a note with another name",
     "wrong-note",
     as_built,
     "found",
     "BN-I-NAME",
     rejected,
     {"is backend 'somebody', but the manifest is for 'wrong-note'"}},
    {"another exported symbol",
     "extra-export",
     as_built,
     "found",
     "BN-I-EXPORTS",
     rejected,
     {"bitnet_fake_stranger"}},
    {"missing libraries",
     "needy",
     as_built,
     "found",
     "BN-I-DEPENDENCY",
     absent,
     {"libfake-absent-one.so, libfake-absent-two.so"}},
    {"a short table",
     "short-table",
     as_built,
     "inspected",
     "BN-A-TABLE",
     rejected,
     {"its table has", "the required part has"}},
    {"a null required slot",
     "null-slot",
     as_built,
     "inspected",
     "BN-A-SLOT",
     rejected,
     {"backend null-slot: the required slot 'queue_submit' is null"}},
    {"bytes written behind the table",
     "overrun",
     as_built,
     "inspected",
     "BN-A-OVERRUN",
     rejected,
     {"wrote behind"}},
    {"an entry that fails",
     "entry-fails",
     as_built,
     "inspected",
     "BN-A-ENTRY",
     rejected,
     {"not today"}},
    {"another name when loaded",
     "info-name",
     as_built,
     "inspected",
     "BN-A-IDENTITY",
     rejected,
     {"'impostor'"}},

    // Plugins that answer nonsense.
    {"no driver",
     "unavailable",
     as_built,
     "loaded",
     "BN-P-UNAVAILABLE",
     absent,
     {"driver library libfake.so.1 is not installed (status 3, fake 100)"}},
    {"a machine without what the manifest requires",
     "good",
     requiring("{nodes: ['/dev/no-such-node*'], libraries: [libno-such.so.1]}"),
     "inspected",
     "BN-S-REQUIRES",
     absent,
     {"a device file like /dev/no-such-node*", "the library libno-such.so.1"}},
    {"no device", "zero", as_built, "loaded", "BN-P-NO-DEVICE", absent, {"no device"}},
    {"cannot count",
     "count-fails",
     as_built,
     "loaded",
     "BN-P-FAILED",
     absent,
     {"device_count() failed: cannot count"}},
    {"a hundred thousand devices",
     "many-devices",
     as_built,
     "loaded",
     "BN-P-ANSWER",
     rejected,
     {"impossible answer: 100000 devices"}},
    {"a device that cannot be described",
     "device-fails",
     as_built,
     "loaded",
     "BN-P-FAILED",
     absent,
     {"device_info(0) failed: it fell off the bus"}},
    {"an alignment that is none",
     "odd-alignment",
     as_built,
     "loaded",
     "BN-P-ANSWER",
     rejected,
     {"alignment of 48 bytes"}},
    {"millions of kernels",
     "many-kernels",
     as_built,
     "loaded",
     "BN-P-ANSWER",
     rejected,
     {"4000000 kernels"}},
    {"kernels that come and go",
     "fickle-kernels",
     as_built,
     "loaded",
     "BN-P-ANSWER",
     rejected,
     {"first 3 kernels, then 0"}},
    {"no list of kernels",
     "kernels-fail",
     as_built,
     "loaded",
     "BN-P-FAILED",
     absent,
     {"kernels(0) failed"}},
    {"half a list of kernels",
     "kernels-fail-late",
     as_built,
     "loaded",
     "BN-P-FAILED",
     absent,
     {"kernels(0) failed"}},
    {"a device that goes away",
     "shrinks",
     as_built,
     "probed",
     "BN-P-MISMATCH",
     absent,
     {"changed between probing and loading: devices: 2, then 1"}},
    {"all devices go away",
     "vanishes",
     as_built,
     "probed",
     "BN-P-NO-DEVICE",
     absent,
     {"no device"}},

    // Files that are no plugin for this machine.
    {"cut off in the middle",
     "good",
     edited([](std::string& b) { b.resize(b.size() / 2); }),
     "found",
     "BN-I-TRUNCATED",
     rejected,
     {"x.so is cut off", "copy the file again"}},
    {"empty",
     "good",
     edited([](std::string& b) { b.clear(); }),
     "found",
     "BN-I-FORMAT",
     rejected,
     {"x.so is empty"}},
    {"text",
     "good",
     edited([](std::string& b) { b = "Not found\n"; }),
     "found",
     "BN-I-FORMAT",
     rejected,
     {"is not an ELF shared object; it begins with 'Not found\\n'"}},
    {"another architecture",
     "good",
     edited([](std::string& b) { b[18] = char(0xB7); }),
     "found",
     "BN-I-MACHINE",
     rejected,
     {"was built for aarch64, this machine is"}},

    // Files that another user could have written.
    {"world-writable",
     "good",
     with_mode(0666),
     "found",
     "BN-T-MODE",
     rejected,
     {"libfake-good.so (mode 0666, owner uid", "writable by everybody", "try: chmod go-w '"}},
    {"setuid", "good", with_mode(04755), "found", "BN-T-MODE", rejected, {"chmod ug-s"}},
    {"in a directory that any user can write",
     "good",
     [](const folder& f, const std::string& name) {
       as_built(f, name);
       if (chmod((f.path() / "lib").c_str(), 0777) != 0) throw std::runtime_error("chmod");
     },
     "found",
     "BN-T-MODE",
     rejected,
     {"/lib (mode 0777"}},
    {"a directory",
     "good",
     [](const folder& f, const std::string& name) { write_manifest(f, name, f.path()); },
     "found",
     "BN-T-KIND",
     rejected,
     {"is a directory"}},
    {"not there",
     "good",
     [](const folder& f, const std::string& name) { write_manifest(f, name, f.path() / "no.so"); },
     "found",
     "BN-T-MISSING",
     absent,
     {"no.so", "install the backend's package again"}},

    // Manifests.
    {"a manifest of 10 MB",
     "good",
     with_manifest([](const folder&) { return std::string(10'000'000, '#'); }),
     "found",
     "BN-M-SIZE",
     rejected,
     {"10000000 bytes; at most 65536"}},
    {"anchors",
     "good",
     with_manifest([](const folder&) { return std::string("schema: 1\nname: &n good\n"); }),
     "found",
     "BN-M-SYNTAX",
     rejected,
     {"50-good.yaml:2:", "anchors (&name) are not allowed"}},
    {"pointing outside",
     "good",
     with_manifest([](const folder&) { return manifest_text("good", "../../../tmp/evil.so"); }),
     "found",
     "BN-M-OUTSIDE",
     rejected,
     {"pointing outside", "../../../tmp/evil.so"}},
    {"pointing into the current directory",
     "good",
     with_manifest([](const folder&) { return manifest_text("good", "./evil.so"); }),
     "found",
     "BN-M-OUTSIDE",
     rejected,
     {"pointing outside"}},
    {"a bare name is looked for in the plugin directory only",
     "good",
     [](const folder& f, const std::string& name) {
       f.write("backends.d/no-such-plugin-anywhere.so", folder::read(folder::built("good")));
       write_manifest(f, name, "no-such-plugin-anywhere.so");
     },
     "found",
     "BN-T-MISSING",
     absent,
     {"no-such-plugin-anywhere.so"}},
    {"for another major",
     "good",
     [](const folder& f, const std::string& name) {
       write_manifest(f, name, f.fake(name), {{"abi", "{major: 2, min: 0, max: 0}"}});
     },
     "found",
     "BN-A-MAJOR",
     rejected,
     {"speaks ABI major 2"}},
    {"without a library",
     "good",
     with_manifest([](const folder&) { return manifest_text("good", ""); }),
     "found",
     "BN-M-FIELD",
     rejected,
     {"'library' is missing"}},
    {"of a later schema",
     "good",
     with_manifest([](const folder&) { return manifest_text("good", "x.so", {{"schema", "9"}}); }),
     "found",
     "BN-M-SCHEMA",
     rejected,
     {"schema 9 is newer than this core"}},
    {"disabled",
     "good",
     with_manifest([](const folder&) { return std::string(); }),
     "found",
     "BN-M-DISABLED",
     absent,
     {"50-good.yaml is empty", "remove the empty file"}},
};

INSTANTIATE_TEST_SUITE_P(rows, rejection, testing::ValuesIn(rows));

constexpr uid_t stranger = 65534;

TEST(rejection_owner, a_plugin_of_another_user_is_rejected) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const folder f;
  recording_host host;
  as_built(f, "good");
  ASSERT_EQ(chown((f.path() / "lib/libfake-good.so").c_str(), stranger, stranger), 0);
  registry all = registry::scan({f.path() / "backends.d"}, host, {}, test::probing());
  report out;
  const auto chosen = all.select({.text = "good"}, out);
  ASSERT_FALSE(chosen.has_value());
  EXPECT_EQ(chosen.error().status, BITNET_REJECTED);
  EXPECT_EQ(find(out, "good")->code, "BN-T-OWNER");
  for (const char* text :
       {"requested backend 'good' was rejected", "owner uid 65534", "try: chown root '"})
    EXPECT_NE(chosen.error().message.find(text), std::string::npos) << chosen.error().message;
}

TEST(rejection_owner, a_manifest_of_another_user_is_rejected) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const folder f;
  recording_host host;
  as_built(f, "good");
  ASSERT_EQ(chown((f.path() / "backends.d/50-good.yaml").c_str(), stranger, stranger), 0);
  registry all = registry::scan({f.path() / "backends.d"}, host, {}, test::probing());
  report out;
  ASSERT_FALSE(all.select({}, out).has_value());
  EXPECT_EQ(find(out, "good")->code, "BN-T-OWNER");
}

TEST(rejection_change, a_plugin_that_is_written_to_after_the_probe_is_not_loaded) {
  const folder f;
  recording_host host;
  as_built(f, "good");
  registry all = registry::scan({f.path() / "backends.d"}, host, {}, test::probing());
  report out;
  all.probe_all(out);
  ASSERT_EQ(find(out, "good")->code, "BN-OK");
  const auto library = f.path() / "lib/libfake-good.so";
  std::ofstream(library, std::ios::binary | std::ios::app) << "more";
  const auto chosen = all.select({}, out);
  ASSERT_FALSE(chosen.has_value());
  EXPECT_EQ(find(out, "good")->code, "BN-T-CHANGED");
  EXPECT_NE(chosen.error().message.find("run the command again"), std::string::npos);
}

TEST(rejection_change, a_replaced_plugin_is_loaded_as_it_was_inspected) {
  const folder f;
  recording_host host;
  as_built(f, "good");
  registry all = registry::scan({f.path() / "backends.d"}, host, {}, test::probing());
  report out;
  all.probe_all(out);
  const auto next = f.write("lib/new.so", folder::read(folder::built("overrun")), 0755);
  std::filesystem::rename(next, f.path() / "lib/libfake-good.so");
  const auto chosen = all.select({}, out);
  ASSERT_TRUE(chosen.has_value()) << chosen.error().message;
  EXPECT_EQ(chosen->backend->name(), "good");
}

TEST(rejection_change, a_removed_plugin_is_not_loaded) {
  const folder f;
  recording_host host;
  as_built(f, "good");
  registry all = registry::scan({f.path() / "backends.d"}, host, {}, test::probing());
  std::filesystem::remove(f.path() / "lib/libfake-good.so");
  report out;
  ASSERT_FALSE(all.select({}, out).has_value());
  EXPECT_EQ(find(out, "good")->code, "BN-T-MISSING");
}

TEST(rejection_note, unknown_keys_are_reported_and_do_no_harm) {
  const folder f;
  recording_host host;
  write_manifest(f, "good", f.fake("good"), {{"colour", "blue"}});
  registry all = registry::scan({f.path() / "backends.d"}, host, {}, test::probing());
  report out;
  ASSERT_TRUE(all.select({}, out).has_value());
  EXPECT_EQ(find(out, "good")->code, "BN-OK");
  EXPECT_NE(find(out, "good")->reason.find("unknown key 'colour' is ignored"), std::string::npos);
  EXPECT_TRUE(host.said("1 manifest: "));
  EXPECT_TRUE(host.said("'colour'"));
}

TEST(rejection_none, a_missing_directory_is_reported) {
  recording_host host;
  registry all = registry::scan({"/nowhere/backends.d"}, host, {}, test::probing());
  report out;
  const auto chosen = all.select({.text = "cuda"}, out);
  ASSERT_FALSE(chosen.has_value());
  EXPECT_EQ(chosen.error().status, BITNET_UNAVAILABLE);
  for (const char* text : {"no backend is installed", "looked in /nowhere/backends.d",
                           "install bitnet-backend-cpu (or build plugins/cpu)"})
    EXPECT_NE(chosen.error().message.find(text), std::string::npos) << chosen.error().message;
}

TEST(rejection_none, a_search_includes_the_folder_of_the_installation) {
  recording_host host;
  registry all = registry::scan({}, host, {}, test::probing());
  report out;
  all.probe_all(out);
  EXPECT_TRUE(std::ranges::any_of(
      out.searched, [](const report::directory& d) { return d.path == "/etc/bitnet/backends.d"; }));
}

}  // namespace
}  // namespace bitnet::select
