// The report on a shared object: groups of names, formats, and the identity of our plugins. What
// compilers and linkers make is judged by nm and readelf in tests/cli/test_analyze_library.py.

#include "plugin/analysis/analysis.hpp"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "../../fakes/loader_fixture.hpp"
#include "plugin/inspection/elf_image.hpp"

namespace bitnet::plugin {
namespace {

using test::folder;

std::span<const std::byte> analysed_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

struct group_case {
  const char* name;
  symbol_group group;
  const char* why;
};

TEST(symbol_groups, the_first_rule_that_fits) {
  for (const auto& [name, group, why] : std::vector<group_case>{
           {"bitnet_model_open", symbol_group::bitnet, "prefix"},
           {"my_bitnet_model", symbol_group::none, "no prefix"},
           {"llama_decode", symbol_group::llama, "prefix"},
           {"_Z12llama_decodev", symbol_group::none, "a mangled name begins otherwise"},
           {"llama_cuda_init", symbol_group::llama, "the earlier rule"},
           {"ggml_backend_cuda_init", symbol_group::accelerator, "contains it"},
           {"CUDA_init", symbol_group::none, "case counts"},
           {"x__global__y", symbol_group::accelerator, "contains it"},
           {"quants_i2_s_cuda", symbol_group::accelerator, "the earlier rule"},
           {"dequantize_row_i2_s", symbol_group::quantization, "i2_s"},
           {"iquants", symbol_group::quantization, "quants"},
           {"quantize_row", symbol_group::none, "not quants"},
           {"", symbol_group::none, "no name"},
       })
    EXPECT_EQ(group_of(name), group) << name << ": " << why;
}

TEST(symbol_groups, formats_are_words_of_their_own) {
  const auto formats = [](const char* name) {
    const named_symbol one{name, true, true};
    return formats_in({&one, 1});
  };
  using list = std::vector<std::string>;
  EXPECT_EQ(formats("quantize_i2_s"), list{"i2_s"});
  EXPECT_EQ(formats("dequantize_row_tq1_0"), list{"tq1_0"}) << "and not q1_0";
  EXPECT_EQ(formats("ggml_vec_dot_iq2_bn_q8_K64"), list{"iq2_bn"}) << "Q8_K64 is no Q8_K";
  EXPECT_EQ(formats("ggml_vec_dot_q4_0_q8_0"), (list{"q4_0", "q8_0"}));
  EXPECT_EQ(formats("quantize_row_q4_K"), list{"q4_k"});
  EXPECT_EQ(formats("_Z18quantize_row_tl1xxPKfPvl"), list{"tl1"}) << "of a mangled name";
  EXPECT_EQ(formats("quantize_tl10"), list{});
  EXPECT_EQ(formats("tl1_of_something_else"), list{}) << "no word of a product or of packing";
  EXPECT_EQ(formats("xi2_sy"), list{});
}

TEST(symbol_groups, names_are_limited_and_counts_are_not) {
  const std::vector<named_symbol> names = {{"llama_a", true, true},
                                           {"llama_b", false, false},
                                           {"llama_c", true, false},
                                           {"llama_\x1b[2J", true, false}};
  const auto groups = group_symbols(names, 2);
  const grouped_symbols& llama = groups[static_cast<std::size_t>(symbol_group::llama)];
  EXPECT_EQ(llama.count, 4U);
  EXPECT_EQ(llama.defined, 3U);
  EXPECT_EQ(llama.names, (std::vector<std::string>{"llama_a", "llama_b"}));
  const auto last = group_symbols(std::span(names).last(1), 2);
  EXPECT_EQ(last[static_cast<std::size_t>(symbol_group::llama)].names,
            std::vector<std::string>{"llama_\\x1b[2J"});
}

TEST(analysis, reads_our_plugins_as_the_loader_does) {
  const folder f;
  for (const char* name : {"good", "sysv-hash", "both-hashes"}) {
    const auto found = analyze_file(f.fake(name), 10);
    ASSERT_TRUE(found) << found.error().reason;
    ASSERT_TRUE(found->note);
    EXPECT_EQ(found->note->license, "CC0-1.0");
    EXPECT_EQ(found->note->abi, BITNET_ABI_RANGE);
    EXPECT_EQ(found->entry, "bitnet_backend_abi0");
    EXPECT_EQ(found->exported, 1U);
    EXPECT_TRUE(found->for_this_machine);
    EXPECT_TRUE(found->problems.empty()) << name << ": " << found->problems.front().reason;
  }
}

// Both readers of ELF files find the same names, versions and libraries in files of each kind.
TEST(analysis, the_lenient_reader_reads_what_the_strict_one_reads) {
  for (const char* name : {"good", "sysv-hash", "both-hashes", "origin-run-path", "needy"}) {
    const std::string file = folder::read(folder::built(name));
    const auto strict = elf_image::open(analysed_bytes(file));
    const auto lenient = any_elf::open(analysed_bytes(file));
    ASSERT_TRUE(strict && lenient) << name;
    EXPECT_EQ(strict->dynamic_strings(DT_NEEDED), lenient->dynamic_strings(DT_NEEDED)) << name;
    std::vector<std::string_view> theirs;
    for (const auto& one : strict->needed_versions())
      if (!one.weak) theirs.push_back(one.version);
    EXPECT_EQ(theirs, lenient->needed_versions()) << name;
    const auto symbols = strict->symbols();
    ASSERT_TRUE(symbols) << name;
    std::vector<std::string_view> wanted;
    for (const auto& one : *symbols)
      if (!one.name.empty()) wanted.push_back(one.name);
    std::vector<std::string_view> found;
    for (const auto& one : lenient->dynamic_symbols()) found.push_back(one.name);
    EXPECT_EQ(wanted, found) << name;
    EXPECT_EQ(strict->notes().size(), lenient->notes().size()) << name;
  }
}

TEST(analysis, says_what_the_loader_would_reject) {
  const folder f;
  const auto code_of_problem = [&](const char* name) {
    const auto found = analyze_file(f.fake(name), 0);
    if (!found) return std::string("no library: ") + found.error().reason;
    return found->problems.empty() ? std::string("none")
                                   : std::string(code_text(found->problems.front().code));
  };
  EXPECT_EQ(code_of_problem("needy"), "BN-I-DEPENDENCY");
  EXPECT_EQ(code_of_problem("other-major"), "BN-A-MAJOR");
}

TEST(analysis, a_note_that_is_damaged_is_a_problem) {
  std::string file = folder::read(folder::built("good"));
  const std::size_t at = file.find("schema=1");
  ASSERT_NE(at, std::string::npos);
  file.replace(at, 8, "schema=9");
  const auto found = analyze(analysed_bytes(file), 0);
  ASSERT_TRUE(found) << found.error().reason;
  EXPECT_FALSE(found->note);
  ASSERT_FALSE(found->problems.empty());
  EXPECT_EQ(found->problems.front().code, code::inspect_note);
}

TEST(analysis, other_files_are_no_libraries) {
  EXPECT_FALSE(analyze(analysed_bytes("!<arch>\n"), 0));
  const auto missing = analyze_file("/nonexistent/lib.so", 0);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, code::trust_missing);
  const auto folder_itself = analyze_file("/", 0);
  ASSERT_FALSE(folder_itself);
  EXPECT_EQ(folder_itself.error().code, code::trust_kind);
}

}  // namespace
}  // namespace bitnet::plugin
