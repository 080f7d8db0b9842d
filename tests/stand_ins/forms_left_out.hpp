#pragma once
// Tests of forms.hpp of gpu-common that each backend with forms has on its stand-in. The stand-in
// makes a kernel wrong, keeps it from ending, or loses the device by it.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gpu-common/forms/form_check.hpp"
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
  gpu::forms all, listed;   // of the backend, and those that the device has
  gpu::forms by_host = {};  // of `all`, those whose results the host computes
  // The function of a form, as the stand-in names it.
  std::function<std::string(const std::string& form)> function_of = [](const std::string& form) {
    return form;
  };
  gpu::forms alone = {};  // of `all`, those that no kernel stands in for

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
  // Those of `listed` with the same function, in the order of their trials.
  gpu::forms same_function(const std::string& form) const {
    gpu::forms out;
    for (const std::string& other : listed)
      if (function_of(other) == function_of(form)) out.push_back(other);
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
    const auto out = backend.opened("wrong=" + backend.function_of(form));
    std::string warnings;
    gpu::forms left = backend.listed;
    for (const std::string& one : backend.same_function(form)) {
      warnings +=
          backend.warning(one, gpu::has(backend.by_host, one)
                                   ? "has other bits than the host computes"
                                   : "has other bits than the kernel that it stands in for");
      std::erase(left, one);
    }
    EXPECT_EQ(out.words, warnings + "opened");
    EXPECT_EQ(out.listed, left);
  }
}
// A form that runs on, or loses the device, ends the check in bounded time: the device does not
// open, and the form is no longer listed.
inline void expect_form_ends_check(const formed_backend& backend, const std::string& form,
                                   const char* setting, const char* what, bitnet_status status) {
  gpu::form_use use;
  use.patience_ns = 300'000'000;
  const auto out =
      backend.opened("at_once=1," + std::string(setting) + "=" + backend.function_of(form), use);
  const std::string first = backend.same_function(form).front();  // it ends the check
  EXPECT_TRUE(out.words.starts_with(backend.warning(first, what) + std::to_string(status) + ": "))
      << out.words;
  EXPECT_EQ(out.listed, backend.without(first));
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
      const auto out = backend.opened(setting + backend.function_of(form), use);
      EXPECT_EQ(out.words, "opened");
      EXPECT_EQ(out.listed, backend.without(off));
    }
}

// Runs a trial by the kernel that the device makes of its specification.
inline bitnet_status run_trial(gpu::device& on, const gpu::trial& of, const sdk::reporter& report) {
  std::unique_ptr<gpu::kernel> run;
  if (bitnet_status s = on.make_kernel(of.spec, run, report)) return s;
  std::vector<std::unique_ptr<gpu::buffer>> memory;
  gpu::command one;
  one.run = run.get();
  one.params = of.params;
  one.groups_x = of.groups_x;
  one.groups_y = of.groups_y;
  for (const std::vector<uint32_t>& words : of.memory) {
    auto& to = memory.emplace_back();
    const uint64_t bytes = 4 * words.size();
    if (bitnet_status s = on.allocate(bytes, gpu::memory_place::device, to, report)) return s;
    if (bitnet_status s = on.upload(*to, 0, words.data(), bytes, report)) return s;
    one.bindings.push_back({to.get(), 0, bytes});
  }
  std::unique_ptr<gpu::recording> recorded;
  std::unique_ptr<gpu::queue> queue;
  if (bitnet_status s = on.record({&one, 1}, false, recorded, report)) return s;
  if (bitnet_status s = on.make_queue(queue, report)) return s;
  if (bitnet_status s = queue->submit(*recorded, 1, report)) return s;
  return queue->wait(1, UINT64_MAX, report);
}
// The form computes its trials where all others are off, and none where it is off itself. It loses
// the device where it runs. Without a form that no kernel stands in for there is no kernel.
inline void expect_forms_off_do_not_run(const formed_backend& backend,
                                        const std::vector<gpu::form_trial>& trials) {
  const auto status_of = [&](const gpu::form_trial& trial, const char* form, gpu::forms off) {
    const std::string setting = backend.with("at_once=1,loses=" + backend.function_of(form));
    return said_in_a_process(setting.c_str(), [&] {
      gpu::form_use use;
      use.checks = false;
      use.off = std::move(off);
      std::string why;
      const auto platform = backend.open_platform(use, [](uint32_t, const std::string&) {}, why);
      bitnet_error error{};
      error.struct_size = sizeof error;
      const sdk::reporter report(&error, "test");
      std::unique_ptr<gpu::device> made;
      if (!platform || platform->open(backend.index, made, report) != BITNET_OK) return why;
      return std::to_string(run_trial(*made, trial.of, report));
    });
  };
  for (const gpu::form_trial& trial : trials)
    for (const char* form : trial.forms) {
      if (!gpu::has(backend.listed, form)) continue;
      SCOPED_TRACE(form);
      gpu::forms others = backend.all;
      std::erase(others, form);
      EXPECT_EQ(status_of(trial, form, others), std::to_string(BITNET_DEVICE_LOST));
      EXPECT_EQ(status_of(trial, form, {form}),
                std::to_string(gpu::has(backend.alone, form) ? BITNET_UNSUPPORTED : BITNET_OK));
    }
}

}  // namespace bitnet::test
