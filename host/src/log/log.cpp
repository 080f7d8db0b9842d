#include "log/log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#ifdef BITNET_JOURNAL
#include <spdlog/sinks/systemd_sink.h>
#endif

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

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

std::string as_text(std::string_view message) {
  return text::printable(message);
}

std::string as_json(std::string_view message) {
  using nlohmann::json;
  return json(message).dump(-1, ' ', true, json::error_handler_t::replace);
}

// The message, as %* of a pattern.
class escaped final : public spdlog::custom_flag_formatter {
 public:
  using escape = std::string (*)(std::string_view);
  explicit escaped(escape how) : how_(how) {}

  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& to) override {
    const std::string text = how_({message.payload.data(), message.payload.size()});
    to.append(text.data(), text.data() + text.size());
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<escaped>(how_);
  }

 private:
  escape how_;
};

std::unique_ptr<spdlog::formatter> lines(std::string pattern, escaped::escape how,
                                         const char* end = "\n") {
  auto out = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc, end);
  out->add_flag<escaped>('*', how).set_pattern(std::move(pattern));
  return out;
}

std::unique_ptr<spdlog::formatter> lines_of(bool json) {
  return json ? lines(R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l","pid":%P,"message":%*})",
                      as_json)
              : lines("%Y-%m-%dT%H:%M:%S.%fZ %-7l [%P] %*", as_text);
}

// Children get no descriptor of it.
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

// spdlog would wait for the other end of a pipe, and make folders that were mistyped.
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
  if (wanted.file == "-") return std::make_shared<spdlog::sinks::stderr_sink_mt>();
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

// sd_journal_send() answers that all is well where nobody listens.
result<spdlog::sink_ptr> journal() {
#ifdef BITNET_JOURNAL
  constexpr const char* socket = "/run/systemd/journal/socket";
  std::error_code ignored;
  if (fs::is_socket(socket, ignored)) {
    auto out = std::make_shared<spdlog::sinks::systemd_sink_mt>("bitnet", true);
    out->set_formatter(lines("%*", as_text, ""));
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

}  // namespace

struct log::contents {
  std::atomic<bool> lost{false};
  std::function<void(const std::string&)> on_loss;
  spdlog::logger to{"bitnet"};
};

log::log(std::unique_ptr<contents> c) : contents_(std::move(c)) {}
log::~log() = default;

result<std::unique_ptr<log>> log::open(const log_options& wanted,
                                       std::function<void(const std::string& why)> on_loss) {
  auto made = std::make_unique<contents>();
  made->on_loss = std::move(on_loss);
  if (!wanted.file.empty()) {
    auto sink = sink_of(wanted);
    if (!sink) return std::unexpected(sink.error());
    (*sink)->set_formatter(lines_of(wanted.json));
    made->to.sinks().push_back(std::move(*sink));
  }
  if (wanted.journal) {
    auto sink = journal();
    if (!sink) return std::unexpected(sink.error());
    made->to.sinks().push_back(std::move(*sink));
  }
  made->to.set_level(level_of(static_cast<log_level>(wanted.level)));
  made->to.flush_on(spdlog::level::trace);
  made->to.set_error_handler([c = made.get()](const std::string& why) {
    if (!c->lost.exchange(true)) c->on_loss(why);
  });
  return std::unique_ptr<log>(new log(std::move(made)));
}

void log::write(log_level level, std::string_view message) const {
  contents_->to.log(level_of(level), spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace bitnet::host
