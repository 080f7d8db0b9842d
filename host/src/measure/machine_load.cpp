#include "measure/machine_load.hpp"

#include <fmt/format.h>
#include <sys/times.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "doctor/machine.hpp"

namespace bitnet::host::measure {
namespace {

using nlohmann::ordered_json;

// "0.42 0.31 0.20 1/234 5678"
std::optional<double> first_number(std::string_view line) {
  double out = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), out);
  return error == std::errc() && out >= 0 ? std::optional(out) : std::nullopt;
}

// Parses "cpu user nice system idle iowait irq softirq steal guest guest_nice". User includes
// guests.
std::optional<processor_ticks> ticks_in(std::string_view line) {
  constexpr std::size_t n_counted = 8, idle = 3, iowait = 4, stolen = 7;
  const auto words = doctor::words_of(line);
  if (words.size() <= n_counted || words.front() != "cpu") return std::nullopt;
  processor_ticks out;
  for (std::size_t i = 0; i < n_counted; ++i) {
    const auto n = doctor::number_of(words[i + 1]);
    if (!n || *n > (uint64_t{1} << 56)) return std::nullopt;
    out.all += *n;
    if (i == idle || i == iowait) out.idle += *n;
    if (i == stolen) out.stolen = *n;
  }
  return out;
}

double share(uint64_t part, uint64_t of) {
  return 100 * static_cast<double>(part) / static_cast<double>(of);
}

void put(ordered_json& to, const char* key, const std::optional<double>& value) {
  if (value) to[key] = *value;
}

}  // namespace

load_reading load_now(const doctor::system_tree& system) {
  load_reading out;
  out.load = first_number(system.line("proc/loadavg"));
  out.ticks = ticks_in(system.line("proc/stat"));
  tms own{};
  ::times(&own);
  out.own_ticks = static_cast<uint64_t>(own.tms_utime + own.tms_stime);
  return out;
}

machine_load load_between(const load_reading& begin, const load_reading& end) {
  machine_load out{begin.load, end.load, {}, {}};
  if (!begin.ticks || !end.ticks || end.ticks->all <= begin.ticks->all) return out;
  const uint64_t all = end.ticks->all - begin.ticks->all;
  const auto since = [](uint64_t before, uint64_t now) { return now > before ? now - before : 0; };
  const uint64_t stolen = since(begin.ticks->stolen, end.ticks->stolen);
  const uint64_t busy = all - std::min(all, since(begin.ticks->idle, end.ticks->idle) + stolen);
  const uint64_t own = since(begin.own_ticks, end.own_ticks);
  out.stolen_pct = share(std::min(stolen, all), all);
  out.others_pct = share(since(own, busy), all);
  return out;
}

ordered_json machine_load::json() const {
  ordered_json out = ordered_json::object();
  put(out, "load_begin", load_begin);
  put(out, "load_end", load_end);
  put(out, "stolen_pct", stolen_pct);
  put(out, "others_pct", others_pct);
  return out;
}

std::string machine_load::line() const {
  std::string out;
  if (load_begin && load_end)
    out = fmt::format("load: {:.2f} at the begin, {:.2f} at the end", *load_begin, *load_end);
  if (stolen_pct && others_pct)
    out += fmt::format(
        "{}{:.1f} % of the processors' time was stolen, {:.1f} % was that of other processes",
        out.empty() ? "load: " : "; ", *stolen_pct, *others_pct);
  return out.empty() ? out : out + "\n";
}

ordered_json machine_facts(const doctor::system_tree& system) {
  const ordered_json processor = doctor::processor_facts(system);
  const ordered_json governors =
      doctor::governor_facts(system).value("governors", ordered_json::array());
  ordered_json out = ordered_json::object();
  const auto take = [&](const char* key, const char* as) {
    if (processor.contains(key)) out[as] = processor[key];
  };
  take("processor", "cpu_info");
  take("cpus_online", "n_cpus");
  if (const auto forms = processor.find("forms"); forms != processor.end() && !forms->empty())
    out["isa"] = forms->front();
  if (!governors.empty()) out["governor"] = governors.front();
  take("kernel", "kernel_release");
  return out;
}

std::string machine_line(const ordered_json& facts) {
  std::string out;
  const auto add = [&](const char* key, const char* before, const char* behind) {
    if (!facts.contains(key)) return;
    const ordered_json& value = facts[key];
    out += fmt::format("{}{}{}{}", out.empty() ? "machine: " : ", ", before,
                       value.is_string() ? value.get<std::string>() : value.dump(), behind);
  };
  add("cpu_info", "", "");
  add("n_cpus", "", " CPUs");
  add("isa", "", "");
  add("governor", "governor ", "");
  add("kernel_release", "kernel ", "");
  return out.empty() ? out : out + "\n";
}

}  // namespace bitnet::host::measure
