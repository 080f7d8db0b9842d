// bitnet crossval: compares tokens and logits with those of llama.cpp or bitnet.cpp, which run in
// another process.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ranges>
#include <span>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "commands/bench_facts.hpp"
#include "commands/commands.hpp"
#include "commands/crossval_report.hpp"
#include "commands/crossval_search.hpp"
#include "commands/prompt.hpp"
#include "crossval/discovery.hpp"
#include "crossval/foreign.hpp"
#include "crossval/process.hpp"
#include "model_files/find_model.hpp"
#include "process/interrupt.hpp"
#include "receipts/receipts.hpp"
#include "terminal/progress.hpp"

namespace bitnet::host {
namespace {

constexpr std::size_t most_bytes_of_rows = 64U << 20;  // limit of logits per call

result<crossval::foreign_process> start_other(const invocation& in, const crossval::build& found,
                                              const std::string& model, std::string_view request) {
  crossval::foreign_task task{found.library, found.folders, model, 0};
  if (in.set.integer("threads") > 0)
    task.n_threads = static_cast<int32_t>(in.set.integer("threads"));
  return crossval::foreign_process::start(
      crossval::foreign_words(task), request,
      {std::chrono::seconds(in.set.integer("engine-timeout")), interrupt::requested});
}

// The running other engine: its process, and the reader of its output.
class other_engine {
 public:
  // Not copied: the reader has this object's address.
  other_engine(const other_engine&) = delete;
  other_engine& operator=(const other_engine&) = delete;
  explicit other_engine(crossval::foreign_process&& process)
      : process_(std::move(process)),
        reader_([this](std::span<std::byte> to) { return process_.read(to, doing_); }) {}

  template <class T>
  result<T> ask(std::string_view doing, result<T> (crossval::stream_reader::*what)()) {
    doing_ = doing;
    return explained((reader_.*what)());
  }
  result<void> row(std::string_view doing, std::span<float> to) {
    doing_ = doing;
    return explained(reader_.row(to));
  }

 private:
  template <class T>
  result<T> explained(result<T> done) {
    if (!done) return std::unexpected(process_.explained(std::move(done.error())));
    return done;
  }

  crossval::foreign_process process_;
  std::string_view doing_;  // points to constants
  crossval::stream_reader reader_;
};

// Checks that the library loads and has the needed functions; returns its version.
result<std::string> checked_library(const invocation& in, const crossval::build& found) {
  auto process = start_other(in, found, "", "");
  if (!process) return std::unexpected(process.error());
  other_engine other(*std::move(process));
  auto version = other.ask("loading the library", &crossval::stream_reader::library);
  if (!version) return version;
  if (auto done = other.ask("loading the library", &crossval::stream_reader::done); !done)
    return std::unexpected(done.error());
  return version;
}

result<int> find_build(const invocation& in) {
  find_report report = search_build(in);
  const interrupt::scope until_checked;
  int code = report.found.found ? exit_code::ok : exit_code::unavailable;
  if (report.found.found) {
    const auto version = checked_library(in, *report.found.found);
    if (version) report.library_version = *version;
    if (!version && version.error().exit_code != exit_code::no_comparison)
      return std::unexpected(version.error());
    if (!version) {
      report.problem = version.error().message;
      code = exit_code::no_comparison;
    }
  }
  if (auto done = print(report_text(report, in.set.text("output-format"))); !done)
    return std::unexpected(done.error());
  return code;
}

result<std::vector<std::string>> given_prompts(const invocation& in) {
  const bool has_file = in.set.given("prompts");
  if (has_file == in.set.given("prompt"))
    return fail(exit_code::usage,
                "needs --prompts FILE, a prompt on each line, or -p TEXT: one of both");
  if (!has_file) return std::vector{in.set.text("prompt")};
  const std::string& file = in.set.text("prompts");
  const auto text = file_text(file);
  if (!text) return std::unexpected(text.error());
  std::vector<std::string> out;
  for (const auto line : std::views::split(*text, '\n')) {
    std::string prompt(line.begin(), line.end());
    if (prompt.ends_with('\r')) prompt.pop_back();
    if (!prompt.empty()) out.push_back(std::move(prompt));
  }
  if (out.empty()) return fail(exit_code::usage, fmt::format("{} has no prompts", file));
  return out;
}

result<std::vector<crossval::asked_prompt>> tokenized(const bitnet_model* model,
                                                      const std::vector<std::string>& prompts) {
  std::vector<crossval::asked_prompt> out;
  uint64_t bytes = 0;
  for (const std::string& text : prompts) {
    auto ids = tokenize(model, text, BITNET_TOKENIZE_MODEL_BOS);
    if (!ids) return std::unexpected(ids.error());
    if (ids->empty() || ids->size() > crossval::most_tokens)
      return fail(exit_code::usage, fmt::format("prompt {} has {} tokens, expected 1 to {}",
                                                out.size(), ids->size(), crossval::most_tokens));
    bytes += text.size() + sizeof(int32_t) * ids->size();
    out.push_back({text, {ids->begin(), ids->end()}});
  }
  if (bytes <= crossval::longest_request) return out;
  return fail(exit_code::usage, fmt::format("the prompts have {} bytes with their tokens, {} are "
                                            "the most",
                                            bytes, crossval::longest_request));
}

result<void> own_rows(bitnet_session* session, std::span<const int32_t> ids,
                      std::span<float> rows) {
  library_error err;
  const bitnet_status status =
      bitnet_session_eval(session, ids.data(), ids.size(), 1, rows.data(), rows.size(), &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return {};
}

// Compares the positions of one prompt in both engines.
result<crossval::prompt_comparison::outcome> compare_prompt(const invocation& in, const engine& all,
                                                            other_engine& other,
                                                            const crossval::asked_prompt& asked,
                                                            uint32_t n_vocab,
                                                            const crossval::bounds& within) {
  const auto theirs = other.ask("loading a prompt", &crossval::stream_reader::tokens);
  if (!theirs) return std::unexpected(theirs.error());
  crossval::prompt_comparison out(asked.ids, *theirs, within);
  const std::size_t common = crossval::common_length(asked.ids, *theirs);
  library_error err;
  if (const bitnet_status status = bitnet_session_truncate(all.session.get(), 0, &err);
      status != BITNET_OK)
    return std::unexpected(failed(status, err, stage::work).error());
  const std::size_t fit = most_bytes_of_rows / (sizeof(float) * n_vocab);
  const std::size_t step = std::clamp<std::size_t>(fit, 1, step_size(in.set));
  std::vector<float> ours(std::min(step, common) * n_vocab);
  std::vector<float> row(n_vocab);
  for (std::size_t at = 0; at < common; at += step) {
    const std::size_t n = std::min(step, common - at);
    const std::span<float> rows(ours.data(), n * n_vocab);
    if (auto done = own_rows(all.session.get(), std::span(asked.ids).subspan(at, n), rows); !done)
      return std::unexpected(done.error());
    for (std::size_t i = 0; i < n; ++i) {
      if (auto done = other.row("computing a token", row); !done)
        return std::unexpected(done.error());
      out.add(crossval::compare_rows(rows.subspan(i * n_vocab, n_vocab), row));
    }
  }
  return out.found();
}

result<void> compare_prompts(const invocation& in, const engine& all, other_engine& other,
                             const std::vector<crossval::asked_prompt>& asked,
                             crossval_report& report) {
  auto version = other.ask("loading the library", &crossval::stream_reader::library);
  if (!version) return std::unexpected(version.error());
  report.library_version = *std::move(version);
  auto model = other.ask("loading the model", &crossval::stream_reader::model);
  if (!model) return std::unexpected(model.error());
  report.other_model = *std::move(model);
  const uint32_t n_vocab = describe(all.model.get()).n_vocab;
  if (report.other_model.n_vocab != n_vocab)
    return fail(exit_code::no_comparison,
                fmt::format("the other engine has logits of {} tokens for this model, bitnet has "
                            "{}: give both the same file",
                            report.other_model.n_vocab, n_vocab));
  progress_bar bar(in.out, "comparing");
  for (const crossval::asked_prompt& one : asked) {
    auto compared = compare_prompt(in, all, other, one, n_vocab, report.within);
    if (!compared) return std::unexpected(compared.error());
    report.prompts.push_back(*compared);
    bar.update(report.prompts.size(), asked.size());
  }
  return other.ask("ending", &crossval::stream_reader::done);
}

crossval::bounds bounds_of(const settings& set) {
  crossval::bounds out;
  out.min_cosine = set.real("min-cosine");
  if (set.given("max-abs")) out.max_abs = set.real("max-abs");
  return out;
}

result<uint32_t> context_for(const bitnet_model* model,
                             const std::vector<crossval::asked_prompt>& asked) {
  std::size_t longest = 0;
  for (const crossval::asked_prompt& one : asked) longest = std::max(longest, one.ids.size());
  const uint32_t trained = describe(model).n_context;
  if (trained == 0 || longest <= trained) return static_cast<uint32_t>(longest);
  return fail(exit_code::usage,
              fmt::format("a prompt has {} tokens, the model was trained for {}: shorten it",
                          longest, trained));
}

result<std::vector<crossval::asked_prompt>> prompts_for(const invocation& in,
                                                        const std::string& file,
                                                        const std::vector<std::string>& prompts,
                                                        uint32_t& n_context) {
  const auto vocabulary = open_vocabulary(in, file);
  if (!vocabulary) return std::unexpected(vocabulary.error());
  auto asked = tokenized(vocabulary->get(), prompts);
  if (!asked) return asked;
  const auto needed = context_for(vocabulary->get(), *asked);
  if (!needed) return std::unexpected(needed.error());
  n_context = *needed;
  return asked;
}

// A receipt needs an answer, so generate one token after the last prompt.
result<void> answer_once(bitnet_session* session, std::span<const int32_t> prompt) {
  library_error err;
  bitnet_status status = bitnet_session_truncate(session, 0, &err);
  const greedy one_token(1);
  bitnet_generation_result out{};
  out.struct_size = sizeof out;
  if (status == BITNET_OK)
    status =
        bitnet_generate(session, prompt.data(), prompt.size(), &one_token.options(), &out, &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return {};
}

result<int> reported(const invocation& in, const engine& all, std::span<const int32_t> last_prompt,
                     const crossval_report& report) {
  if (auto done = print(report_text(report, in.set.text("output-format"))); !done)
    return std::unexpected(done.error());
  const int code = report.agrees() ? exit_code::ok : exit_code::not_the_same;
  if (in.set.text("receipt").empty()) return code;
  if (auto done = answer_once(all.session.get(), last_prompt); !done)
    return std::unexpected(done.error());
  return with_receipt(in, all, code, parity_facts(report));
}

result<int> compare_with_build(const invocation& in, const std::string& wanted) {
  const auto prompts = given_prompts(in);
  if (!prompts) return std::unexpected(prompts.error());
  const auto file = find_model(wanted, in.variables);
  if (!file) return std::unexpected(file.error());
  const find_report searched = search_build(in);
  if (!searched.found.found)
    return fail(exit_code::unavailable,
                fmt::format("no build of llama.cpp or bitnet.cpp was found, by {}: set "
                            "BITNET_CPP_DIR to its root or BITNET_CROSSVAL_LIBDIR to the folder "
                            "of its libllama.so; `bitnet crossval find` lists what was searched",
                            searched.origin));
  uint32_t n_context = 0;
  const auto asked = prompts_for(in, *file, *prompts, n_context);
  if (!asked) return std::unexpected(asked.error());
  crossval_report report;
  report.other = *searched.found.found;
  report.within = bounds_of(in.set);
  auto process = start_other(in, report.other, std::filesystem::absolute(*file).string(),
                             crossval::write_request(*asked));
  if (!process) return std::unexpected(process.error());
  other_engine other(*std::move(process));  // both load the model at the same time
  const auto all = open_silently(in, wanted, n_context, false);
  if (!all) return std::unexpected(all.error());
  report.model = all->file;
  if (const auto of = runtime_report(all->runtime.get())) report.device = member(*of, "device");
  const interrupt::scope until_compared(all->session.get());
  if (auto done = compare_prompts(in, *all, other, *asked, report); !done)
    return std::unexpected(done.error());
  return reported(in, *all, asked->back().ids, report);
}

}  // namespace

result<int> crossval_command(const invocation& in) {
  const std::string& format = in.set.text("output-format");
  if (format != "md" && format != "json")
    return fail(exit_code::usage, fmt::format("crossval prints md or json (-o), found {}", format));
  if (in.variables.rights() == privilege::raised)
    return fail(exit_code::usage,
                "crossval runs code of other people's libraries, so not with raised privileges");
  if (in.positionals.size() == 1 && in.positionals.front() == "find") return find_build(in);
  const model_and_rest words = split_positionals(in);
  if (!words.rest.empty())
    return fail(exit_code::usage, fmt::format("unexpected '{}'; crossval takes `find` or one model",
                                              words.rest.front()));
  return compare_with_build(in, words.model);
}

}  // namespace bitnet::host
