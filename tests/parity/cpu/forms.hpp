#pragma once
// The rows of variants.hpp as the parameter of tests.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/variants.hpp"

namespace bitnet::parity {

using each_form = testing::TestWithParam<const cpu::isa_form*>;

// Those that this CPU can run and this process may; isa_test.cpp says which it cannot.
inline std::vector<const cpu::isa_form*> all_forms() {
  std::vector<const cpu::isa_form*> out;
  for (const cpu::isa_form& form : cpu::isa_forms)
    if (form.supported() && (!form.ask || form.ask())) out.push_back(&form);
  return out;
}

// Optional kernels of a form; a form lacks those that its row of variants.hpp leaves out.
constexpr bool has_panel(const cpu::isa_form& form) {
  return form.panel.run != nullptr;
}
constexpr bool has_tables(const cpu::isa_form& form) {
  return form.tables.run != nullptr;
}
constexpr bool has_scores(const cpu::isa_form& form) {
  return form.attention.scores != nullptr && form.attention.turn_keys != nullptr;
}
constexpr bool has_linear_i6(const cpu::isa_form& form) {
  return form.linear_i6.run != nullptr;
}
constexpr bool has_kernels_of_two_sets(const cpu::isa_form& form) {
  return form.both_named;
}
#if defined(__x86_64__)
static_assert(std::ranges::any_of(cpu::isa_forms, has_tables));
static_assert(std::ranges::any_of(cpu::isa_forms, has_kernels_of_two_sets));
#endif
#if defined(__x86_64__) || defined(__aarch64__)
static_assert(std::ranges::any_of(cpu::isa_forms, has_panel));
static_assert(std::ranges::any_of(cpu::isa_forms, has_scores));
#endif

// The parameters of a suite whose tests are of an optional kernel. A processor may have no such
// form: the suite then says GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST.
inline std::vector<const cpu::isa_form*> those_with(bool (*has)(const cpu::isa_form&),
                                                    std::vector<const cpu::isa_form*> forms) {
  std::erase_if(forms, [&](const cpu::isa_form* form) { return !has(*form); });
  return forms;
}

// Names of tests have letters, digits and '_' only.
inline std::string test_name(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

inline std::string form_name(const testing::TestParamInfo<const cpu::isa_form*>& info) {
  return test_name(info.param->name);
}

// Whether the CPU is an emulator's, where what counts is that everything runs, not how often.
inline bool emulated() {
  return std::getenv("QEMU_CPU") != nullptr;
}

// The same of a sanitizer.
inline bool slow() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return true;
#else
  return emulated();
#endif
#else
  return emulated();
#endif
}

}  // namespace bitnet::parity
