#pragma once
// Runs one kernel on the first OpenCL device, on data that lies between guards.

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bitnet/sdk/formats.hpp"
#include "platform.hpp"

namespace bitnet::opencl::test {

using gpu::kernel_id;
using gpu::kernel_spec;

// One binding. What the kernel leaves there replaces `words`.
struct argument {
  std::vector<uint32_t> words;
  bool written = false;
};

template <class T>
argument input(const std::vector<T>& values) {
  argument out;
  out.words.resize((values.size() * sizeof(T) + 3) / 4);
  if (!values.empty()) std::memcpy(out.words.data(), values.data(), values.size() * sizeof(T));
  return out;
}
inline argument output(uint64_t words) {
  return {std::vector<uint32_t>(words, 0xcdcdcdcdu), true};
}
template <class T>
std::vector<T> values_of(const argument& a) {
  std::vector<T> out(a.words.size() * 4 / sizeof(T));
  std::memcpy(out.data(), a.words.data(), out.size() * sizeof(T));
  return out;
}

// What a device can do more than OpenCL 1.2 promises; without that; with a dot product of bytes,
// which is defined here where the driver has none.
enum class form : uint8_t { as_reported, modest, dot_product };

class bench {
 public:
  // The same device for all tests; nullptr, and `why` is why, if there is none.
  static bench* of(form f, std::string& why) {
    static auto* ends = testing::AddGlobalTestEnvironment(new end_of_devices);
    (void)ends;
    auto& [made, reasons] = all();
    if (!made.contains(f)) {
      auto one = std::unique_ptr<bench>(new bench);
      change_traits change = nullptr;
      if (f == form::modest)
        change = [](device_traits& t) { t.doubles = t.exact_division = t.dot_product = false; };
      if (f == form::dot_product)
        change = [](device_traits& t) {
          if (!t.dot_product)
            t.prelude =
                "int dot_4x8packed_ss_int(uint a, uint b) {\n"
                "  const int4 p = convert_int4(as_char4(a)) * convert_int4(as_char4(b));\n"
                "  return p.x + p.y + p.z + p.w;\n"
                "}\n";
          t.dot_product = true;
        };
      one->platform_ = open_platform(usual_loader,
                                     {"",
                                      [](uint32_t level, const std::string& message) {
                                        warnings() += level <= BITNET_LOG_WARN ? 1 : 0;
                                        std::fprintf(stderr, "log: %s\n", message.c_str());
                                      }},
                                     reasons[f], change);
      if (one->platform_) {
        one->must(one->platform_->open(0, one->device_, one->report()));
        one->must(one->device_->make_queue(one->queue_, one->report()));
      } else {
        one.reset();
      }
      made[f] = std::move(one);
    }
    why = reasons[f];
    return made[f].get();
  }

  // What was logged that is not as it should be: a form that the driver refuses, for one.
  static int& warnings() {
    static int count = 0;
    return count;
  }

  gpu::device& device() { return *device_; }
  const sdk::reporter& report() const { return report_; }
  std::string message() const { return error_.message; }

  // Bindings in the order of kernels.hpp; the header comes first.
  template <class Params>
  void run(const kernel_spec& spec, std::vector<argument*> bound, const Params& params,
           uint32_t groups_x, uint32_t groups_y) {
    static_assert(sizeof(Params) % 4 == 0);
    constexpr uint64_t guard = 16;  // words on both sides
    std::vector<std::unique_ptr<gpu::buffer>> buffers;
    gpu::command c;
    c.run = &kernel_of(spec);
    for (argument* a : bound) {
      std::vector<uint32_t> memory(guard, 0xa5a5a5a5u);
      memory.insert(memory.end(), a->words.begin(), a->words.end());
      memory.insert(memory.end(), guard, 0xa5a5a5a5u);
      auto& buffer = buffers.emplace_back();
      must(device_->allocate(memory.size() * 4, gpu::memory_place::device, buffer, report_));
      must(device_->upload(*buffer, 0, memory.data(), memory.size() * 4, report_));
      c.bindings.push_back({buffer.get(), guard * 4, a->words.size() * 4});
    }
    c.params.resize(sizeof params / 4);
    std::memcpy(c.params.data(), &params, sizeof params);
    c.groups_x = groups_x;
    c.groups_y = groups_y;
    std::unique_ptr<gpu::recording> recording;
    must(device_->record({&c, 1}, false, recording, report_));
    must(queue_->submit(*recording, ++timeline_, report_));
    must(queue_->wait(timeline_, 60'000'000'000u, report_));
    for (size_t i = 0; i < bound.size(); ++i) {
      std::vector<uint32_t> memory(bound[i]->words.size() + 2 * guard);
      must(device_->download(*buffers[i], 0, memory.data(), memory.size() * 4, report_));
      for (uint64_t g = 0; g < guard; ++g) {
        EXPECT_EQ(memory[g], 0xa5a5a5a5u) << "before binding " << i;
        EXPECT_EQ(memory[memory.size() - 1 - g], 0xa5a5a5a5u) << "after binding " << i;
      }
      std::vector<uint32_t> found(memory.begin() + guard, memory.end() - guard);
      if (!bound[i]->written) {
        EXPECT_EQ(found, bound[i]->words) << "binding " << i << " was written";
      }
      bound[i]->words = std::move(found);
    }
  }

 private:
  struct everything {
    std::map<form, std::unique_ptr<bench>> made;
    std::map<form, std::string> reasons;
  };
  static everything& all() {
    static everything one;
    return one;
  }
  // Drivers are gone when static objects end.
  struct end_of_devices final : testing::Environment {
    void TearDown() override { all().made.clear(); }
  };

  bench() { error_.struct_size = sizeof error_; }
  void must(bitnet_status status) const {
    if (status != BITNET_OK) throw std::runtime_error(error_.message);
  }
  const gpu::kernel& kernel_of(const kernel_spec& spec) {
    for (const auto& [known, made] : kernels_)
      if (known == spec) return *made;
    std::unique_ptr<gpu::kernel> made;
    must(device_->make_kernel(spec, made, report_));
    return *kernels_.emplace_back(spec, std::move(made)).second;
  }

  bitnet_error error_{};
  sdk::reporter report_{&error_, "test"};
  std::unique_ptr<gpu::platform> platform_;
  std::unique_ptr<gpu::device> device_;
  std::unique_ptr<gpu::queue> queue_;
  std::vector<std::pair<kernel_spec, std::unique_ptr<gpu::kernel>>> kernels_;
  uint64_t timeline_ = 0;
};

}  // namespace bitnet::opencl::test
