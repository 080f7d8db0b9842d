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
