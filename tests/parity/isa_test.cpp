// Which instruction set is chosen, and that the table can be trusted to be in order.

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "device.hpp"
#include "forms.hpp"

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

TEST(choose_isa, refuses_what_this_cpu_cannot_run) {
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
    disabled += std::string(",linear_ternary.ternary2.") + form.name;
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

TEST(isa_forms, are_all_tested) {
  std::string missing;
  for (const cpu::isa_form& form : cpu::isa_forms)
    if (!form.supported()) missing += (missing.empty() ? "" : ", ") + std::string(form.name);
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
