// What is found out about a plugin file without running it. One row, one file.

#include "plugin/inspection/inspect.hpp"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "../../fakes/loader_fixture.hpp"
#include "plugin/inspection/dependencies.hpp"
#include "plugin/inspection/elf_image.hpp"
#include "plugin/trust/hash.hpp"

namespace bitnet::plugin {
namespace {

using test::folder;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

checked<inspection> inspect_fake(const std::string& name,
                                 const std::map<std::string, std::string>& packages = {}) {
  const folder f;
  const auto file = open_trusted(f.fake(name));
  if (!file) return std::unexpected(file.error());
  return inspect_file(*file, packages);
}

std::string whole(const defect& d) {
  return std::string(code_text(d.code)) + " " + d.reason + "; " + d.advice();
}

void expect_mentions(const defect& d, const std::vector<const char*>& texts) {
  for (const char* text : texts)
    EXPECT_NE(whole(d).find(text), std::string::npos) << "'" << text << "' is not in: " << whole(d);
}

TEST(inspect, reads_the_identity) {
  const auto found = inspect_fake("good");
  ASSERT_TRUE(found.has_value()) << found.error().reason;
  EXPECT_EQ(found->note.name, "good");
  EXPECT_EQ(found->note.version, "1.2.3");
  EXPECT_EQ(found->note.vendor, "org.example");
  EXPECT_EQ(found->note.license, "CC0-1.0");
  EXPECT_EQ(found->note.abi, BITNET_ABI_RANGE);
  EXPECT_FALSE(found->note.compiler.empty());
  EXPECT_EQ(found->build_id.size(), 40U) << "a SHA-1 in hex";
  EXPECT_EQ(found->exports, std::vector<std::string>{"bitnet_backend_abi0"});
  EXPECT_TRUE(
      std::ranges::any_of(found->needed, [](const auto& n) { return n.starts_with("libc.so"); }));
}

TEST(inspect, reads_either_hash_table) {
  for (const char* name : {"sysv-hash", "both-hashes"}) {
    const auto found = inspect_fake(name);
    ASSERT_TRUE(found.has_value()) << name << ": " << found.error().reason;
    EXPECT_EQ(found->exports, std::vector<std::string>{"bitnet_backend_abi0"}) << name;
  }
}

TEST(inspect, follows_the_run_path_to_needed_libraries) {
  const auto found = inspect_fake("run-path");
  ASSERT_TRUE(found.has_value()) << found.error().reason;
  ASSERT_EQ(found->run_path.size(), 2U);
  EXPECT_EQ(found->run_path[0], "/nowhere");
}

struct row {
  const char* fake;
  const char* code;
  bitnet_status status;
  std::vector<const char*> mentions;
};

std::ostream& operator<<(std::ostream& out, const row& r) {
  return out << r.fake;
}

class inspect_fakes : public testing::TestWithParam<row> {};

TEST_P(inspect_fakes, are_rejected) {
  const row& r = GetParam();
  SCOPED_TRACE(r.fake);
  const auto found = inspect_fake(r.fake, {{"libfake-absent-two.so", "fake-two-package"}});
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(code_text(found.error().code), r.code) << found.error().reason;
  EXPECT_EQ(found.error().status, r.status);
  expect_mentions(found.error(), r.mentions);
}

const row rows[] = {
    {"no-entry",
     "BN-I-NO-ENTRY",
     BITNET_REJECTED,
     {"libfake-no-entry.so exports no entry symbol bitnet_backend_abi0", "bitnet_add_backend"}},
    {"other-major",
     "BN-A-MAJOR",
     BITNET_INCOMPATIBLE,
     {"backend other-major speaks ABI major 1, this core speaks 0"}},
    {"note-major", "BN-A-MAJOR", BITNET_INCOMPATIBLE, {"speaks ABI major 3"}},
    {"note-minor",
     "BN-A-MINOR",
     BITNET_INCOMPATIBLE,
     {"backend note-minor speaks ABI 0.6 to 0.9, this core speaks 0.1",
      "upgrade bitnet or install an older backend"}},
    {"note-old",
     "BN-A-MINOR",
     BITNET_INCOMPATIBLE,
     {"backend note-old speaks ABI 0.0, this core speaks 0.1",
      "upgrade the backend, or build it again with the SDK of this bitnet"}},
    {"no-note", "BN-I-NO-NOTE", BITNET_REJECTED, {"has no identity note", "BITNET_BACKEND_NOTE"}},
    {"two-notes", "BN-I-NOTE", BITNET_REJECTED, {"there are two of them"}},
    {"extra-export",
     "BN-I-EXPORTS",
     BITNET_REJECTED,
     {"exports 1 symbol: bitnet_fake_stranger", "version script"}},
    {"unique", "BN-I-EXPORTS", BITNET_REJECTED, {"STB_GNU_UNIQUE", "bitnet_fake_unique"}},
    {"needy",
     "BN-I-DEPENDENCY",
     BITNET_UNAVAILABLE,
     {"libraries that this machine does not have: libfake-absent-one.so, libfake-absent-two.so",
      "install fake-two-package"}},
    {"static-tls", "BN-I-STATIC-TLS", BITNET_REJECTED, {"uses static TLS", "initial-exec"}},
    {"textrel", "BN-I-TEXTREL", BITNET_REJECTED, {"has text relocations", "-fPIC"}},
    {"exec-stack", "BN-I-EXEC-STACK", BITNET_REJECTED, {"an executable stack", "noexecstack"}},
    {"pinned",
     "BN-I-PINNED",
     BITNET_REJECTED,
     {"declares itself unloadable, but it calls pthread_key_create"}},
    {"relative-run-path",
     "BN-I-RUN-PATH",
     BITNET_REJECTED,
     {"run path 'lib/private' is relative: it would lead to the current directory"}},
    {"empty-run-path", "BN-I-RUN-PATH", BITNET_REJECTED, {"run path '' is relative"}},
    {"sticky-run-path",
     "BN-I-RUN-PATH",
     BITNET_REJECTED,
     {"cannot be trusted: is not there, and /tmp is writable by others"}},
    {"world-run-path",
     "BN-I-RUN-PATH",
     BITNET_REJECTED,
     {"cannot be trusted: /tmp is writable by others"}},
    {"platform-run-path", "BN-I-RUN-PATH", BITNET_REJECTED, {"'/usr/$LIB/x-nobody", "has a '$'"}},
    {"hidden-origin-run-path",
     "BN-I-RUN-PATH",
     BITNET_REJECTED,
     {"'/$ORIGIN/../cwd' has a '$' that is no leading $ORIGIN"}},
    {"climbing-run-path",
     "BN-I-RUN-PATH",
     BITNET_REJECTED,
     {"'$ORIGIN/../cwd' leads out of $ORIGIN, which is the folder of open descriptors"}},
    {"number-run-path", "BN-I-RUN-PATH", BITNET_REJECTED, {"leads out of $ORIGIN"}},
    {"needs-path",
     "BN-I-FOREIGN",
     BITNET_REJECTED,
     {"needs './libfake-foreign.so', which is a path", "plain libraries"}},
    {"needs-origin", "BN-I-FOREIGN", BITNET_REJECTED, {"which has a '$'"}},
    {"needs-number", "BN-I-FOREIGN", BITNET_REJECTED, {"needs '7', which is a number"}},
    {"auxiliary", "BN-I-FOREIGN", BITNET_REJECTED, {"has DT_AUXILIARY, by which"}},
    {"filter", "BN-I-FOREIGN", BITNET_REJECTED, {"has DT_FILTER, by which"}},
    {"audit", "BN-I-FOREIGN", BITNET_REJECTED, {"has DT_AUDIT, by which"}},
    {"depaudit", "BN-I-FOREIGN", BITNET_REJECTED, {"has DT_DEPAUDIT, by which"}},
    {"needs-new-glibc",
     "BN-I-VERSION",
     BITNET_UNAVAILABLE,
     {"needs GLIBC_9.9", " of libc.so.6, but /", "has GLIBC_2.", " at most",
      "build the plugin on an older system"}},
};

INSTANTIATE_TEST_SUITE_P(rows, inspect_fakes, testing::ValuesIn(rows));

// As sstrip leaves it.
void drop_section_headers(std::string& file) {
  Elf64_Ehdr head;
  std::memcpy(&head, file.data(), sizeof head);
  head.e_shoff = 0;
  head.e_shnum = 0;
  head.e_shstrndx = 0;
  std::memcpy(file.data(), &head, sizeof head);
}

// The dynamic linker needs no section headers, and neither do we.
TEST_P(inspect_fakes, are_rejected_without_section_headers_too) {
  const row& r = GetParam();
  SCOPED_TRACE(r.fake);
  std::string bytes = folder::read(folder::built(r.fake));
  drop_section_headers(bytes);
  const folder f;
  const auto file = open_trusted(f.write("plugin.so", bytes));
  ASSERT_TRUE(file.has_value());
  const auto found = inspect_file(*file, {{"libfake-absent-two.so", "fake-two-package"}});
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(code_text(found.error().code), r.code) << found.error().reason;
}

examination examine_fake(const std::string& name, const std::string& sha256 = "") {
  const folder f;
  return examine_file(open_trusted(f.fake(name)).value(), {}, sha256);
}

const finding* find(const examination& e, const std::string& check,
                    finding::level_type level = finding::level_type::ok) {
  for (const finding& one : e.found.all())
    if (one.check == check && one.level == level) return &one;
  return nullptr;
}

constexpr auto warning = finding::level_type::warning;
constexpr auto error = finding::level_type::error;

TEST(examine, a_sound_plugin_passes_every_check) {
  for (const char* name : {"hardened", "stripped", "unloadable"}) {
    const examination e = examine_fake(name);
    EXPECT_EQ(e.found.first_error(), nullptr) << name << ": " << e.found.first_error()->reason;
    for (const char* check :
         {"format", "identity", "build id", "exports", "static TLS", "text relocations", "stack",
          "unloadable", "abi", "run path", "dependencies", "versions"})
      EXPECT_NE(find(e, check), nullptr) << name << " " << check;
  }
  EXPECT_NE(find(examine_fake("hardened"), "hardening"), nullptr);
}

TEST(examine, warns_of_what_only_weakens) {
  const examination lazy = examine_fake("lazy");
  EXPECT_EQ(lazy.found.first_error(), nullptr);
  ASSERT_NE(find(lazy, "hardening", warning), nullptr);
  expect_mentions(find(lazy, "hardening", warning)->what,
                  {"BN-I-HARDENING",
                   "lazily (no -z now) and leaves its relocated data "
                   "writable (no -z relro)"});
  const examination nodelete = examine_fake("nodelete");
  EXPECT_EQ(nodelete.found.first_error(), nullptr);
  ASSERT_NE(find(nodelete, "unloadable", warning), nullptr);
  expect_mentions(find(nodelete, "unloadable", warning)->what, {"BN-I-PINNED", "-z nodelete"});
  const examination origin = examine_fake("origin-run-path");
  EXPECT_EQ(origin.found.first_error(), nullptr);
  ASSERT_NE(find(origin, "run path", warning), nullptr);
  expect_mentions(find(origin, "run path", warning)->what,
                  {"BN-I-RUN-PATH", "'$ORIGIN/private' is not followed"});
}

TEST(examine, says_whether_it_could_be_unloaded) {
  const examination declared = examine_fake("unloadable");
  EXPECT_EQ(find(declared, "unloadable")->what.reason, "yes");
  EXPECT_TRUE(declared.facts.note.unloadable);
  const examination silent = examine_fake("good");
  EXPECT_EQ(find(silent, "unloadable")->what.reason, "no, as its note does not declare it");
  const examination pinned = examine_fake("pinned");
  ASSERT_EQ(pinned.facts.pins.size(), 1U);
  EXPECT_TRUE(pinned.facts.pins[0].starts_with("it calls pthread_key_create"));
}

TEST(examine, shows_all_errors_at_once) {
  std::string bytes = folder::read(folder::built("static-tls"));
  for (const char* from : {"vendor="}) bytes.replace(bytes.find(from), 7, "vendor ");
  const examination e = examine(bytes_of(bytes));
  EXPECT_NE(find(e, "identity", error), nullptr);
  EXPECT_NE(find(e, "static TLS", error), nullptr);
  EXPECT_NE(find(e, "exports"), nullptr) << "what is right is shown beside it";
}

TEST(examine, compares_the_hash_only_where_there_is_one) {
  EXPECT_EQ(find(examine_fake("good"), "hash"), nullptr);
  const examination wrong = examine_fake("good", std::string(64, '0'));
  ASSERT_NE(find(wrong, "hash", error), nullptr);
  expect_mentions(find(wrong, "hash", error)->what,
                  {"BN-T-HASH", "the manifest says 0000", "reinstall"});
  const std::string good = folder::read(folder::built("good"));
  EXPECT_NE(find(examine_fake("good", sha256_of(bytes_of(good))), "hash"), nullptr);
  // FIPS 180-2, appendix B.1.
  EXPECT_EQ(sha256_of(bytes_of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(inspect, names_missing_libraries_without_a_package_too) {
  const auto found = inspect_fake("needy");
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().advice(), "install the missing libraries");
}

TEST(inspect, rejects_a_plugin_of_another_architecture) {
  if (!std::filesystem::exists(folder::built("aarch64"))) GTEST_SKIP() << "no aarch64 compiler";
  const auto found = inspect_fake("aarch64");
  ASSERT_FALSE(found.has_value());
  expect_mentions(found.error(), {"BN-I-MACHINE", "was built for aarch64, this machine is x86-64"});
}

// Files made from the good one.
struct edit_row {
  const char* why;
  std::function<void(std::string&)> edit;
  const char* code;
  std::vector<const char*> mentions;
};

std::ostream& operator<<(std::ostream& out, const edit_row& r) {
  return out << r.why;
}

template <class Value>
std::function<void(std::string&)> set(std::size_t offset, Value value) {
  return [offset, value](std::string& file) {
    std::memcpy(file.data() + offset, &value, sizeof value);
  };
}

std::function<void(std::string&)> cut(std::size_t size) {
  return [size](std::string& file) { file.resize(size); };
}

class inspect_edited : public testing::TestWithParam<edit_row> {};

TEST_P(inspect_edited, is_rejected_with_a_reason) {
  const edit_row& r = GetParam();
  SCOPED_TRACE(r.why);
  std::string file = folder::read(folder::built("good"));
  r.edit(file);
  const auto found = inspect(bytes_of(file));
  if (std::string_view(r.code) == "BN-OK") {
    ASSERT_TRUE(found.has_value()) << found.error().reason;
    EXPECT_EQ(found->note.name, "good");
    return;
  }
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(code_text(found.error().code), r.code) << found.error().reason;
  expect_mentions(found.error(), r.mentions);
}

// Calls `change` for the first program header of this type.
std::function<void(std::string&)> segment(uint32_t type,
                                          const std::function<void(Elf64_Phdr&)>& change) {
  return [type, change](std::string& file) {
    Elf64_Ehdr head;
    std::memcpy(&head, file.data(), sizeof head);
    for (int i = 0; i < head.e_phnum; ++i) {
      Elf64_Phdr p;
      char* at = file.data() + head.e_phoff + static_cast<std::size_t>(i) * sizeof p;
      std::memcpy(&p, at, sizeof p);
      if (p.p_type != type) continue;
      change(p);
      std::memcpy(at, &p, sizeof p);
      return;
    }
  };
}

// Sets the value of a dynamic entry, or with `retag` its tag.
std::function<void(std::string&)> dynamic(int64_t tag, uint64_t value, int64_t retag = -1) {
  return [tag, value, retag](std::string& file) {
    uint64_t at = 0;
    segment(PT_DYNAMIC, [&at](Elf64_Phdr& p) { at = p.p_offset; })(file);
    for (;; at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn d;
      std::memcpy(&d, file.data() + at, sizeof d);
      if (d.d_tag == DT_NULL) throw std::runtime_error("no entry of that tag");
      if (d.d_tag != tag) continue;
      if (retag >= 0)
        d.d_tag = retag;
      else
        d.d_un.d_val = value;
      std::memcpy(file.data() + at, &d, sizeof d);
      return;
    }
  };
}

// Replaces text of the same length.
std::function<void(std::string&)> swap_text(std::string from, std::string to) {
  return [from, to](std::string& file) { file.replace(file.find(from), from.size(), to); };
}

const edit_row edits[] = {
    {"untouched", [](std::string&) {}, "BN-OK", {}},
    {"without section headers, as sstrip leaves it",
     [](std::string& f) {
       set<uint64_t>(offsetof(Elf64_Ehdr, e_shoff), 0)(f);
       set<uint16_t>(offsetof(Elf64_Ehdr, e_shnum), 0)(f);
       set<uint16_t>(offsetof(Elf64_Ehdr, e_shstrndx), 0)(f);
     },
     "BN-OK",
     {}},
    {"empty", cut(0), "BN-I-FORMAT", {"is empty"}},
    {"text",
     [](std::string& f) { f = "#!/bin/sh\necho hello\n"; },
     "BN-I-FORMAT",
     {"not an ELF shared object; it begins with '#!/bin/sh\\necho h'"}},
    {"escape sequences in the text",
     [](std::string& f) { f = "\033[31mred"; },
     "BN-I-FORMAT",
     {"'\\x1b[31mred'"}},
    {"four bytes", cut(4), "BN-I-TRUNCATED", {"at least 64 bytes and has 4"}},
    {"cut in the header", cut(63), "BN-I-TRUNCATED", {"has 63"}},
    {"cut in the program headers", cut(100), "BN-I-TRUNCATED", {"has 100"}},
    {"cut in the middle",
     [](std::string& f) { f.resize(f.size() / 2); },
     "BN-I-TRUNCATED",
     {"is cut off"}},
    {"the last byte is missing",
     [](std::string& f) { f.pop_back(); },
     "BN-I-TRUNCATED",
     {"is cut off"}},
    {"32-bit", set<uint8_t>(EI_CLASS, ELFCLASS32), "BN-I-MACHINE", {"not a 64-bit object"}},
    {"the other byte order",
     set<uint8_t>(EI_DATA, ELFDATA2MSB),
     "BN-I-MACHINE",
     {"another byte order"}},
    {"aarch64",
     set<uint16_t>(offsetof(Elf64_Ehdr, e_machine), EM_AARCH64),
     "BN-I-MACHINE",
     {"was built for aarch64, this machine is"}},
    {"a machine without a name",
     set<uint16_t>(offsetof(Elf64_Ehdr, e_machine), 4711),
     "BN-I-MACHINE",
     {"was built for machine 4711"}},
    {"a program, not a library",
     set<uint16_t>(offsetof(Elf64_Ehdr, e_type), ET_EXEC),
     "BN-I-FORMAT",
     {"not a shared object (type 2)"}},
    {"no program headers",
     set<uint16_t>(offsetof(Elf64_Ehdr, e_phnum), 0),
     "BN-I-FORMAT",
     {"no usable program headers"}},
    {"program headers of another size",
     set<uint16_t>(offsetof(Elf64_Ehdr, e_phentsize), 32),
     "BN-I-FORMAT",
     {"no usable program headers"}},
    {"program headers beyond the end",
     set<uint64_t>(offsetof(Elf64_Ehdr, e_phoff), ~0ULL - 8),
     "BN-I-TRUNCATED",
     {}},
    {"section headers beyond the end",
     set<uint64_t>(offsetof(Elf64_Ehdr, e_shoff), 1ULL << 40),
     "BN-I-TRUNCATED",
     {}},
    {"a header version that does not exist",
     set<uint8_t>(EI_VERSION, 9),
     "BN-I-FORMAT",
     {"damaged"}},
    {"a segment that wraps around",
     segment(PT_LOAD,
             [](Elf64_Phdr& p) {
               p.p_offset = ~0ULL;
               p.p_filesz = 2;
             }),
     "BN-I-TRUNCATED",
     {}},
    {"notes beyond the end are no notes",
     segment(PT_NOTE, [](Elf64_Phdr& p) { p.p_offset = 1ULL << 50; }),
     "BN-I-NO-NOTE",
     {}},
    {"no dynamic section",
     segment(PT_DYNAMIC, [](Elf64_Phdr& p) { p.p_type = PT_NULL; }),
     "BN-I-FORMAT",
     {"no readable dynamic symbol table"}},
    {"a dynamic section beyond the end",
     segment(PT_DYNAMIC, [](Elf64_Phdr& p) { p.p_offset = 1ULL << 50; }),
     "BN-I-FORMAT",
     {"dynamic section at another place in the file than in memory"}},
    {"a dynamic section elsewhere in memory, where the linker looks",
     segment(PT_DYNAMIC, [](Elf64_Phdr& p) { p.p_vaddr += 16; }),
     "BN-I-FORMAT",
     {"dynamic section at another place in the file than in memory"}},
    {"a dynamic section that does not end",
     segment(PT_DYNAMIC, [](Elf64_Phdr& p) { p.p_filesz = 64; }),
     "BN-I-FORMAT",
     {"without an end"}},
    {"two dynamic sections",
     segment(PT_NOTE, [](Elf64_Phdr& p) { p.p_type = PT_DYNAMIC; }),
     "BN-I-FORMAT",
     {"two program headers of a kind"}},
    {"two headers about the stack",
     segment(PT_NOTE, [](Elf64_Phdr& p) { p.p_type = PT_GNU_STACK; }),
     "BN-I-FORMAT",
     {"two program headers of a kind"}},
    {"segments that overlap",
     segment(PT_LOAD, [](Elf64_Phdr& p) { p.p_memsz += 1 << 20; }),
     "BN-I-FORMAT",
     {"segments that overlap"}},
    {"more of the file than of memory",
     segment(PT_LOAD, [](Elf64_Phdr& p) { p.p_memsz = p.p_filesz - 1; }),
     "BN-I-FORMAT",
     {"cannot be mapped as it says"}},
    {"two symbol tables",
     dynamic(DT_RELAENT, 0, DT_SYMTAB),
     "BN-I-FORMAT",
     {"two different entries"}},
    {"an auxiliary library", dynamic(DT_VERNEEDNUM, 0, DT_AUXILIARY), "BN-I-FOREIGN", {}},
    {"one by a number that glibc takes for it",
     dynamic(DT_VERNEEDNUM, 0, 0xfffffffd),
     "BN-I-FOREIGN",
     {"DT_AUXILIARY"}},
    {"a filter by a number of 64 bits",
     dynamic(DT_VERNEEDNUM, 0, 0x17fffffff),
     "BN-I-FOREIGN",
     {"DT_FILTER"}},
    {"a needed library outside of the strings",
     dynamic(DT_NEEDED, 1 << 30),
     "BN-I-FORMAT",
     {"outside of its dynamic string table"}},
    {"a symbol table nowhere",
     dynamic(DT_SYMTAB, 1ULL << 60),
     "BN-I-FORMAT",
     {"dynamic symbol table"}},
    {"no symbol table", dynamic(DT_SYMTAB, 0, DT_DEBUG), "BN-I-FORMAT", {"dynamic symbol table"}},
    {"no hash table", dynamic(DT_GNU_HASH, 0, DT_DEBUG), "BN-I-FORMAT", {"dynamic symbol table"}},
    {"a hash table nowhere",
     dynamic(DT_GNU_HASH, 1ULL << 60),
     "BN-I-FORMAT",
     {"dynamic symbol table"}},
    {"a stack of which nothing is said",
     segment(PT_GNU_STACK, [](Elf64_Phdr& p) { p.p_type = PT_NULL; }),
     "BN-I-EXEC-STACK",
     {"does not say that its stack need not be executable"}},
    {"a segment that is writable and executable",
     segment(PT_LOAD, [](Elf64_Phdr& p) { p.p_flags = PF_R | PF_W | PF_X; }),
     "BN-I-TEXTREL",
     {"both writable and executable"}},
    {"a version table nowhere",
     dynamic(DT_VERNEED, 1ULL << 60),
     "BN-I-FORMAT",
     {"damaged table of versions that it needs"}},
    {"a program that calls itself a library",
     [](std::string& f) {
       dynamic(DT_VERNEEDNUM, 0, DT_FLAGS_1)(f);
       dynamic(DT_FLAGS_1, DF_1_PIE)(f);
     },
     "BN-I-FORMAT",
     {"is a program"}},
    {"symbols without names", dynamic(DT_STRTAB, 1ULL << 60), "BN-I-FORMAT", {"string table"}},
    {"no string table", dynamic(DT_STRTAB, 0, DT_DEBUG), "BN-I-FORMAT", {"string table"}},
    {"a string table without end", dynamic(DT_STRSZ, 1ULL << 60), "BN-I-FORMAT", {"string table"}},
    {"a note of another owner", swap_text("BitNet", "BitNix"), "BN-I-NO-NOTE", {}},
    {"a note of a later schema",
     swap_text("schema=1", "schema=2"),
     "BN-I-NOTE",
     {"expected 'schema=1' first, found 'schema=2'"}},
    {"a note without a name",
     swap_text("name=good", "mane=good"),
     "BN-I-NOTE",
     {"key 'name' is missing"}},
    {"a note with a bad name",
     swap_text("name=good", "name=g/od"),
     "BN-I-NOTE",
     {"'g/od' is not a backend name"}},
    {"a note with a field that is none",
     swap_text("vendor=", "vendor "),
     "BN-I-NOTE",
     {"has no '='"}},
    {"a key twice",
     swap_text("vendor=org.e", "name=rg.exam"),
     "BN-I-NOTE",
     {"'name' is there twice"}},
    {"a range without a dash",
     swap_text("abi=0.1-2", "abi=0.0.0"),
     "BN-I-NOTE",
     {"not an ABI range"}},
    {"a range of words", swap_text("abi=0.1-2", "abi=x.0-0"), "BN-I-NOTE", {"not an ABI range"}},
    {"a range backwards",
     swap_text("abi=0.1-2", "abi=0.2-1"),
     "BN-I-NOTE",
     {"'0.2-1' is not an ABI range"}},
    {"a range without a minor",
     swap_text("abi=0.1-2", "abi=0.-10"),
     "BN-I-NOTE",
     {"not an ABI range"}},
};

INSTANTIATE_TEST_SUITE_P(rows, inspect_edited, testing::ValuesIn(edits));

// The old hash table says that there is one symbol, the one that the linker uses says more.
TEST(inspect, both_hash_tables_must_agree) {
  std::string file = folder::read(folder::built("both-hashes"));
  const auto image = elf_image::open(bytes_of(file));
  ASSERT_TRUE(image.has_value());
  const uint64_t table = image->dynamic_value(DT_HASH).value();  // in the first segment: an offset
  set<uint32_t>(table + 4, 1)(file);
  const auto fewer = inspect(bytes_of(file));
  ASSERT_FALSE(fewer.has_value());
  expect_mentions(fewer.error(), {"BN-I-FORMAT", "DT_HASH"});
}

// The linker would go round for ever.
TEST(inspect, chains_of_the_old_hash_table_end) {
  std::string file = folder::read(folder::built("sysv-hash"));
  const auto image = elf_image::open(bytes_of(file));
  ASSERT_TRUE(image.has_value());
  const uint64_t table = image->dynamic_value(DT_HASH).value();
  uint32_t n_buckets = 0;
  uint32_t first = 0;
  std::memcpy(&n_buckets, file.data() + table, sizeof n_buckets);
  for (uint32_t bucket = 0; first == 0 && bucket < n_buckets; ++bucket)
    std::memcpy(&first, file.data() + table + 8 + 4 * uint64_t{bucket}, sizeof first);
  ASSERT_NE(first, 0U) << "no bucket leads to a symbol";
  set<uint32_t>(table + 8 + 4 * (n_buckets + first), first)(file);
  const auto endless = inspect(bytes_of(file));
  ASSERT_FALSE(endless.has_value());
  expect_mentions(endless.error(), {"BN-I-FORMAT", "DT_HASH is damaged"});
}

// A name that an import has, too: the hash leads to the import only.
TEST(inspect, an_import_of_the_name_is_no_export) {
  std::string file = folder::read(folder::built("sysv-hash"));
  const auto image = elf_image::open(bytes_of(file));
  ASSERT_TRUE(image.has_value());
  const auto symbols = image->symbols();
  ASSERT_TRUE(symbols.has_value());
  const auto import = std::ranges::find_if(*symbols, [](const auto& s) { return !s.defined; });
  ASSERT_NE(import, symbols->end());
  const auto exported =
      std::ranges::find_if(*symbols, [](const auto& s) { return s.name == "bitnet_backend_abi0"; });
  ASSERT_NE(exported, symbols->end());
  const uint64_t table = image->dynamic_value(DT_SYMTAB).value();
  const auto entry = [&](const auto& at) {
    return table + sizeof(Elf64_Sym) * static_cast<std::size_t>(at - symbols->begin() + 1);
  };
  std::memcpy(file.data() + entry(exported), file.data() + entry(import), 4);
  EXPECT_FALSE(inspect(bytes_of(file)).has_value());
}

// A symbol that no hash leads to is there for readers of the table alone.
TEST(inspect, exports_are_what_the_hash_table_leads_to) {
  std::string file = folder::read(folder::built("good"));
  const auto image = elf_image::open(bytes_of(file));
  ASSERT_TRUE(image.has_value());
  const uint64_t table = image->dynamic_value(DT_GNU_HASH).value();
  uint32_t n_words = 0;
  std::memcpy(&n_words, file.data() + table + 8, sizeof n_words);
  for (uint32_t i = 0; i < n_words; ++i) set<uint64_t>(table + 16 + i * 8, 0)(file);  // the filter
  const auto none = inspect(bytes_of(file));
  ASSERT_FALSE(none.has_value());
  expect_mentions(none.error(),
                  {"BN-I-FORMAT", "'bitnet_backend_abi0', which the linker would not find"});
}

TEST(inspect, survives_a_cut_at_every_place) {
  const std::string file = folder::read(folder::built("good"));
  for (std::size_t size = 0; size < file.size(); size += size < 1024 ? 1 : 37) {
    const std::string part = file.substr(0, size);
    const auto found = inspect(bytes_of(part));
    ASSERT_FALSE(found.has_value()) << size;
    EXPECT_TRUE(found.error().code == code::inspect_truncated || size < 4)
        << size << found.error().reason;
  }
}

TEST(inspect, survives_every_byte_of_the_headers_at_its_extremes) {
  const std::string file = folder::read(folder::built("good"));
  for (std::size_t i = 0; i < 64 + 56 * 12; ++i)
    for (const char value : {'\0', '\x01', '\x7f', '\x80', '\xff'}) {
      std::string broken = file;
      broken[i] = value;
      [[maybe_unused]] const auto facts =
          inspect(bytes_of(broken));  // any answer will do; the sanitizers judge
    }
}

TEST(inspect, a_note_may_have_eight_byte_alignment_and_unterminated_fields_are_rejected) {
  std::string file = folder::read(folder::built("good"));
  const std::size_t at = file.find("compiler=");
  const std::size_t end = file.find('\0', at);
  file[end] = 'x';  // the padding behind the description, or its last byte
  const auto found = inspect(bytes_of(file));
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, code::inspect_note) << found.error().reason;
}

TEST(inspect, rejects_an_empty_file_on_disk) {
  const folder f;
  const auto file = open_trusted(f.write("empty.so", ""));
  ASSERT_TRUE(file.has_value());
  const auto found = inspect_file(*file, {});
  ASSERT_FALSE(found.has_value());
  expect_mentions(found.error(), {"BN-I-FORMAT", "empty.so is empty"});
}

TEST(check_abi, accepts_what_this_core_speaks) {
  identity note;
  note.name = "x";
  note.abi_major = BITNET_ABI_MAJOR;
  note.abi_max = 99;
  EXPECT_TRUE(check_abi(note).has_value()) << "newer, but speaks our minor too";
  note.abi_min = BITNET_ABI_MINOR + 1;
  EXPECT_EQ(check_abi(note).error().code, code::abi_minor);
  note.abi_major = BITNET_ABI_MAJOR + 1;
  EXPECT_EQ(check_abi(note).error().code, code::abi_major);
}

// The names of those that are not on this machine.
std::vector<std::string> missing(const inspection& plugin) {
  std::vector<std::string> out;
  for (const needed_library& one : resolve_libraries(plugin))
    if (one.file.empty()) out.push_back(one.name);
  return out;
}

TEST(dependencies, looks_where_the_linker_looks) {
  const folder f;
  const std::string bytes = folder::read(folder::built("good"));
  f.write("lib/libprivate.so", bytes);
  std::string foreign = bytes;
  set<uint16_t>(offsetof(Elf64_Ehdr, e_machine), EM_SPARC)(foreign);
  f.write("foreign/libprivate.so", foreign);
  f.write("text/libprivate.so", "not a library");
  inspection plugin;
  plugin.run_path_is_new = true;
  plugin.needed = {"libc.so.6", "libprivate.so", "libnowhere.so.9"};
  const std::vector<std::string> without = {"libprivate.so", "libnowhere.so.9"};
  EXPECT_EQ(missing(plugin), without);
  const auto path = [&](const char* name) { return (f.path() / name).string(); };
  plugin.run_path = {path("foreign")};
  EXPECT_EQ(missing(plugin), without) << "the linker goes on after a file for another machine";
  plugin.run_path = {path("foreign"), path("lib")};
  EXPECT_EQ(missing(plugin), std::vector<std::string>{"libnowhere.so.9"});
  plugin.run_path = {path("text"), path("lib")};
  const auto stopped = resolve_libraries(plugin);
  EXPECT_EQ(stopped[1].file, path("text/libprivate.so")) << "and stops at what is no library";
  EXPECT_TRUE(stopped[1].fault.has_value());
  for (const char* origin : {"$ORIGIN/lib", "${ORIGIN}/lib", "lib", ""}) {
    plugin.run_path = {origin};
    EXPECT_EQ(missing(plugin), without) << origin;
  }
}

TEST(dependencies, missing_ones_of_dependencies_are_reported) {
  const folder f;
  f.write("lib/libmiddle.so", folder::read(folder::built("needy")));
  inspection plugin;
  plugin.needed = {"libmiddle.so"};
  plugin.run_path = {(f.path() / "lib").string()};
  findings found;
  examine_dependencies(resolve_libraries(plugin), {{"libfake-absent-one.so", "fake-package"}}, {},
                       found);
  ASSERT_NE(found.first_error(), nullptr);
  expect_mentions(*found.first_error(),
                  {"libfake-absent-one.so (for libmiddle.so), libfake-absent-two.so (for "
                   "libmiddle.so)",
                   "install fake-package"});
}

TEST(dependencies, of_dependencies_lie_where_those_say) {
  const folder f;
  f.write("lib/libmiddle.so", folder::read(folder::built("run-path")));
  inspection plugin;
  plugin.needed = {"libmiddle.so"};
  plugin.run_path = {(f.path() / "lib").string()};
  EXPECT_EQ(missing(plugin), std::vector<std::string>());
  // The same by $ORIGIN, which libraries may use.
  std::string bytes = folder::read(folder::built("run-path"));
  const std::size_t at = bytes.find("/nowhere:");
  bytes.replace(at, 9, std::string("$ORIGIN/\0", 9));
  f.write("lib/libmiddle.so", bytes);
  EXPECT_EQ(missing(plugin).size(), 2U);
  for (const char* name : {"libfake-absent-one.so", "libfake-absent-two.so"})
    f.write(std::string("lib/") + name, folder::read(folder::built("good")));
  EXPECT_EQ(missing(plugin), std::vector<std::string>());
}

TEST(dependencies, reads_linker_configurations) {
  const folder f;
  f.write("ld.so.conf",
          "# comment\n/one  # and a comment\ninclude ld.so.conf.d/*.conf\n\n  /two\t\n"
          "relative\ninclude\ninclude nothing/*.conf\n");
  f.write("ld.so.conf.d/a.conf", "/three\r\n");
  f.write("ld.so.conf.d/b.conf", "/four\ninclude ../ld.so.conf.d/b.conf\n");  // itself
  const auto found = linker_directories(f.path() / "ld.so.conf");
  EXPECT_EQ(found.front(), "/one");
  EXPECT_EQ(found.back(), "/two");
  EXPECT_EQ(std::ranges::count(found, "/three"), 1);
  EXPECT_GE(std::ranges::count(found, "/four"), 1);
  EXPECT_LT(found.size(), 10U) << "an endless include ends";
  EXPECT_TRUE(linker_directories(f.path() / "absent").empty());
}

}  // namespace
}  // namespace bitnet::plugin
