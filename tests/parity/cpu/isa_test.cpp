// Which instruction set is chosen, and that the table can be trusted to be in order.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "device.hpp"
#include "forms.hpp"
#include "primitives.hpp"

namespace bitnet::parity {
namespace {

TEST(choose_isa, takes_the_first_form_that_this_cpu_has) {
  std::string why;
  const cpu::isa_form* best = cpu::choose_isa("", why);
  ASSERT_NE(best, nullptr);
  EXPECT_TRUE(best->supported());
  for (const cpu::isa_form& form : cpu::isa_forms) {
    if (&form == best) break;
    EXPECT_FALSE(form.supported()) << form.name << " is before " << best->name;
  }
  if (const char* known = std::getenv("BITNET_EXPECTED_ISA")) {  // of an emulated processor
    EXPECT_STREQ(best->name, known);
  }
}

TEST(choose_isa, rejects_what_this_cpu_cannot_run) {
  for (const cpu::isa_form& form : cpu::isa_forms) {
    std::string why;
    const cpu::isa_form* found = cpu::choose_isa(form.name, why);
    EXPECT_EQ(found, form.supported() ? &form : nullptr) << form.name;
    EXPECT_EQ(why.empty(), form.supported()) << why;
    if (found) continue;
    EXPECT_NE(why.find("scalar"), std::string::npos) << why;
  }
}

TEST(choose_isa, passes_over_a_form_with_a_disabled_kernel) {
  std::string why;
  std::string disabled = "add.scalar,gather_rows.scalar";
  for (const cpu::isa_form& form : cpu::isa_forms) {
    if (!form.supported()) continue;
    EXPECT_EQ(cpu::choose_isa("", why, disabled), &form) << "with " << disabled;
    if (&form == &cpu::scalar_form) break;  // it is never passed over
    // Disabled with the other form that has it: that of the instruction set for few tokens.
    disabled +=
        std::string(",linear_ternary.ternary2.") + (form.both_named ? "avx512vnni+amx" : form.name);
    EXPECT_EQ(cpu::choose_isa(form.name, why, disabled), nullptr);
    EXPECT_NE(why.find("computes wrongly on this CPU"), std::string::npos) << why;
  }
}

TEST(choose_isa, passes_over_all_forms_that_share_a_disabled_kernel) {
  std::string why;
  for (const cpu::isa_form& form : cpu::isa_forms) {
    if (!form.supported() || &form == &cpu::scalar_form) continue;
    const std::string disabled = std::string("linear_dense.f16.") + form.dense.isa;
    const cpu::isa_form* left = cpu::choose_isa("", why, disabled);
    EXPECT_STRNE(left->dense.isa, form.dense.isa);
    EXPECT_EQ(cpu::choose_isa(form.name, why, disabled), nullptr);
  }
}

TEST(permitted, is_the_next_form_that_needs_no_leave_where_it_is_rejected) {
  static bool leave = true;
  cpu::isa_form forms[] = {cpu::isa_forms[0], cpu::isa_forms[0], cpu::scalar_form};
  for (cpu::isa_form& form : forms) form.ask = nullptr;
  forms[0].ask = forms[1].ask = [] { return leave; };
  EXPECT_EQ(&cpu::permitted(forms[0]), &forms[0]);
  EXPECT_STREQ(cpu::describe_device(forms[0], forms[0]).driver_version, "");
  leave = false;
  EXPECT_EQ(&cpu::permitted(forms[0]), &forms[2]);
  EXPECT_EQ(cpu::describe_device(forms[0], forms[2]).driver_version,
            std::string(forms[0].name) + " refused");
  EXPECT_STREQ(cpu::describe_device(forms[0], forms[2]).arch,
               cpu::describe_device(forms[0], forms[0]).arch);
}

#if defined(__x86_64__)
TEST(permitted, tiles_are_not_where_there_are_none) {
  EXPECT_TRUE(cpu::has_amx() || !cpu::ask_for_tiles());
}
#endif

#if defined(__x86_64__)
// A probe was given leave, the program is not: it lists the same and runs what it may. Only a form
// of two instruction sets has panels to withhold.
TEST(withhold_panels, keeps_the_list_and_chooses_none_of_them) {
  const cpu::isa_form& form = cpu::isa_forms[0];
  ASSERT_TRUE(form.both_named);
  sdk::definition given, refused;
  for (sdk::definition* d : {&given, &refused}) {
    cpu::add_primitives(form, *d);
    cpu::add_composites(form, cpu::exact_bits(form), *d);
  }
  cpu::withhold_panels(form, refused);
  const sdk::weight rows{BITNET_FORMAT_TERNARY2, 256, 32, nullptr, 64, nullptr, 0};
  const sdk::weight groups{BITNET_FORMAT_TERNARY2, 256, 32, nullptr, 64, nullptr, 64};
  uint64_t withheld = 0;
  const auto compare = [&](const auto& a, const auto& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].id, b[i].id);
      if (!a[i].id.contains('+') || a[i].id.starts_with("lm_head")) continue;
      EXPECT_TRUE(a[i].fits(rows) || a[i].fits(groups)) << a[i].id;
      EXPECT_FALSE(b[i].fits(rows) || b[i].fits(groups)) << a[i].id;
      ++withheld;
    }
  };
  compare(given.primitives, refused.primitives);
  compare(given.composites, refused.composites);
  EXPECT_EQ(withheld, 12u);
}
#endif

// What the kernel says that this CPU can do: it was asked by another way than variants.hpp asks.
std::set<std::string> flags_of_the_kernel() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}

// The flags of /proc/cpuinfo that each form needs.
const std::map<std::string, std::set<std::string>> needed_flags = {
    {"amx", {"avx512f", "avx512bw", "avx512vl", "avx512_vnni", "f16c", "amx_tile", "amx_int8"}},
    {"avx512vnni", {"avx512f", "avx512bw", "avx512vl", "avx512_vnni", "f16c"}},
    {"avx512", {"avx512f", "avx512bw", "avx512vl", "f16c"}},
    {"avxvnni", {"avx2", "f16c", "avx_vnni"}},
    {"avx2", {"avx2", "f16c"}},
    {"sse41", {"sse4_1"}},
    {"neon-i8mm", {"asimd", "asimddp", "i8mm"}},
    {"neon-dotprod", {"asimd", "asimddp"}},
    {"neon", {"asimd"}},
    {"scalar", {}},
};

// Tests leave out what is not supported: a form that is wrongly left out would be tested
// nowhere, and one that is wrongly taken would end in an illegal instruction.
TEST(isa_forms, are_supported_where_the_kernel_says_so) {
  for (const cpu::isa_form& form : cpu::isa_forms) EXPECT_TRUE(needed_flags.contains(form.name));
  if (emulated()) {  // whose /proc/cpuinfo is the real one's
    EXPECT_NE(std::getenv("BITNET_EXPECTED_ISA"), nullptr) << "nothing says what to expect";
    return;
  }
  const std::set<std::string> flags = flags_of_the_kernel();
  ASSERT_FALSE(flags.empty()) << "/proc/cpuinfo names no flags";
  std::set<std::string> expected, tested;
  for (const cpu::isa_form& form : cpu::isa_forms)
    if (std::ranges::includes(flags, needed_flags.at(form.name))) expected.insert(form.name);
  for (const cpu::isa_form& form : cpu::isa_forms)
    if (form.supported()) tested.insert(form.name);
  EXPECT_EQ(tested, expected);
}

// Says what is left to the emulators of CMakeLists.txt, or to another machine.
TEST(isa_forms, are_all_tested) {
  const std::set<std::string> flags = flags_of_the_kernel();
  std::string missing;
  for (const cpu::isa_form& form : cpu::isa_forms)
    if (!std::ranges::includes(flags, needed_flags.at(form.name)))
      missing += (missing.empty() ? "" : ", ") + std::string(form.name);
  if (!missing.empty() && !emulated()) GTEST_SKIP() << "this CPU has no " << missing;
}

TEST(isa_forms, end_with_the_scalar_form_and_have_different_names) {
  std::set<std::string> names;
  for (const cpu::isa_form& form : cpu::isa_forms)
    EXPECT_TRUE(names.insert(form.name).second) << form.name;
  EXPECT_STREQ(cpu::scalar_form.name, "scalar");
  EXPECT_TRUE(cpu::scalar_form.supported());
}

}  // namespace
}  // namespace bitnet::parity
