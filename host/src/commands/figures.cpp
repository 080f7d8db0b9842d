#include "commands/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "basic/json.hpp"
#include "measure/number_list.hpp"
#include "measure/sql_rows.hpp"

namespace bitnet::host {
namespace {

std::string dump(const ordered_json& value, int indent = -1) {
  return value.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

std::string as_csv(const std::vector<ordered_json>& rows) {
  std::vector<std::string> columns;
  for (const ordered_json& row : rows)
    for (const auto& [key, value] : row.items())
      if (value.is_primitive() && std::ranges::find(columns, key) == columns.end())
        columns.push_back(key);
  std::string out;
  for (const std::string& key : columns) out += (out.empty() ? "" : ",") + key;
  out += "\n";
  for (const ordered_json& row : rows) {
    std::string line;
    for (const std::string& key : columns) {
      if (&key != &columns.front()) line += ",";
      if (row.contains(key)) line += dump(row[key]);
    }
    out += line + "\n";
  }
  return out;
}

}  // namespace

measured_device device_in(const nlohmann::json& runtime_report, const std::string& device) {
  measured_device out;
  out.backend = device.substr(0, device.rfind(':'));
  for (const auto& backend : runtime_report.value("backends", nlohmann::json::array())) {
    if (backend.value("name", "") != out.backend) continue;
    out.host_threads = backend.value("host_threads", false);
    out.abi = any_member(backend, "abi");
    for (const auto& one : backend.value("devices", nlohmann::json::array())) {
      if (fmt::format("{}:{}", out.backend, one.value("index", 0)) != device) continue;
      out.name = one.value("name", "");
      out.arch = one.value("arch", "");
      out.pci = any_member(one, "pci_address");
      out.driver = any_member(one, "driver_version");
    }
  }
  return out;
}

ceilings::ceilings(int64_t megabytes, const measured_device& of, uint32_t threads)
    : threads_(std::max(threads, 1U)) {
  if (megabytes == 0 || !of.host_threads) return;
  memory_.emplace(static_cast<uint64_t>(megabytes) * 1'000'000);
  one_thread_ = memory_->measure(1);
  before_ = measured();
  if (memory_) bytes_ = memory_->bytes();
}

void ceilings::measure_again() {
  if (memory_) after_ = measured();
  memory_.reset();  // frees memory for the next model
}

// If the system cannot create the threads, the bandwidth is unknown.
double ceilings::measured() try {
  return memory_ ? memory_->measure(threads_) : 0;
} catch (const std::system_error&) {
  memory_.reset();
  bytes_ = 0;
  return 0;
}

double ceilings::best() const {
  return std::max(before_, after_);
}

nlohmann::ordered_json ceilings::json() const {
  return {{"bytes", bytes_},
          {"gbps_1_thread", one_thread_},
          {"gbps_before", before_},
          {"gbps_after", after_}};
}

std::string ceilings::line() const {
  return fmt::format(
      "stream read of {} MB: {:.1f} GB/s with 1 thread, {:.1f} before and {:.1f} "
      "after the tests with {}\n",
      bytes_ / 1'000'000, one_thread_, before_, after_, threads_);
}

result<std::vector<uint32_t>> counts(const settings& set, std::string_view option,
                                     std::string_view of, uint32_t lowest, uint32_t highest) {
  auto numbers = measure::number_list(set.text(option), lowest, highest);
  if (!numbers)
    return fail(exit_code::usage,
                fmt::format("--{} expects numbers of {} from {} to {}, separated by commas, or "
                            "ranges such as 128-512+128 and 1-64*2; found {}",
                            option, of, lowest, highest, numbers.error()));
  return *std::move(numbers);
}

result<std::vector<uint32_t>> token_counts(const settings& set, std::string_view option) {
  return counts(set, option, "tokens", 0, longest_bench_test);
}

std::string rows_as(const std::string& format, const std::vector<nlohmann::ordered_json>& rows) {
  if (format == "csv") return as_csv(rows);
  if (format == "sql") return measure::sql_rows(rows);
  if (format == "json") return dump(ordered_json(rows), 2) + "\n";
  std::string out;
  for (const ordered_json& row : rows) out += dump(row) + "\n";
  return out;
}

}  // namespace bitnet::host
