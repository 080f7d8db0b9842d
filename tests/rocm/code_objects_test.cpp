// The archive of code objects: each target gets code that says it is for that target, and of a
// damaged archive there is none.

#include "code_objects.hpp"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace bitnet::rocm::test {
namespace {

Elf64_Ehdr header_of(const std::vector<uint8_t>& code) {
  Elf64_Ehdr out{};
  if (code.size() >= sizeof out) std::memcpy(&out, code.data(), sizeof out);
  return out;
}
bool has(const std::vector<uint8_t>& code, const std::string& text) {
  return std::string(code.begin(), code.end()).find(text) != std::string::npos;
}

// Numbers of machines as LLVM's "User Guide for AMDGPU Backend" has them.
TEST(code_objects, say_which_target_they_are_for) {
  const struct {
    const char* target;
    unsigned int machine;
  } cases[] = {{"gfx900", 0x2c},  {"gfx90c", 0x32},  {"gfx906", 0x2f},  {"gfx90a", 0x3f},
               {"gfx1010", 0x33}, {"gfx1012", 0x35}, {"gfx1030", 0x36}, {"gfx1036", 0x45},
               {"gfx1100", 0x41}, {"gfx1101", 0x46}, {"gfx1102", 0x47}, {"gfx1103", 0x44},
               {"gfx1200", 0x48}, {"gfx1201", 0x4e}};
  for (const auto& c : cases) {
    if (!has_code(c.target)) continue;  // a build for some targets only
    for (const char* part :
         {"attention", "dense", "elements", "head", "rows", "states", "ternary", "ternary_dots"}) {
      const std::vector<uint8_t> code = code_object(c.target, part);
      const Elf64_Ehdr header = header_of(code);
      EXPECT_EQ(header.e_machine, 224) << c.target << " " << part;
      EXPECT_EQ(header.e_flags & 0xffu, c.machine) << c.target << " " << part;
      EXPECT_TRUE(has(code, std::string("amdgcn-amd-amdhsa--") + c.target)) << part;
    }
  }
  EXPECT_TRUE(has(code_object("gfx1030", "rows"), "rms_norm.kd"));
}

TEST(code_objects, have_matrix_cores_where_the_target_does) {
  const struct {
    const char* target;
    bool has;
  } cases[] = {{"gfx906", false}, {"gfx908", true},   {"gfx90a", true},   {"gfx90c", false},
               {"gfx940", true},  {"gfx1010", false}, {"gfx1030", false}, {"gfx1100", true},
               {"gfx1103", true}, {"gfx1200", true},  {"gfx1201", true}};
  for (const auto& c : cases) {
    if (!has_code(c.target)) continue;  // a build for some targets only
    EXPECT_EQ(has_code(c.target, "ternary_matrix"), c.has) << c.target;
    const std::vector<uint8_t> code = code_object(c.target, "ternary_matrix");
    EXPECT_EQ(has(code, "linear_ternary_matrix_factored.kd"), c.has) << c.target;
  }
}

TEST(code_objects, have_attention_of_one_token_where_a_wave_has_the_registers) {
  for (const auto& [target, has_it] : {std::pair{"gfx802", false},
                                       {"gfx805", false},
                                       {"gfx801", true},
                                       {"gfx90a", true},
                                       {"gfx1030", true},
                                       {"gfx1100", true},
                                       {"gfx1200", true}}) {
    if (!has_code(target)) continue;  // a build for some targets only
    EXPECT_EQ(has_code(target, "attention_token"), has_it) << target;
    EXPECT_EQ(has(code_object(target, "attention_token"), "attn_token_8.kd"), has_it) << target;
  }
}

TEST(code_objects, of_others_there_are_none) {
  EXPECT_TRUE(code_object("gfx1030", "nothing").empty());
  EXPECT_TRUE(code_object("gfx701", "rows").empty());
}

// As pack.py writes it.
struct entry {
  char target[16], base[16], part[24];
  uint32_t machine, unused;
  uint64_t offset, bytes;
};
struct small_archive {
  char magic[8] = "BNROCM2";
  uint32_t entries = 2, unused = 0;
  entry of[2] = {{"gfx1030", "gfx1030", "rows", 0x36, 0, offsetof(small_archive, code), bytes},
                 {"gfx1031", "gfx1030", "rows", 0x37, 0, offsetof(small_archive, code), bytes}};
  struct {
    Elf64_Ehdr header{};
    char note[32] = "..amdgcn-amd-amdhsa--gfx1030";
  } code;
  static constexpr uint64_t bytes = sizeof code;

  small_archive() {
    std::memcpy(code.header.e_ident, ELFMAG, SELFMAG);
    code.header.e_machine = EM_AMDGPU;
    code.header.e_flags = 0x536;
  }
  std::vector<uint8_t> read(const char* target, size_t length = sizeof(small_archive)) const {
    // A copy of that length, so that a sanitizer sees a read past it.
    const auto* begin = reinterpret_cast<const uint8_t*>(this);
    return code_object(std::vector<uint8_t>(begin, begin + length), target, "rows");
  }
};

TEST(code_objects, a_family_shares_code) {
  const small_archive whole;
  const std::vector<uint8_t> own = whole.read("gfx1030"), other = whole.read("gfx1031");
  ASSERT_EQ(own.size(), whole.bytes);
  EXPECT_EQ(std::memcmp(own.data(), &whole.code, own.size()), 0);
  EXPECT_EQ(header_of(other).e_flags, 0x537u);
  EXPECT_TRUE(has(other, "amdhsa--gfx1031"));
  EXPECT_FALSE(has(other, "gfx1030"));
}

TEST(code_objects, of_an_archive_that_is_cut_off_there_are_none) {
  for (size_t n = 0; n < sizeof(small_archive); ++n)
    for (const char* target : {"gfx1030", "gfx1031"})
      ASSERT_TRUE(small_archive().read(target, n).empty()) << n << " bytes, " << target;
}

TEST(code_objects, of_a_damaged_archive_there_are_none) {
  const struct {
    const char* why;
    void (*damage)(small_archive&);
  } cases[] = {
      {"another magic number", [](small_archive& a) { a.magic[6] = '1'; }},
      {"no entries", [](small_archive& a) { a.entries = 0; }},
      {"more entries than bytes", [](small_archive& a) { a.entries = 0xffffffffu; }},
      {"code behind the end", [](small_archive& a) { a.of[1].offset = sizeof a + 1; }},
      {"an offset that wraps", [](small_archive& a) { a.of[1].offset = ~uint64_t{0} - 3; }},
      {"code over the end", [](small_archive& a) { ++a.of[1].bytes; }},
      {"a length that wraps", [](small_archive& a) { a.of[1].bytes = ~uint64_t{0} - 3; }},
      {"no code", [](small_archive& a) { a.of[1].bytes = 0; }},
      {"a part of a header", [](small_archive& a) { a.of[1].bytes = sizeof(Elf64_Ehdr) - 1; }},
      {"no ELF file", [](small_archive& a) { a.code.header.e_ident[EI_MAG1] = 'e'; }},
      {"of another processor", [](small_archive& a) { a.code.header.e_machine = EM_X86_64; }},
      // Names are written over each other.
      {"a base of another length", [](small_archive& a) { std::strcpy(a.of[1].base, "gfx90a"); }},
      {"a base without an end", [](small_archive& a) { std::memset(a.of[1].base, 'f', 16); }},
  };
  for (const auto& c : cases) {
    small_archive damaged;
    c.damage(damaged);
    EXPECT_TRUE(damaged.read("gfx1031").empty()) << c.why;
  }
}

}  // namespace
}  // namespace bitnet::rocm::test
