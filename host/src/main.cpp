// The `bitnet` program: finds the command, merges its settings, runs it.
#include <fmt/format.h>

#include <csignal>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "basic/output.hpp"
#include "bitnet/bitnet.h"
#include "commands/commands.hpp"
#include "commands/gated.hpp"
#include "crossval/foreign.hpp"
#include "files/standard_descriptors.hpp"
#include "library/wording.hpp"
#include "log/log_queue.hpp"
#include "process/interrupt.hpp"
#include "process/orderly_end.hpp"
#include "session/planning.hpp"
#include "settings/help.hpp"
#include "system/limits.hpp"
#include "terminal/console.hpp"
#include "timeline/timeline.hpp"

namespace bitnet::host {
namespace {

using action = result<int> (*)(const invocation&);

action action_of(const command& about) {
  switch (about.bit) {
#define BITNET_COMMAND_CASE(name, ...) \
  case command_bit::name:              \
    return name##_command;
    BITNET_COMMANDS(BITNET_COMMAND_CASE)
#undef BITNET_COMMAND_CASE
    default:
      break;
  }
  return help_command;
}

result<const command*> command_named(const std::string& word) {
  if (word == "-h" || word == "--help") return find_command("help");
  if (word == "--version") return find_command("version");
  if (word.starts_with('-')) {
    return fail(exit_code::usage,
                fmt::format("a command comes first, such as `bitnet run {} ...`", word));
  }
  return command_of(word);
}

// Opens the timeline of --trace; nullptr without it.
result<std::unique_ptr<timeline::timeline>> timeline_of(const settings& set) {
  if (!set.has("trace") || set.text("trace").empty()) return nullptr;
  const auto most_bytes = static_cast<uint64_t>(set.integer("trace-size")) << 20U;
  return timeline::timeline::open(set.text("trace"), most_bytes, bitnet_version());
}

// Call it after the command has closed everything that reports to the timeline.
result<int> with_timeline(const console& out, timeline::timeline* trace, result<int> done) {
  if (trace == nullptr) return done;
  const auto written = trace->finish();
  if (written) return done;
  if (done) return std::unexpected(written.error());
  out.error(written.error().message);
  return done;
}

result<int> perform(const std::vector<std::string>& words, console& out) {
  auto about = command_named(words.front());
  if (!about) return std::unexpected(about.error());
  auto given = parse_arguments(**about, {words.begin() + 1, words.end()});
  if (!given) return std::unexpected(given.error());
  for (const flag_use& use : given->flags) {
    if (use.row->name != "help" || use.text != "true") continue;
    if (auto done = print(help_of(**about)); !done) return std::unexpected(done.error());
    return exit_code::ok;
  }
  const environment variables = environment::of_process();
  std::vector<std::string> notes;
  auto set = settings::merge(**about, *given, variables, notes);
  if (!set) return std::unexpected(set.error());
  if (auto done = out.configure(*set, variables); !done) return std::unexpected(done.error());
  if ((*about)->bit == command_bit::serve) {
    out.write_in_background();
    settle_logs_on_fatal_signals();
  }
  out.record(fmt::format("bitnet {} begins: {}", bitnet_version(), (*about)->name));
  for (const std::string& note : notes) out.warning(note);
  auto trace = timeline_of(*set);
  if (!trace) return std::unexpected(trace.error());
  const auto plan = given_plan(*set);
  if (!plan) return std::unexpected(plan.error());
  const invocation in{*set, given->positionals, variables,
                      out,  trace->get(),       *plan ? &**plan : nullptr};
  return with_timeline(out, trace->get(), skipped_if_missing(in, action_of(**about)(in)));
}

int leave(const result<int>& done, const console& out) {
  if (!done && !done.error().message.empty()) out.error(done.error().message);
  const int code = done ? *done : done.error().exit_code;
  out.record(fmt::format("ends with exit code {}", code));
  return code;
}

int start(const std::vector<std::string>& words) {
  interrupt::install();
  console out;
  if (words.empty()) {
    out.raw(help_of_program());
    return exit_code::usage;
  }
  try {
    give_wording();
    return leave(perform(words, out), out);
  } catch (const std::bad_alloc&) {
    char message[256];
    limits::out_of_memory(message, sizeof message);
    out.error(message);
    return exit_code::out_of_memory;
  } catch (const std::exception& e) {
    out.error(fmt::format("internal error: {}", e.what()));
    return exit_code::failure;
  }
}

// Started as `bitnet-server`, the service's name, it runs `bitnet serve`.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (argc == 0 || std::filesystem::path(argv[0]).filename() != "bitnet-server") return words;
  if (words.empty() || words.front() != "--version") words.insert(words.begin(), "serve");
  return words;
}

}  // namespace
}  // namespace bitnet::host

int main(int argc, char** argv) {
  if (!bitnet::files::open_standard_descriptors()) return bitnet::host::exit_code::failure;
  std::signal(SIGXFSZ, SIG_IGN);  // growing past `ulimit -f` becomes a write error
  if (argc > 1 && argv[1] == bitnet::host::crossval::foreign_word)
    return bitnet::host::crossval::run_foreign({argv + 1, argv + argc});
  bitnet::host::orderly_end::expect();
  const int code = bitnet::host::start(bitnet::host::words_of(argc, argv));
  bitnet::host::orderly_end::announce(code);
  return code;
}
