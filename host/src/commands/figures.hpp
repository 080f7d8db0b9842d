#pragma once
// Helpers of the measuring commands: sample statistics, the memory limit, and rows of results in
// each output format.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basic/result.hpp"
#include "judge/statistics.hpp"
#include "measure/memory_ceiling.hpp"
#include "session/engine.hpp"
#include "settings/settings.hpp"

namespace bitnet::host {

using nlohmann::ordered_json;  // figures in the order in which they are written

// The device that a measurement ran on.
struct measured_device {
  std::string backend, name, arch, pci, driver, abi;
  bool host_threads = false;  // it computes in threads of this program
};
// Finds the device "backend:index" in a runtime's report; members missing there stay empty.
[[nodiscard]] measured_device device_in(const nlohmann::json& runtime_report,
                                        const std::string& device);

// The memory bandwidth of a program that only reads, measured before and after the tests.
class ceilings {
 public:
  // Measures nothing with 0 megabytes, nor for a device with threads or memory of its own, since
  // this program's threads cannot measure its limit.
  ceilings(int64_t megabytes, const measured_device& of, uint32_t threads);
  void measure_again();

  [[nodiscard]] bool known() const { return bytes_ != 0; }
  [[nodiscard]] double best() const;                  // GB/s, with all threads
  [[nodiscard]] nlohmann::ordered_json json() const;  // {bytes, gbps_1_thread, ...}
  [[nodiscard]] std::string line() const;

 private:
  double measured();

  uint32_t threads_;
  uint64_t bytes_ = 0;
  double one_thread_ = 0, before_ = 0, after_ = 0;  // GB/s
  std::optional<memory_ceiling> memory_;
};

inline constexpr uint32_t longest_bench_test = 1 << 20;  // tokens

// Reads a list option as measure::number_list does. `of` names the counted thing in messages.
[[nodiscard]] result<std::vector<uint32_t>> counts(const settings& set, std::string_view option,
                                                   std::string_view of, uint32_t lowest,
                                                   uint32_t highest);
// The same, for numbers of tokens.
[[nodiscard]] result<std::vector<uint32_t>> token_counts(const settings& set,
                                                         std::string_view option);

// Writes rows as a page to the file of --report, if given. Exit code 2 if that file is a model.
[[nodiscard]] result<void> write_report(const invocation& in,
                                        const std::vector<ordered_json>& rows);

// Rows as "json", "jsonl", "csv" or "sql"; csv and sql leave out lists and objects.
[[nodiscard]] std::string rows_as(const std::string& format,
                                  const std::vector<nlohmann::ordered_json>& rows);

}  // namespace bitnet::host
