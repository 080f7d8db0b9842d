// What happens when a plugin is loaded. One row, one plugin.

#include "plugin/loading/backend.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include "../../fakes/loader_fixture.hpp"
#include "plugin/loading/host_table.hpp"
#include "plugin/loading/shared_library.hpp"
#include "plugin/loading/slots.hpp"

namespace bitnet::plugin {
namespace {

using test::folder;
using test::recording_host;

struct row {
  const char* fake;
  const char* why;
  const char* code;
  bitnet_status status;
  std::vector<const char*> mentions;
};

std::ostream& operator<<(std::ostream& out, const row& r) {
  return out << r.fake;
}

class load : public testing::TestWithParam<row> {};

TEST_P(load, rejects_what_breaks_a_rule) {
  const row& r = GetParam();
  SCOPED_TRACE(std::string(r.fake) + ": " + r.why);
  const folder f;
  recording_host host;
  const auto file = f.fake(r.fake);
  const auto opened = backend::open(file, r.fake, BITNET_PURPOSE_LOAD, host);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(code_text(opened.error().code), r.code) << opened.error().reason;
  EXPECT_EQ(opened.error().status, r.status);
  for (const char* text : r.mentions)
    EXPECT_NE((opened.error().reason + "; " + opened.error().advice()).find(text),
              std::string::npos)
        << "'" << text << "' is not in: " << opened.error().reason << "; "
        << opened.error().advice();
  // Without the code it is the same failure.
  const auto loaded = backend::load(file, r.fake, BITNET_PURPOSE_LOAD, host);
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().status, r.status);
  EXPECT_EQ(loaded.error().message, opened.error().reason + "; " + opened.error().advice());
}

const row rows[] = {
    {"no-entry",
     "its entry has another name",
     "BN-A-ENTRY",
     BITNET_REJECTED,
     {"exports no entry symbol bitnet_backend_abi0"}},
    {"other-major",
     "its entry has the name of another major",
     "BN-A-MAJOR",
     BITNET_INCOMPATIBLE,
     {"backend other-major speaks ABI major 1, this core speaks 0",
      "install a bitnet that speaks 1 or a backend for 0"}},
    {"needs-minor",
     "it needs more than this core has",
     "BN-A-MINOR",
     BITNET_INCOMPATIBLE,
     {"backend needs-minor speaks ABI 0.6 to 0.9, this core speaks 0.1",
      "upgrade bitnet or install an older backend"}},
    {"old-minor",
     "it speaks only what this core no longer does",
     "BN-A-MINOR",
     BITNET_INCOMPATIBLE,
     {"speaks ABI 0.0, this core speaks 0.1",
      "upgrade the backend, or build it again with the SDK of this bitnet, whose contract is ABI "
      "0.1"}},
    {"entry-fails",
     "its entry reports a fault of its own",
     "BN-A-ENTRY",
     BITNET_REJECTED,
     {"its entry function failed: not today (status 15)"}},
    {"entry-unavailable",
     "its entry reports that something is missing on the machine",
     "BN-A-ENTRY",
     BITNET_UNAVAILABLE,
     {"not today"}},
    {"minor-too-new",
     "it chose a minor that was not offered",
     "BN-A-TABLE",
     BITNET_REJECTED,
     {"chose ABI minor 7, the host offered 1 to 2"}},
    {"short-table",
     "required slots would lie past the end of its table",
     "BN-A-TABLE",
     BITNET_REJECTED,
     {"its table has", "the required part has"}},
    {"too-long",
     "it says that it filled more than there was",
     "BN-A-TABLE",
     BITNET_REJECTED,
     {"the host gave room for"}},
    {"struct-size",
     "it changed the member that the host set",
     "BN-A-TABLE",
     BITNET_REJECTED,
     {"changed struct_size", "to 8"}},
    {"overrun",
     "it wrote into memory behind the table",
     "BN-A-OVERRUN",
     BITNET_REJECTED,
     {"wrote behind the", "remove the backend"}},
    {"null-slot",
     "a call of the slot would crash",
     "BN-A-SLOT",
     BITNET_REJECTED,
     {"required slot 'queue_submit' is null"}},
    {"null-close",
     "it could not be closed again",
     "BN-A-SLOT",
     BITNET_REJECTED,
     {"required slot 'close' is null"}},
    {"garbage-reserved",
     "a later version may give the member a meaning",
     "BN-A-TABLE",
     BITNET_REJECTED,
     {"reserved_0 of its table is 0xdeadbeef; the plugin must leave it 0"}},
    {"features",
     "it uses what was not offered",
     "BN-A-TABLE",
     BITNET_REJECTED,
     {"features_used[3] of its table is 0x1", "the plugin must leave it 0"}},
    {"info-fails",
     "nothing is known of it",
     "BN-A-ENTRY",
     BITNET_REJECTED,
     {"info() failed: lost my papers"}},
    {"info-null",
     "reading its version would crash",
     "BN-A-TABLE",
     BITNET_REJECTED,
     {"gives a version of 5 bytes and no address"}},
    {"info-no-driver",
     "reading the name of its driver would crash",
     "BN-A-TABLE",
     BITNET_REJECTED,
     {"a driver of 7 bytes and no address"}},
    {"info-long",
     "messages would repeat a text of any length",
     "BN-A-TABLE",
     BITNET_REJECTED,
     {"a license of 4096 bytes; 255 is the most"}},
    {"info-no-vendor",
     "a required text is empty",
     "BN-A-TABLE",
     BITNET_REJECTED,
     {"gives no vendor"}},
    {"info-size",
     "info() changed the member that the host set",
     "BN-A-TABLE",
     BITNET_REJECTED,
     {"info() changed struct_size from "}},
    {"info-name",
     "its messages would be those of another backend",
     "BN-A-IDENTITY",
     BITNET_REJECTED,
     {"calls itself 'impostor'"}},
    {"needy",
     "a library that it links is not there",
     "BN-A-LOAD",
     BITNET_REJECTED,
     {"libfake-absent-one.so"}},
};

INSTANTIATE_TEST_SUITE_P(rows, load, testing::ValuesIn(rows));

TEST(backend, a_good_one_loads) {
  const folder f;
  recording_host host;
  host.settings = {{"isa", "avx2"}, {"empty", ""}};
  {
    const auto b = backend::load(f.fake("good"), "good", BITNET_PURPOSE_LOAD, host);
    ASSERT_TRUE(b.has_value()) << b.error().message;
    EXPECT_EQ((*b)->name(), "good");
    EXPECT_EQ((*b)->version(), "1.2.3");
    const bitnet_backend_v0& t = (*b)->table();
    for (const slot& s : required_slots) {
      void* address = nullptr;
      std::memcpy(static_cast<void*>(&address), reinterpret_cast<const char*>(&t) + s.offset,
                  sizeof address);
      EXPECT_NE(address, nullptr) << s.name;
    }
    ASSERT_NE(t.query_interface, nullptr) << "optional slots have a stub";
    EXPECT_EQ(t.query_interface(t.self, {nullptr, 0}, 0), nullptr);
    EXPECT_TRUE(host.said("isa: avx2")) << "settings reach the plugin";
    EXPECT_TRUE(host.said("opened to load"));
    EXPECT_FALSE(host.said("closed"));
  }
  EXPECT_TRUE(host.said("good: closed"));
}

TEST(backend, loads_again_after_it_was_closed) {
  const folder f;
  recording_host host;
  const auto file = f.fake("good");
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(backend::load(file, "good", BITNET_PURPOSE_PROBE, host).has_value());
  EXPECT_EQ(std::ranges::count(host.lines, "2 good: closed"), 3);
}

TEST(backend, a_table_that_broke_a_rule_is_never_called) {
  const folder f;
  recording_host host;
  ASSERT_FALSE(backend::load(f.fake("overrun"), "overrun", BITNET_PURPOSE_LOAD, host).has_value());
  EXPECT_FALSE(host.said("closed"));
}

TEST(backend, a_missing_or_invalid_file_is_not_opened) {
  const folder f;
  recording_host host;
  const auto absent = backend::open("/nowhere/x.so", "x", BITNET_PURPOSE_LOAD, host);
  ASSERT_FALSE(absent.has_value());
  EXPECT_EQ(absent.error().code, code::trust_missing);
  EXPECT_NE(absent.error().reason.find("/nowhere/x.so"), std::string::npos);
  const auto relative = backend::open("x.so", "x", BITNET_PURPOSE_LOAD, host);
  ASSERT_FALSE(relative.has_value());
  EXPECT_NE(relative.error().reason.find("not an absolute path"), std::string::npos);
  const auto text = backend::open(f.write("text.so", "hello"), "x", BITNET_PURPOSE_LOAD, host);
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().code, code::abi_load);
  EXPECT_NE(text.error().reason.find("text.so is not an ELF shared object"), std::string::npos)
      << text.error().reason;
  EXPECT_EQ(text.error().reason.find("/proc/"), std::string::npos) << text.error().reason;
}

TEST(shared_library, has_no_symbols_of_others) {
  const folder f;
  const auto library = shared_library::open(std::move(*open_trusted(f.fake("good"))));
  ASSERT_TRUE(library.has_value());
  EXPECT_NE(library->function<void()>("bitnet_backend_abi0"), nullptr);
  EXPECT_EQ(library->function<void()>("bitnet_backend_abi1"), nullptr);
}

// Where the linker refuses a file that is the running program's, Boost.DLL opens the program in its
// place and reports no error: such a file never gets as far as that.
TEST(shared_library, is_not_the_running_program) {
  const auto opened = shared_library::open(
      std::move(*open_trusted(std::filesystem::read_symlink("/proc/self/exe"))));
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, code::abi_load);
  EXPECT_NE(opened.error().reason.find("is a program, not a shared object"), std::string::npos)
      << opened.error().reason;
}

TEST(shared_library, is_the_file_that_was_checked) {
  const folder f;
  recording_host host;
  const auto file = f.fake("good");
  auto checked_file = open_trusted(file);
  ASSERT_TRUE(checked_file.has_value());
  std::filesystem::rename(f.fake("alpha"), file);
  const auto loaded = backend::open(std::move(*checked_file), "good", BITNET_PURPOSE_LOAD, host);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().reason;
  EXPECT_EQ((*loaded)->name(), "good") << "and not alpha, which has its path now";
  // The path leads to a new file, which is another library.
  const auto next = backend::open(file, "alpha", BITNET_PURPOSE_LOAD, host);
  ASSERT_TRUE(next.has_value()) << next.error().reason;
  EXPECT_EQ((*next)->name(), "alpha");
}

TEST(shared_library, another_file_never_gets_the_number_of_a_mapped_one) {
  recording_host host;
  for (const char* name : {"good", "alpha", "beta", "twin", "good"}) {
    const folder f;
    const auto opened = backend::open(f.fake(name), name, BITNET_PURPOSE_LOAD, host);
    ASSERT_TRUE(opened.has_value()) << name << ": " << opened.error().reason;
    EXPECT_EQ((*opened)->name(), name);
    // The descriptor of the check is free again, that of the mapped file is not.
  }
}

TEST(shared_library, notices_that_a_mapped_file_was_written_to) {
  namespace fs = std::filesystem;
  const struct {
    const char* why;
    void (*change)(const fs::path&);
  } changes[] = {
      {"another time of change",
       [](const fs::path& file) {
         fs::last_write_time(file, fs::file_time_type::clock::now() + std::chrono::seconds(5));
       }},
      {"the same bytes, written again",
       [](const fs::path& file) {
         const std::string bytes = folder::read(file);
         std::fstream(file, std::ios::binary | std::ios::in | std::ios::out) << bytes;
       }},
      // Behind what is mapped: a page that is cut off would end the code that runs there.
      {"a byte less", [](const fs::path& file) { fs::resize_file(file, fs::file_size(file) - 1); }},
      {"a byte more",
       [](const fs::path& file) { std::ofstream(file, std::ios::binary | std::ios::app) << "x"; }},
  };
  for (const auto& row : changes) {
    SCOPED_TRACE(row.why);
    const folder f;
    recording_host host;
    const auto file = f.fake("good");
    ASSERT_TRUE(backend::open(file, "good", BITNET_PURPOSE_LOAD, host).has_value());
    ASSERT_TRUE(backend::open(file, "good", BITNET_PURPOSE_LOAD, host).has_value())
        << "twice is fine";
    row.change(file);
    const auto changed = backend::open(file, "good", BITNET_PURPOSE_LOAD, host);
    ASSERT_FALSE(changed.has_value());
    EXPECT_EQ(changed.error().code, code::trust_changed);
    EXPECT_NE(changed.error().advice().find("by renaming"), std::string::npos);
  }
}

// What took the name of a loaded file since is another library, however the linker knows the first.
TEST(shared_library, opens_the_file_that_was_checked) {
  const folder f;
  const auto file = f.fake("good");
  std::vector<shared_library> held;
  for (int i = 0; i < 3; ++i) {
    if (i > 0) {
      std::filesystem::rename(file, f.path() / ("old" + std::to_string(i)));
      (void)f.fake("good");
    }
    auto opened = shared_library::open(std::move(*open_trusted(file)));
    ASSERT_TRUE(opened.has_value()) << opened.error().reason;
    EXPECT_EQ(opened->file().inode, open_trusted(file)->identity.inode);
    for (const shared_library& other : held) {
      EXPECT_NE(opened->mapped(), other.mapped());
      EXPECT_NE(opened->function<void()>("bitnet_backend_abi0"),
                other.function<void()>("bitnet_backend_abi0"));
    }
    held.push_back(std::move(*opened));
  }
  const auto first = held.front().mapped();
  EXPECT_TRUE(is_mapped(first));
  held.front().release();
  EXPECT_FALSE(is_mapped(first));
  EXPECT_TRUE(is_mapped(held.back().mapped()));
}

// Only what says that it may be unmapped is.
TEST(backend, stays_mapped_unless_it_is_declared_unloadable) {
  const folder f;
  recording_host host;
  for (const auto& [fake, stays] : {std::pair("good", true), std::pair("unloadable", false)}) {
    mapped_identity mapped;
    {
      const auto b = backend::load(f.fake(fake), fake, BITNET_PURPOSE_LOAD, host);
      ASSERT_TRUE(b.has_value()) << b.error().message;
      mapped = (*b)->mapped();
      EXPECT_TRUE(is_mapped(mapped)) << fake;
    }
    EXPECT_EQ(is_mapped(mapped), stays) << fake;
  }
  mapped_identity mapped;
  {
    const auto b =
        backend::open(f.fake("unloadable"), "unloadable", BITNET_PURPOSE_LOAD, host, {}, false);
    ASSERT_TRUE(b.has_value());
    mapped = (*b)->mapped();
  }
  EXPECT_TRUE(is_mapped(mapped)) << "it is not known to be unloadable";
}

// The callbacks that plugins get.

struct tally {
  uint32_t calls = 0, width = 0;
};

void count(void* arg, uint32_t, uint32_t n) {
  static_cast<tally*>(arg)->calls += 1;
  static_cast<tally*>(arg)->width = n;
}

TEST(host_table, hands_on_to_the_services) {
  recording_host host;
  const bitnet_host_v0 t = make_host_table(host);
  EXPECT_EQ(t.struct_size, sizeof t);
  t.log(t.self, BITNET_LOG_WARN, {"who", 3}, {"what", 4});
  t.log(t.self, 99, {nullptr, 0}, {nullptr, 77});
  EXPECT_EQ(host.lines, (std::vector<std::string>{"1 who: what", "3 : "}));
  t.log(t.self, 0, {"", 0}, {std::string(5000, 'x').c_str(), 5000});
  EXPECT_EQ(host.lines.back().size(), 4 + 4096U);
  EXPECT_EQ(t.parallel_width(t.self), 3U);
  host.width = 0;
  EXPECT_EQ(t.parallel_width(t.self), 1U);
  tally all;
  EXPECT_EQ(t.parallel_run(t.self, 2, count, &all), BITNET_OK);
  EXPECT_EQ(all.calls, 2U);
  EXPECT_EQ(all.width, 2U);
  EXPECT_EQ(t.cancelled(t.self, 7), 1U);
  EXPECT_EQ(t.cancelled(t.self, 8), 0U);
  EXPECT_EQ(t.now_ns(t.self), 42U);
}

TEST(host_table, exceptions_of_services_do_not_reach_a_plugin) {
  recording_host host;
  host.throws = true;
  const bitnet_host_v0 t = make_host_table(host);
  t.log(t.self, 0, {"", 0}, {"", 0});
  EXPECT_EQ(t.parallel_width(t.self), 1U);
  tally all;
  EXPECT_EQ(t.parallel_run(t.self, 2, count, &all), BITNET_INTERNAL);
  EXPECT_EQ(t.cancelled(t.self, 7), 0U);
  EXPECT_EQ(t.now_ns(t.self), 0U);
}

}  // namespace
}  // namespace bitnet::plugin
