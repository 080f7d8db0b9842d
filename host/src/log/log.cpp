#include "log/log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/rotating_file_sink.h>
#ifdef BITNET_JOURNAL
#include <spdlog/sinks/systemd_sink.h>
#endif
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "basic/output.hpp"
#include "log/journal_stream.hpp"
#include "log/log_queue.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

namespace fs = std::filesystem;

spdlog::level::level_enum level_of(log_level level) {
  switch (level) {
    case log_level::error:
      return spdlog::level::err;
    case log_level::warning:
      return spdlog::level::warn;
    case log_level::note:
      return spdlog::level::info;
    case log_level::detail:
      return spdlog::level::debug;
    case log_level::debug:
      break;
  }
  return spdlog::level::trace;
}

std::string as_json(std::string_view text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', true, json::error_handler_t::replace);
}

struct json_value {
  std::string operator()(const std::string& text) const { return as_json(text); }
  std::string operator()(int64_t number) const { return fmt::format("{}", number); }
  std::string operator()(double number) const { return nlohmann::json(number).dump(); }
};

// The text for %v of a pattern: the escaped message, or the members of JSON.
std::string payload_of(const log_line& line, bool json) {
  if (!json) return text::printable(line.text);
  std::string out = "\"message\":";
  out += as_json(line.facts.message.empty() ? std::string_view(line.text) : line.facts.message);
  for (const log_field& one : line.facts.fields)
    out += fmt::format(",\"{}\":{}", one.name, std::visit(json_value(), one.value));
  return out;
}

log_level level_of(spdlog::level::level_enum level) {
  for (const log_level one : {log_level::error, log_level::warning, log_level::note})
    if (level_of(one) == level) return one;
  return log_level::debug;
}

// Formats %* of a pattern as "<4>".
class priority_flag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& to) override {
    const std::string text = fmt::format("<{}>", priority_of(level_of(message.level)));
    to.append(text.data(), text.data() + text.size());
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<priority_flag>();
  }
};

std::unique_ptr<spdlog::formatter> lines(std::string pattern, const char* end = "\n") {
  auto out = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc, end);
  out->add_flag<priority_flag>('*').set_pattern(std::move(pattern));
  return out;
}

std::unique_ptr<spdlog::formatter> lines_of(const log_options& wanted) {
  // The journal adds time, priority and process itself.
  if (wanted.has_priorities && wanted.file == "-")
    return lines(wanted.json ? R"(%*{"level":"%l","pid":%P,%v})" : "%*%v");
  return lines(wanted.json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l","pid":%P,%v})"
                           : "%Y-%m-%dT%H:%M:%S.%fZ %-7l [%P] %v");
}

// Writes each line with one write(2). The C library's stream would be locked while a line blocks,
// and exit() would wait for that lock.
class standard_error final : public spdlog::sinks::base_sink<std::mutex> {
 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (!write_all(STDERR_FILENO, {line.data(), line.size()}))
      throw spdlog::spdlog_ex("standard error", errno);
  }
  void flush_() override {}
};

// Closes the descriptor in child processes.
spdlog::file_event_handlers kept_from_children() {
  spdlog::file_event_handlers out;
  out.after_open = [](const spdlog::filename_t&, std::FILE* file) {
    (void)fcntl(fileno(file), F_SETFD, FD_CLOEXEC);
  };
  return out;
}

std::unexpected<failure> no_log(const std::string& file, std::string_view why) {
  return fail(exit_code::failure,
              fmt::format("the log file '{}' cannot be written: {}", text::printable(file), why));
}

// Checks what spdlog would not: it would block on a pipe, and create mistyped folders.
result<void> check(const std::string& file) {
  std::error_code error;
  const fs::file_status what = fs::status(file, error);
  if (fs::is_regular_file(what)) return {};
  if (fs::exists(what))
    return no_log(file, "it is no regular file; for standard error, use --log-file -");
  const fs::path folder = fs::absolute(file, error).parent_path();
  if (error || !fs::is_directory(folder, error))
    return no_log(file, fmt::format("there is no folder {}", text::printable(folder.string())));
  return {};
}

result<spdlog::sink_ptr> sink_of(const log_options& wanted) {
  if (wanted.file == "-") return std::make_shared<standard_error>();
  if (auto fine = check(wanted.file); !fine) return std::unexpected(fine.error());
  try {
    if (wanted.rotation.bytes == 0)
      return std::make_shared<spdlog::sinks::basic_file_sink_mt>(wanted.file, false,
                                                                 kept_from_children());
    return std::make_shared<spdlog::sinks::rotating_file_sink_mt>(
        wanted.file, wanted.rotation.bytes, wanted.rotation.kept, false, kept_from_children());
  } catch (const spdlog::spdlog_ex&) {
    return no_log(wanted.file, std::generic_category().message(errno));
  }
}

// Checks for the journal's socket, since sd_journal_send() reports success without a service.
result<spdlog::sink_ptr> journal() {
#ifdef BITNET_JOURNAL
  constexpr const char* socket = "/run/systemd/journal/socket";
  std::error_code ignored;
  if (fs::is_socket(socket, ignored)) {
    auto out = std::make_shared<spdlog::sinks::systemd_sink_mt>("bitnet", true);
    out->set_formatter(lines("%v", ""));
    return out;
  }
  return fail(exit_code::failure,
              fmt::format("--log-journal: there is no journal of systemd here ({} is missing); use "
                          "--log-file",
                          socket));
#else
  return fail(exit_code::usage,
              "--log-journal: this bitnet was built without systemd (BITNET_JOURNAL=OFF); use "
              "--log-file");
#endif
}

// Reports once that lines cannot be written.
class loss_report {
 public:
  explicit loss_report(std::function<void(const std::string&)> call) : call_(std::move(call)) {}
  void operator()(const std::string& why) {
    const std::lock_guard lock(guard_);
    if (const auto call = std::exchange(call_, nullptr)) call(why);
  }
  // From now on a detached thread reports nothing.
  void end() {
    const std::lock_guard lock(guard_);
    call_ = nullptr;
  }

 private:
  std::mutex guard_;
  std::function<void(const std::string&)> call_;
};

// Returns a writer for one sink. It owns what it uses, since a detached thread may still wait in
// it.
log_queue::writer writer_to(spdlog::sink_ptr sink, bool json, std::shared_ptr<loss_report> loss) {
  return [sink = std::move(sink), json, loss = std::move(loss)](const log_line& line) {
    try {
      const std::string payload = payload_of(line, json);
      sink->log({line.at, spdlog::source_loc{}, "bitnet", level_of(line.level), payload});
      sink->flush();
    } catch (const std::exception& e) {
      (*loss)(e.what());
    }
  };
}

}  // namespace

struct log::contents {
  int level = 0;
  std::shared_ptr<loss_report> loss;
  std::vector<std::unique_ptr<log_queue>> ways;  // one per target, so that none waits for another
};

log::log(std::unique_ptr<contents> c) : contents_(std::move(c)) {}

log::~log() {
  uint64_t n_lost = 0;
  for (const auto& way : contents_->ways) n_lost += way->close();
  if (n_lost != 0)
    (*contents_->loss)(fmt::format("{} lines could not be written before the end", n_lost));
  contents_->loss->end();
}

result<std::unique_ptr<log>> log::open(const log_options& wanted,
                                       std::function<void(const std::string& why)> on_loss) {
  auto made = std::make_unique<contents>();
  made->level = wanted.level;
  made->loss = std::make_shared<loss_report>(std::move(on_loss));
  if (!wanted.file.empty()) {
    auto sink = sink_of(wanted);
    if (!sink) return std::unexpected(sink.error());
    (*sink)->set_formatter(lines_of(wanted));
    made->ways.push_back(
        std::make_unique<log_queue>(writer_to(*std::move(sink), wanted.json, made->loss)));
  }
  if (wanted.journal) {
    auto sink = journal();
    if (!sink) return std::unexpected(sink.error());
    made->ways.push_back(
        std::make_unique<log_queue>(writer_to(*std::move(sink), false, made->loss)));
  }
  return std::unique_ptr<log>(new log(std::move(made)));
}

void log::write(log_level level, std::string_view message, const log_facts& facts) const {
  if (static_cast<int>(level) > contents_->level) return;
  for (const auto& way : contents_->ways)
    way->add({level, std::chrono::system_clock::now(), std::string(message), facts});
}

void log::write_in_background() {
  for (const auto& way : contents_->ways) way->start();
}

}  // namespace bitnet::host
