// bitnet chat: answers messages, and runs commands that start with a slash.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "basic/text_input.hpp"
#include "commands/answer_printer.hpp"
#include "commands/commands.hpp"
#include "commands/conversation.hpp"
#include "commands/prompt.hpp"
#include "files/new_file.hpp"
#include "model_files/find_model.hpp"
#include "process/interrupt.hpp"
#include "receipts/receipts.hpp"
#include "session/reloading.hpp"
#include "session/shadow.hpp"
#include "tables/sampling.hpp"
#include "terminal/line_reader.hpp"
#include "text/incoming.hpp"

namespace bitnet::host {
namespace {

constexpr std::string_view help_text =
    "/clear          forget the conversation\n"
    "/system [TEXT]  show or replace the system prompt\n"
    "/set [NAME N]   show or change a setting; alone it shows all that can be changed\n"
    "/stats          timings of the last answer and the kernels that ran\n"
    "/save FILE      write the conversation as JSON\n"
    "/load FILE      read it back\n"
    "/backend        what computes, and why\n"
    "/backend reload [NAME]  load its file again, as it is now; also by the file's path\n"
    "/bye            leave; also /exit, /quit and Ctrl-D\n"
    "\"\"\"             begins and ends a message of several lines\n"
    "Ctrl-C          stops an answer; a second one leaves\n";

#define BITNET_SAMPLING_NAME(type, name, initial, accepted, expected, option, ...) option,
constexpr std::string_view changeable[] = {BITNET_SAMPLING_PARAMETERS(BITNET_SAMPLING_NAME) "seed",
                                           "n-predict"};
#undef BITNET_SAMPLING_NAME

class chat {
 public:
  chat(const invocation& in, text_form kept_to, chat_form form, engine& all)
      : in_(in),
        set_(in.set),
        kept_to_(std::move(kept_to)),
        all_(all),
        talk_(all.model.get(), all.session.get(), std::move(form)),
        reader_(line_reader::open(in.variables)),
        on_terminal_(stdin_is_terminal()) {
    talk_.set_system(system_prompt(in.set));
  }

  // Answers `first` if given, then messages that are read, until the input ends.
  result<int> talk(std::optional<std::string> first) {
    if (on_terminal_) in_.out.note("/help lists the commands, Ctrl-D leaves");
    if (first) {
      if (auto done = answer(*first); !done) return std::unexpected(done.error());
    }
    std::string message;
    while (!leaving_ && next_message(message)) {
      if (auto done = handle(message); !done) return std::unexpected(done.error());
    }
    if (on_terminal_ && !leaving_) in_.out.raw("\n");
    return status_;
  }

 private:
  line_reader::outcome read_line(const char* prompt, std::string& line) {
    const interrupt::scope while_reading;
    const auto got = reader_->read(prompt, line);
    if (got != line_reader::outcome::line) return got;
    auto text = lines_.next(std::move(line));
    if (!text) {  // the input has ended
      complain({exit_code::usage, fmt::format("standard input: {}", text.error())});
      return line_reader::outcome::end;
    }
    line = *std::move(text);
    return got;
  }

  // Reads a line, or the lines between """. False at the input's end.
  bool next_message(std::string& message) {
    for (;;) {
      const auto got = read_line(">>> ", message);
      if (got == line_reader::outcome::end) return false;
      if (got == line_reader::outcome::interrupted) {
        if (!on_terminal_) {
          status_ = exit_code::interrupted;
          return false;
        }
        in_.out.note("Ctrl-D or /bye leaves");
        continue;
      }
      if (!message.starts_with("\"\"\"")) return true;
      message.erase(0, 3);
      const auto ended = read_block(message);
      if (ended == line_reader::outcome::line) return true;
      if (ended == line_reader::outcome::end) return !message.empty();
    }
  }

  line_reader::outcome read_block(std::string& message) {
    if (message.ends_with("\"\"\"")) {
      message.erase(message.size() - 3);
      return line_reader::outcome::line;
    }
    std::string line;
    for (;;) {
      const auto got = read_line("... ", line);
      if (got != line_reader::outcome::line) return got;
      const bool last = line.ends_with("\"\"\"");
      if (last) line.erase(line.size() - 3);
      if (!message.empty() && !(last && line.empty())) message += '\n';
      message += line;
      if (last) return line_reader::outcome::line;
    }
  }

  // Returns failures that end the chat; prints those that concern one message only.
  result<void> handle(const std::string& message) {
    if (message.empty()) return {};
    if (message.front() != '/') return answer(message);
    const auto blank = message.find(' ');
    const std::string name = message.substr(0, blank);
    const std::string rest = blank == std::string::npos ? "" : message.substr(blank + 1);
    auto done = command(name, rest);
    if (!done) complain(done.error());
    return {};
  }

  void complain(const failure& why) {
    in_.out.error(why.message);
    if (!on_terminal_) status_ = why.exit_code;
  }

  result<void> command(const std::string& name, const std::string& rest) {
    if (name == "/bye" || name == "/exit" || name == "/quit") {
      leaving_ = true;
    } else if (name == "/help" || name == "/?") {
      in_.out.raw(help_text);
    } else if (name == "/clear") {
      talk_.clear();
      in_.out.note("cleared");
    } else if (name == "/system") {
      system(rest);
    } else if (name == "/set") {
      return change(rest);
    } else if (name == "/stats") {
      return stats();
    } else if (name == "/backend") {
      return backend(rest);
    } else if (name == "/save") {
      return save(rest);
    } else if (name == "/load") {
      return load(rest);
    } else {
      return fail(exit_code::usage, fmt::format("unknown command {}; /help lists them", name));
    }
    return {};
  }

  result<void> backend(const std::string& text) {
    constexpr std::string_view reload = "reload";
    if (text.empty()) {
      in_.out.line(selection_line(all_.runtime.get()));
      for (const loaded_copy& copy : loaded_copies(all_.runtime.get()))
        in_.out.line(
            fmt::format("{} generation {} {}{}", copy.backend, copy.number, copy.state,
                        copy.build_id.empty() ? "" : fmt::format(", build id {}", copy.build_id)));
      return {};
    }
    if (!text.starts_with(reload) || (text.size() > reload.size() && text[reload.size()] != ' '))
      return fail(exit_code::usage,
                  fmt::format("/backend {} is no command; /backend and /backend reload are", text));
    std::string name = text.substr(std::min(reload.size() + 1, text.size()));
    if (name.empty()) {
      auto report = session_report(all_.session.get());
      if (!report) return std::unexpected(report.error());
      name = report->value("backend", "");
    }
    auto line = reload_backend(all_.runtime.get(), name, set_);
    if (!line) return std::unexpected(line.error());
    in_.out.line(*line);
    return {};
  }

  void system(const std::string& text) {
    if (text.empty()) {
      in_.out.line(talk_.system().value_or("there is no system prompt"));
      return;
    }
    talk_.set_system(text);
    in_.out.note("system prompt set");
  }

  result<void> change(const std::string& text) {
    const auto blank = text.find(' ');
    if (text.empty()) {
      for (const std::string_view name : changeable) in_.out.line(shown(name));
      return {};
    }
    const std::string name = text.substr(0, blank);
    if (std::ranges::find(changeable, name) == std::end(changeable)) {
      return fail(exit_code::usage,
                  fmt::format("'{}' cannot be changed; /set lists what can", name));
    }
    if (blank != std::string::npos) {
      if (auto done = set_.change(name, text.substr(blank + 1), "/set"); !done) return done;
    }
    in_.out.line(shown(name));
    return {};
  }

  [[nodiscard]] std::string shown(std::string_view name) const {
    const bool whole = find_option(name)->type == kind::integer;
    return whole ? fmt::format("{} {}", name, set_.integer(name))
                 : fmt::format("{} {}", name, set_.real(name));
  }

  result<void> stats() {
    if (last_) in_.out.line(timings_line(*last_));
    in_.out.line(fmt::format("context {} of {} tokens", bitnet_session_length(all_.session.get()),
                             bitnet_session_capacity(all_.session.get())));
    auto report = session_report(all_.session.get());
    if (!report) return std::unexpected(report.error());
    if (const auto room =
            report->value("kv", nlohmann::json::object()).value("max_context", uint64_t{0});
        room != 0)
      in_.out.line(fmt::format("free memory: a context of {} tokens", room));
    if (const std::string line = speculation_line(*report); !line.empty()) in_.out.line(line);
    for (const auto& kernel : report->value("kernels", nlohmann::json::array())) {
      const std::string precision = kernel.value("precision", "");
      in_.out.line(fmt::format("{} {} calls{}", kernel.value("id", ""),
                               kernel.value("calls", uint64_t{0}),
                               precision.empty() ? "" : ", rounds to " + precision));
    }
    return {};
  }

  result<void> save(const std::string& file) {
    if (file.empty()) return fail(exit_code::usage, "/save needs a file name");
    if (auto fine = check_is_no_model(file); !fine) return fine;
    if (auto done = files::write_file(file, talk_.to_json()); !done)
      return fail(exit_code::failure, fmt::format("cannot write {}: {}", file, done.error().text));
    in_.out.note(fmt::format("saved {} messages", talk_.size()));
    return {};
  }

  result<void> load(const std::string& file) {
    auto text = read_text_file(file, longest_text);
    if (!text) return fail(exit_code::usage, text.error().message);
    if (auto done = talk_.from_json(*text); !done) {
      return fail(exit_code::usage, fmt::format("{}: {}", file, done.error().message));
    }
    in_.out.note(fmt::format("loaded {} messages", talk_.size()));
    return {};
  }

  // Answers a message. While the answer calls tools, reads their results and continues.
  result<void> answer(const std::string& text) {
    std::vector<chat_message> next{{"user", text}};
    while (!next.empty()) {
      auto calls = answer_once(std::move(next));
      if (!calls) return std::unexpected(calls.error());
      next.clear();
      for (const conversation::call& one : *calls) {
        auto found = read_result(one);
        if (!found) return {};
        next.push_back(*std::move(found));
      }
    }
    return {};
  }

  // Asks the user for the result of a call: a line, or lines between """. Nothing at the input's
  // end.
  std::optional<chat_message> read_result(const conversation::call& one) {
    if (on_terminal_)
      in_.out.note(fmt::format("the result of {}? a line, or lines between \"\"\"", one.name));
    std::string text;
    if (!next_message(text)) return std::nullopt;
    return chat_message{"tool", std::move(text),
                        json_text({{"tool_call_id", one.id}, {"name", one.name}})};
  }

  // Returns the calls that wait for results.
  result<std::vector<conversation::call>> answer_once(std::vector<chat_message> next) {
    auto setup = generation_setup::from(set_, kept_to_);
    if (!setup) return std::unexpected(setup.error());
    setup->draft_with(all_.draft.get());
    answer_printer printer(in_.out, set_.text("reasoning") == "show");
    auto got = talk_.ask(std::move(next), *setup, printer);
    if (!printer.printed()) return std::unexpected(printer.printed().error());
    keep_receipt(got ? result<int>(exit_code::ok) : std::unexpected(got.error()));
    if (!got) {
      complain(got.error());
      return std::vector<conversation::call>{};
    }
    if (auto printed = print("\n"); !printed) return std::unexpected(printed.error());
    if (got->dropped > 0) {
      in_.out.note(
          fmt::format("the context is full: the {} oldest messages were left out", got->dropped));
    }
    if (got->done.result.stop_reason == BITNET_STOP_CONTEXT) {
      in_.out.note("the answer was cut: the context is full; /clear starts anew");
    }
    if (set_.flag("perf")) in_.out.line(timings_line(got->done.result));
    last_ = got->done.result;
    if (got->done.result.stop_reason == BITNET_STOP_CANCELLED && !on_terminal_) {
      status_ = exit_code::interrupted;
      leaving_ = true;
    }
    return got->calls;
  }

  // Writes the receipt of this answer over that of the last one.
  void keep_receipt(const result<int>& done) {
    const nlohmann::json facts = {{"program", {{"command", "chat"}}}};
    if (const auto kept = with_receipt(in_, all_, done, facts); done && !kept)
      complain(kept.error());
  }

  const invocation& in_;
  settings set_;  // a copy that /set changes
  text_form kept_to_;
  engine& all_;
  conversation talk_;
  std::unique_ptr<line_reader> reader_;
  text::incoming_lines lines_;
  std::optional<bitnet_generation_result> last_;
  bool on_terminal_;
  bool leaving_ = false;
  int status_ = exit_code::ok;
};

}  // namespace

result<int> chat_command(const invocation& in) {
  if (in.set.flag("list-devices")) return list_devices(in);
  const model_and_rest words = split_positionals(in);
  auto given = given_prompt(in, words.rest);
  if (!given) return std::unexpected(given.error());
  std::optional<std::string> first = *std::move(given);
  if (first && !in.set.given("file") && in.set.flag("escape")) first = unescape(*first);
  // Check the settings before a model is loaded, not after the first message.
  if (auto wish = given_shadow(in.set); !wish) return std::unexpected(wish.error());
  auto kept_to = given_form(in.set);
  if (!kept_to) return std::unexpected(kept_to.error());
  if (auto setup = generation_setup::from(in.set, *kept_to); !setup)
    return std::unexpected(setup.error());
  auto form = chat_form::from(in.set);
  if (!form) return std::unexpected(form.error());
  auto all = open_engine(in, words.model);
  if (!all) return std::unexpected(all.error());
  const auto watch = watch_backends(in, all->runtime.get());
  if (!watch) return std::unexpected(watch.error());
  auto ended = chat(in, *std::move(kept_to), *std::move(form), *all).talk(std::move(first));
  end_shadow(in, all->shadow.get());
  return ended;
}

}  // namespace bitnet::host
