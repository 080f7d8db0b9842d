// Reads which CPUs this process may use, and which the options name.
#include <fmt/core.h>

#include <sched.h>

#include <algorithm>
#include <string>

#include "threads/cpu_set.hpp"
#include "threads/pool.hpp"

namespace bitnet::threads {
namespace {

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

cpu_list allowed_cpus() {
  const cpu_set set;
  cpu_list out;
  if (sched_getaffinity(0, cpu_set::bytes(), set.get()) != 0) {
    for (uint32_t i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i)
      out.push_back(i);
    return out;
  }
  for (uint32_t cpu = 0; cpu < most_cpus; ++cpu)
    if (set.has(cpu)) out.push_back(cpu);
  return out;
}

std::string ranges(const cpu_list& cpus) {
  std::string out;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    out += (out.empty() ? "" : ",") + std::to_string(cpus[i]);
    if (last != i) out += "-" + std::to_string(cpus[last]);
    i = last + 1;
  }
  return out;
}

result<cpu_list> read_cpu_mask(std::string_view hexadecimal) {
  std::string_view digits = hexadecimal;
  if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
  const auto malformed = [&] {
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("the CPU mask '{}' is no hexadecimal number that names a CPU, such as "
                            "0x3 for CPUs 0 and 1",
                            hexadecimal.substr(0, 40)));
  };
  if (digits.size() > most_cpus / 4) return malformed();
  cpu_list out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const int value = digit_of(digits[digits.size() - 1 - i]);
    if (value < 0) return malformed();
    for (uint32_t bit = 0; bit < 4; ++bit)
      if ((value >> bit & 1) != 0) out.push_back(static_cast<uint32_t>(4 * i) + bit);
  }
  if (out.empty()) return malformed();
  const cpu_list allowed = allowed_cpus();
  cpu_list missing;
  std::ranges::set_difference(out, allowed, std::back_inserter(missing));
  if (!missing.empty())
    return fail(
        BITNET_INVALID_ARGUMENT,
        fmt::format("the CPU mask names CPU {}, which this process may not use; it may use {}",
                    ranges(missing), ranges(allowed)));
  return out;
}

}  // namespace bitnet::threads
