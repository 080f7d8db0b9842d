// The archive of code objects: what DEFLATE packed comes out as it was, and each target gets code
// that says it is for that target.

#include "code_objects.hpp"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "inflate.hpp"

namespace bitnet::rocm::test {
namespace {

std::vector<uint8_t> bytes_of(const char* hex) {
  std::vector<uint8_t> out;
  for (const char* at = hex; at[0] && at[1]; at += 2)
    out.push_back(static_cast<uint8_t>(std::stoi(std::string(at, 2), nullptr, 16)));
  return out;
}

std::string squares() {
  std::string out;
  for (int i = 0; i < 200; ++i) out += std::to_string(i * i % 97) + " ";
  return out;
}

// By zlib 1.2.13, with windows of -15 bits.
TEST(inflate, of_each_kind_of_block) {
  const struct {
    const char *why, *packed;
    std::string is;
  } cases[] = {
      {"nothing", "0300", ""},
      {"stored", "010500faff68656c6c6f", "hello"},
      {"fixed codes, and a copy that overlaps itself", "4b4c1c05c4822400",
       std::string(300, 'a') + 'b'},
      {"codes of its own",
       "ed90098d45210c45ad1c09af2d14f06f6c0e18f806262184e5aefd080687687252cd38f46007450ec6622549059"
       "d1c"
       "11c5fa88641647b45c053c0fe6c7a627b9d89b39c864aba6d42482ddb48c4d25219253ecc93a2cf77aeb5d7df4a"
       "b2f"
       "48a8046992e30929a7a8d21a68a39996fb9a1be1068917aa6f40631ad6c806ef57226f1d4b59ad6e49ab5ab85e7"
       "947"
       "709c45f0fdcfe4c74cfe00",
       squares()},
  };
  for (const auto& c : cases) {
    std::vector<uint8_t> out;
    ASSERT_TRUE(inflate(bytes_of(c.packed), c.is.size(), out)) << c.why;
    EXPECT_EQ(std::string(out.begin(), out.end()), c.is) << c.why;
  }
}

TEST(inflate, what_is_no_stream_is_refused) {
  const std::vector<uint8_t> stored = bytes_of("010500faff68656c6c6f");
  std::vector<uint8_t> out;
  for (size_t n = 0; n < stored.size(); ++n)
    EXPECT_FALSE(inflate(std::span(stored).first(n), 5, out)) << n << " bytes of it";
  EXPECT_FALSE(inflate(stored, 4, out)) << "more comes out";
  EXPECT_FALSE(inflate(stored, 6, out)) << "less comes out";
  EXPECT_FALSE(inflate(bytes_of("07"), 0, out)) << "no kind of block";
  EXPECT_FALSE(inflate(bytes_of("010500fbff68656c6c6f"), 5, out)) << "a length and not its inverse";
}

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
               {"gfx1100", 0x41}, {"gfx1101", 0x46}, {"gfx1102", 0x47}, {"gfx1103", 0x44}};
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
  } cases[] = {{"gfx906", false},  {"gfx908", true},  {"gfx90a", true},
               {"gfx90c", false},  {"gfx940", true},  {"gfx1010", false},
               {"gfx1030", false}, {"gfx1100", true}, {"gfx1103", true}};
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
                                       {"gfx1100", true}}) {
    if (!has_code(target)) continue;  // a build for some targets only
    EXPECT_EQ(has_code(target, "attention_token"), has_it) << target;
    EXPECT_EQ(has(code_object(target, "attention_token"), "attn_token_8.kd"), has_it) << target;
  }
}

TEST(code_objects, of_others_there_are_none) {
  EXPECT_TRUE(code_object("gfx1030", "nothing").empty());
  EXPECT_TRUE(code_object("gfx701", "rows").empty());
  EXPECT_TRUE(code_object({}, "gfx1030", "rows").empty());
  const std::vector<uint8_t> noise(4096, 0x5a);
  EXPECT_TRUE(code_object(noise, "gfx1030", "rows").empty());
}

}  // namespace
}  // namespace bitnet::rocm::test
