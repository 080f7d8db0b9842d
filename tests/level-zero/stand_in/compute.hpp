#pragma once
// Kernels of the stand-in: SPIR-V becomes bitcode by llvm-spirv, which PoCL compiles and runs.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stand_in {

class compiled;

// A module's code. Empty where the stand-in computes nothing.
using program = std::shared_ptr<compiled>;

struct constant {
  uint32_t id, value;
};

// Empty, and `log` says why, if it cannot be compiled.
program compile(const uint8_t* spirv, size_t bytes, const std::vector<constant>& constants,
                std::string& log);
// Whether the SPIR-V has an entry of this name.
bool has_entry(const compiled& code, const std::string& name);

struct kernel_call {
  program code;
  uint32_t group_size = 0, groups_x = 0, groups_y = 0;
  std::vector<std::vector<uint8_t>> arguments;  // bytes of each, addresses as they are
};

// Done when it returns.
void run(const kernel_call& call, const std::string& name);

}  // namespace stand_in
