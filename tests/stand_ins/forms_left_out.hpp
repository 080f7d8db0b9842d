#pragma once
// Tests of forms.hpp of gpu-common that each backend with forms has on its stand-in. The stand-in
// makes a kernel wrong, keeps it from ending, or loses the device by it.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <sstream>
#include <string>

#include "gpu-common/forms.hpp"
#include "in_a_process.hpp"

namespace bitnet::test {

struct formed_backend {
  // Opens the platform, or says why there is none.
  std::function<std::unique_ptr<gpu::platform>(const gpu::form_use&, const gpu::log_function&,
                                               std::string& why)>
      open_platform;
  std::string settings = {};  // of the stand-in
  uint32_t index = 0;
  std::string device, api, version;
  gpu::forms all, listed;  // of the backend, and those that the device has

  std::string with(const std::string& setting) const {
    return settings.empty() || setting.empty() ? settings + setting : settings + "," + setting;
  }
  // Lines of the log in brackets, and "opened" or the reason; then the forms that are listed.
  struct answer {
    std::string words;
    gpu::forms listed;
  };
  answer opened(const std::string& setting, const gpu::form_use& use = {}) const {
    const std::string all_words = said_in_a_process(with(setting).c_str(), [&] {
      std::string out, why;
      const auto platform = open_platform(
          use, [&out](uint32_t, const std::string& line) { out += "[" + line + "] "; }, why);
      if (!platform) return out + why;
      bitnet_error error{};
      error.struct_size = sizeof error;
      std::unique_ptr<gpu::device> made;
      const bitnet_status s = platform->open(index, made, {&error, "test"});
      out += s == BITNET_OK ? "opened" : std::to_string(s) + ": " + error.message;
      for (const gpu::kernel_alternative& one : platform->alternatives(index))
        out += "\n" + one.name;
      return out;
    });
    answer out;
    std::istringstream lines(all_words);
    std::getline(lines, out.words);
    for (std::string name; std::getline(lines, name);) out.listed.push_back(name);
    return out;
  }

  gpu::forms without(const std::string& one) const {
    gpu::forms out = listed;
    std::erase(out, one);
    return out;
  }
  std::string warning(const std::string& form, const char* what) const {
    return "[" + device + ": " + form + "." + api + " " + what +
           ", and is not used; report it with " + version + "] ";
  }
};

// Each form that another kernel can stand in for is compared, and the log names what differs. A
// form that the device does not have is neither compared nor listed.
inline void expect_wrong_forms_left_out(const formed_backend& backend) {
  for (const std::string& form : backend.all) {
    const auto out = backend.opened("wrong=" + form);
    const bool has = gpu::has(backend.listed, form);
    constexpr const char* what = "has other bits than the kernel that it stands in for";
    EXPECT_EQ(out.words, (has ? backend.warning(form, what) : "") + "opened");
    EXPECT_EQ(out.listed, backend.without(form));
  }
}
// A form that runs on, or loses the device, ends the check in bounded time: the device does not
// open, and the form is no longer listed.
inline void expect_form_ends_check(const formed_backend& backend, const std::string& form,
                                   const char* setting, const char* what, bitnet_status status) {
  gpu::form_use use;
  use.patience_ns = 300'000'000;
  const auto out = backend.opened("at_once=1," + std::string(setting) + "=" + form, use);
  EXPECT_TRUE(out.words.starts_with(backend.warning(form, what) + std::to_string(status) + ": "))
      << out.words;
  EXPECT_EQ(out.listed, backend.without(form));
}
inline void expect_hanging_forms_left_out(const formed_backend& backend) {
  for (const std::string& form : backend.listed)
    expect_form_ends_check(backend, form, "hangs", "does not end", BITNET_TIMEOUT);
}
inline void expect_losing_forms_left_out(const formed_backend& backend) {
  for (const std::string& form : backend.listed)
    expect_form_ends_check(backend, form, "loses", "loses the device", BITNET_DEVICE_LOST);
}
// A process that a probe served computes with what the probe left, and compares nothing.
inline void expect_nothing_compared_behind_a_probe(const formed_backend& backend) {
  const std::string off = backend.listed.back();
  gpu::form_use use;
  use.checks = false;
  use.off = {off};
  for (const std::string& form : backend.listed)
    for (const char* setting : {"wrong=", "hangs=", "loses="}) {
      const auto out = backend.opened(setting + form, use);
      EXPECT_EQ(out.words, "opened");
      EXPECT_EQ(out.listed, backend.without(off));
    }
}

}  // namespace bitnet::test
