#include "service/process_metrics.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "files/descriptor.hpp"
#include "text/items.hpp"

namespace bitnet::host {
namespace {

struct process_facts {
  double cpu_seconds = 0, start_seconds = 0;  // start: since 1970
  double virtual_bytes = 0, resident_bytes = 0;
};

// At most 4 KiB of a file of unknown size; "" if it cannot be read.
std::string text_of(const char* path) {
  const files::descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
  std::string out(4096, '\0');
  std::size_t used = 0;
  for (ssize_t n = 1; file && n > 0 && used < out.size(); used += n > 0 ? std::size_t(n) : 0)
    n = ::read(file.get(), out.data() + used, out.size() - used);
  out.resize(used);
  return out;
}

std::optional<double> number_in(std::string_view text) {
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() ? std::optional(out) : std::nullopt;
}

// The time of an event `seconds` after boot.
double time_of(double seconds) {
  timespec running{};
  ::clock_gettime(CLOCK_BOOTTIME, &running);
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return now.count() - (static_cast<double>(running.tv_sec) +
                        static_cast<double>(running.tv_nsec) / 1e9 - seconds);
}

// Parses proc_pid_stat(5). The program's name, in parentheses, may contain anything.
std::optional<process_facts> read_process() {
  const std::string text = text_of("/proc/self/stat");
  const auto name_ends = text.rfind(") ");
  if (name_ends == std::string::npos) return std::nullopt;
  const auto fields = text::items(std::string_view(text).substr(name_ends + 2), ' ');
  const auto field = [&](std::size_t number) {  // the first field after the name is number 3
    return number - 3 < fields.size() ? number_in(fields[number - 3]) : std::nullopt;
  };
  const auto user = field(14), system = field(15), start = field(22), size = field(23),
             resident = field(24);
  if (!user || !system || !start || !size || !resident) return std::nullopt;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  static const double began = time_of(*start / ticks);  // static: each scrape must give the same
  return process_facts{.cpu_seconds = (*user + *system) / ticks,
                       .start_seconds = began,
                       .virtual_bytes = *size,
                       .resident_bytes = *resident * static_cast<double>(::sysconf(_SC_PAGESIZE))};
}

// Does not count the descriptor that reads the folder.
std::optional<double> count_open_files() {
  std::error_code why;
  std::filesystem::directory_iterator at("/proc/self/fd", why);
  double n = 0;
  for (; !why && at != std::filesystem::directory_iterator(); at.increment(why)) ++n;
  return why || n == 0 ? std::nullopt : std::optional(n - 1);
}

double limit_of(rlim_t value) {
  return value == RLIM_INFINITY ? std::numeric_limits<double>::infinity()
                                : static_cast<double>(value);
}

void write_row(metrics_text& to, const char* name, const char* type, const char* help,
               double value) {
  to.begin(name, type, help);
  to.sample(value);
}

}  // namespace

void write_process(metrics_text& to) {
  if (const auto facts = read_process()) {
    write_row(to, "process_cpu_seconds_total", "counter", "Time of processors, user and system.",
              facts->cpu_seconds);
    write_row(to, "process_start_time_seconds", "gauge", "When the process began, since 1970.",
              facts->start_seconds);
    write_row(to, "process_resident_memory_bytes", "gauge", "Memory that is in RAM.",
              facts->resident_bytes);
    write_row(to, "process_virtual_memory_bytes", "gauge", "Address space.", facts->virtual_bytes);
  }
  if (const auto n = count_open_files())
    write_row(to, "process_open_fds", "gauge", "Open file descriptors.", *n);
  rlimit most{};
  if (::getrlimit(RLIMIT_NOFILE, &most) == 0)
    write_row(to, "process_max_fds", "gauge", "The most file descriptors that may be open.",
              limit_of(most.rlim_cur));
}

}  // namespace bitnet::host
