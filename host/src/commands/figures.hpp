#pragma once
// What the measuring commands share: statistics of samples, the memory's limit beside them, and
// rows of results in each output format.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "library/engine.hpp"
#include "library/statistics.hpp"
#include "memory_ceiling.hpp"
#include "result.hpp"
#include "settings/settings.hpp"

namespace bitnet::host {

using nlohmann::ordered_json;  // figures in the order in which they are written

// Where something was measured.
struct measured_device {
  std::string backend, name, arch, pci, driver, abi;
  bool host_threads = false;  // it computes in the threads that this program lends it
};
// The device "backend:index" in a runtime's report; what the report lacks stays empty.
[[nodiscard]] measured_device device_in(const nlohmann::json& runtime_report,
                                        const std::string& device);

// What the memory gives to a program that only reads, before and after the tests.
class ceilings {
 public:
  // With 0 megabytes nothing is measured, nor for a device that brings its own threads or memory:
  // what this program's threads read is no limit of it.
  ceilings(int64_t megabytes, const measured_device& of, uint32_t threads);
  void measure_again();

  [[nodiscard]] bool known() const { return bytes_ != 0; }
  [[nodiscard]] double best() const;                  // GB/s of all threads
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

// The numbers of a list option, as measure::number_list has them. `of` names what is counted, for a
// message.
[[nodiscard]] result<std::vector<uint32_t>> counts(const settings& set, std::string_view option,
                                                   std::string_view of, uint32_t lowest,
                                                   uint32_t highest);
// Of tokens.
[[nodiscard]] result<std::vector<uint32_t>> token_counts(const settings& set,
                                                         std::string_view option);

// Writes rows as a page where --report names a file. Exit code 2 for a file that is a model.
[[nodiscard]] result<void> write_report(const invocation& in,
                                        const std::vector<ordered_json>& rows);

// Rows as "json", "jsonl", "csv" or "sql"; the latter two have every value that is no list or
// object.
[[nodiscard]] std::string rows_as(const std::string& format,
                                  const std::vector<nlohmann::ordered_json>& rows);

}  // namespace bitnet::host
