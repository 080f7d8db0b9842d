// What we let pass the dynamic linker reads as we do: exports, needed libraries, run path. Bounded:
// each number that either reader looks at gets a few wrong values, in files of each kind of hash
// table. tests/fuzz/plugin/elf_differential_fuzz.cpp does the same with any bytes.

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "../../fakes/loader_fixture.hpp"
#include "../../fuzz/plugin/linker_reading.hpp"

namespace bitnet::plugin {
namespace {

using test::folder;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

template <class T>
T get(const std::string& file, std::size_t at) {
  T out;
  std::memcpy(&out, file.data() + at, sizeof out);
  return out;
}

// Places of numbers, and how many bytes they have.
struct place {
  std::size_t at, bytes;
};

std::vector<Elf64_Phdr> segments_of(const std::string& file) {
  const auto head = get<Elf64_Ehdr>(file, 0);
  std::vector<Elf64_Phdr> out;
  for (std::size_t i = 0; i < head.e_phnum; ++i)
    out.push_back(get<Elf64_Phdr>(file, head.e_phoff + i * sizeof(Elf64_Phdr)));
  return out;
}

std::size_t offset_of(const std::string& file, uint64_t address) {
  for (const Elf64_Phdr& p : segments_of(file))
    if (p.p_type == PT_LOAD && address >= p.p_vaddr && address - p.p_vaddr < p.p_filesz)
      return p.p_offset + (address - p.p_vaddr);
  return 0;
}

std::vector<place> places_of(const std::string& file) {
  std::vector<place> out;
  const auto head = get<Elf64_Ehdr>(file, 0);
  std::size_t at = head.e_phoff;
  for (const Elf64_Phdr& p : segments_of(file)) {
    out.push_back({at, 4});
    for (const std::size_t field : {offsetof(Elf64_Phdr, p_offset), offsetof(Elf64_Phdr, p_vaddr),
                                    offsetof(Elf64_Phdr, p_filesz), offsetof(Elf64_Phdr, p_memsz)})
      out.push_back({at + field, 8});
    at += sizeof p;
    if (p.p_type != PT_DYNAMIC) continue;
    for (std::size_t entry = p.p_offset;; entry += sizeof(Elf64_Dyn)) {
      const auto d = get<Elf64_Dyn>(file, entry);
      out.push_back({entry, 8});
      out.push_back({entry + 8, 8});
      if (d.d_tag == DT_NULL) break;
      // The first numbers of the tables: sizes, filters, buckets, chains, symbols, versions.
      if (d.d_tag == DT_HASH || d.d_tag == DT_GNU_HASH)
        for (std::size_t i = 0; i < 14; ++i)
          out.push_back({offset_of(file, d.d_un.d_ptr) + 4 * i, 4});
      if (d.d_tag == DT_VERSYM || d.d_tag == DT_VERNEED || d.d_tag == DT_VERDEF)
        for (std::size_t i = 0; i < 12; ++i)
          out.push_back({offset_of(file, d.d_un.d_ptr) + 2 * i, 2});
      if (d.d_tag == DT_SYMTAB)
        for (std::size_t i = 1; i < 8; ++i)
          for (const place field : {place{0, 4}, {4, 1}, {5, 1}, {6, 2}, {8, 8}})
            out.push_back(
                {offset_of(file, d.d_un.d_ptr) + i * sizeof(Elf64_Sym) + field.at, field.bytes});
    }
  }
  return out;
}

// What a number could be instead.
std::vector<uint64_t> values_for(uint64_t is) {
  return {0,          5,        is + 1,    is + 16, is | (uint64_t{1} << 32),
          0xfffffffd, DT_RPATH, DT_NEEDED, DT_HASH, 0x8000};
}

struct totals {
  int tried = 0, fine = 0, loaded = 0;
};

totals mutate(const std::string& file) {
  totals out;
  for (const place p : places_of(file)) {
    if (p.at + p.bytes > file.size()) continue;
    uint64_t is = 0;
    std::memcpy(&is, file.data() + p.at, p.bytes);
    for (const uint64_t value : values_for(is)) {
      std::string changed = file;
      std::memcpy(changed.data() + p.at, &value, p.bytes);
      if (changed == file) continue;
      const auto both = test::compare_readings(bytes_of(changed));
      EXPECT_EQ(both.difference, "")
          << p.bytes << " bytes at " << p.at << " changed from " << is << " to " << value;
      ++out.tried;
      out.fine += both.fine ? 1 : 0;
      out.loaded += both.loaded ? 1 : 0;
    }
  }
  return out;
}

class elf_differential : public testing::TestWithParam<const char*> {};

TEST_P(elf_differential, the_linker_reads_what_we_read) {
  const std::string file = folder::read(folder::built(GetParam()));
  const auto sound = test::compare_readings(bytes_of(file));
  EXPECT_TRUE(sound.fine && sound.loaded) << "nothing is compared where nothing is loaded";
  EXPECT_EQ(sound.difference, "");
  const totals all = mutate(file);
  EXPECT_GT(all.fine, 100) << "of " << all.tried;
  EXPECT_GT(all.loaded, 50) << "of " << all.tried;
  EXPECT_LT(all.fine, all.tried);
}

INSTANTIATE_TEST_SUITE_P(kinds, elf_differential,
                         testing::Values("good", "sysv-hash", "both-hashes", "origin-run-path"));

// The comparison sees a difference where there is one.
TEST(elf_differential, differences_are_reported_by_name) {
  const std::string file = folder::read(folder::built("good"));
  auto names = test::possible_names(bytes_of(file));
  EXPECT_TRUE(names.contains("bitnet_backend_abi0"));
  const auto theirs = test::ask_linker(bytes_of(file), names);
  ASSERT_TRUE(theirs.loaded) << theirs.error;
  EXPECT_EQ(theirs.exports, std::set<std::string>{"bitnet_backend_abi0"});
  const auto origin =
      test::ask_linker(bytes_of(folder::read(folder::built("origin-run-path"))), names);
  EXPECT_EQ(origin.run_path, std::vector<std::string>{"/proc/self/fd/private"});
  const auto needy = test::ask_linker(bytes_of(folder::read(folder::built("needy"))), names);
  EXPECT_TRUE(needy.answered && !needy.loaded);
  EXPECT_NE(needy.error.find("libfake-absent-one.so: cannot open"), std::string::npos);
}

}  // namespace
}  // namespace bitnet::plugin
