#pragma once
// glibc's CPU set for any number of CPUs.

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace bitnet::threads {

inline constexpr uint32_t most_cpus = 8192;  // the kernel's limit on x86-64

class cpu_set {
 public:
  cpu_set() : set_(CPU_ALLOC(most_cpus), free) { CPU_ZERO_S(bytes(), get()); }
  explicit cpu_set(const std::vector<uint32_t>& cpus) : cpu_set() {
    for (const uint32_t cpu : cpus) CPU_SET_S(cpu, bytes(), get());
  }
  [[nodiscard]] static std::size_t bytes() { return CPU_ALLOC_SIZE(most_cpus); }
  [[nodiscard]] cpu_set_t* get() const { return set_.get(); }
  [[nodiscard]] bool has(uint32_t cpu) const { return CPU_ISSET_S(cpu, bytes(), get()) != 0; }

 private:
  static void free(cpu_set_t* set) { CPU_FREE(set); }
  std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set_;
};

}  // namespace bitnet::threads
