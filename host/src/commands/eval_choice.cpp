// bitnet eval choice: how many questions with given answers a model answers rightly.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "batch/line_reader.hpp"
#include "commands/eval_commands.hpp"
#include "commands/figures.hpp"
#include "eval/choices.hpp"
#include "interrupt.hpp"
#include "library/advice.hpp"
#include "library/json.hpp"
#include "model_files.hpp"
#include "terminal/output.hpp"
#include "terminal/progress.hpp"

namespace bitnet::host {
namespace {

// ---- the questions -----------------------------------------------------------------------------

std::unexpected<failure> wrong_line(const std::string& file, uint64_t line,
                                    const std::string& why) {
  return fail(exit_code::usage, fmt::format("{}:{}: {}", file, line, why));
}

result<std::vector<eval::choice_item>> read_items(const std::string& file) {
  auto from = batch::line_reader::open(file);
  if (!from) return std::unexpected(from.error());
  std::vector<eval::choice_item> out;
  while (true) {
    auto line = from->take();
    if (!line) return std::unexpected(line.error());
    const auto& read = *line;
    if (!read && from->at_end()) break;
    if (!read) {
      if (auto more = from->read_more(); !more) return std::unexpected(more.error());
      continue;
    }
    if (!read->fault.empty()) return wrong_line(file, read->number, read->fault);
    auto item = eval::read_choice_item(read->text);
    if (!item) return wrong_line(file, read->number, item.error());
    item->line = read->number;
    out.push_back(*std::move(item));
  }
  if (out.empty()) return fail(exit_code::usage, fmt::format("{} has no questions", file));
  return out;
}

// ---- what is computed --------------------------------------------------------------------------

// One ending behind its context.
struct candidate {
  std::size_t item = 0, ending = 0;
  token_list ids;
  std::size_t n_context = 0;  // of these: tokens before the ending
};

result<std::vector<candidate>> candidates_of(const std::string& file, const bitnet_model* model,
                                             const std::vector<eval::choice_item>& items) {
  std::vector<candidate> out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const eval::choice_item& item = items[i];
    const auto context = tokenize(model, item.context, BITNET_TOKENIZE_MODEL_BOS);
    if (!context) return wrong_line(file, item.line, context.error().message);
    for (std::size_t e = 0; e < item.endings.size(); ++e) {
      auto ids = tokenize(model, eval::joined(item, e), BITNET_TOKENIZE_MODEL_BOS);
      if (!ids) return wrong_line(file, item.line, ids.error().message);
      const std::size_t n = eval::common_prefix(*context, *ids);
      if (n == 0 || n == ids->size())
        return wrong_line(file, item.line,
                          fmt::format("ending {} has no tokens of its own behind the context", e));
      out.push_back({i, e, *std::move(ids), n});
    }
  }
  return out;
}

// Tokens of a sequence. The longest one must fit, and a step has no more tokens than a sequence.
result<uint32_t> context_for(const invocation& in, const std::vector<eval::choice_item>& items,
                             const std::vector<candidate>& all, uint32_t trained) {
  const auto longest =
      std::ranges::max_element(all, {}, [](const candidate& one) { return one.ids.size(); });
  const std::size_t needed = longest->ids.size() + 1;
  const auto asked = static_cast<std::size_t>(in.set.integer("ctx-size"));
  const std::size_t most = asked != 0 ? asked : trained != 0 ? trained : needed;
  if (needed > most)
    return wrong_line(in.set.text("file"), items[longest->item].line,
                      fmt::format("the question with ending {} has {} tokens; a context of {} has "
                                  "no room for it: -c N asks for more",
                                  longest->ending, needed - 1, most));
  return static_cast<uint32_t>(
      std::max<std::size_t>(needed, std::min<std::size_t>(step_size(in.set), most)));
}

// Scores candidates, many at once, by the log probabilities of their prompts.
class choice_runner {
 public:
  choice_runner(const invocation& in, bitnet_scheduler* scheduler, std::size_t most_running,
                const std::vector<candidate>& all)
      : in_(in), scheduler_(scheduler), most_running_(most_running), all_(all), sums_(all.size()) {
    how_.struct_size = sizeof how_;
    bitnet_generation_defaults(&how_, sizeof how_);
    how_.max_tokens = 0;
  }

  // Log probabilities of the endings, in the order of the candidates.
  result<std::vector<double>> run() {
    const interrupt::scope until_scored;
    progress_bar bar(in_.out, "scoring");
    while (n_ended_ < all_.size()) {
      if (auto ok = submit(); !ok) return std::unexpected(ok.error());
      bitnet_request* ready = nullptr;
      library_error err;
      const bitnet_status status = bitnet_scheduler_wait(scheduler_, 0, &ready, &err);
      if (status == BITNET_OK) {
        if (auto ok = take(ready); !ok) return std::unexpected(ok.error());
        bar.update(n_ended_, all_.size());
      } else if (status != BITNET_TIMEOUT) {
        return failed(status, err, stage::work);
      } else if (!interrupt::wait_readable(bitnet_scheduler_descriptor(scheduler_))) {
        return fail(exit_code::interrupted, "interrupted");
      }
    }
    return std::move(sums_);
  }

 private:
  struct running {
    request_handle handle;
    std::size_t index;       // of the candidate
    std::size_t n_seen = 0;  // tokens whose probability came
  };

  result<void> submit() {
    while (next_ < all_.size() && running_.size() < most_running_) {
      bitnet_request_options options{};
      bitnet_request_defaults(&options, sizeof options);
      options.prompt = all_[next_].ids.data();
      options.n_prompt = all_[next_].ids.size();
      options.generation = &how_;
      options.prompt_logprobs = 1;
      library_error err;
      bitnet_request* request = nullptr;
      const bitnet_status status = bitnet_request_submit(scheduler_, &options, &request, &err);
      if (status == BITNET_BUSY && !running_.empty()) return {};
      if (status != BITNET_OK) return failed(status, err, stage::work);
      running_.emplace(request, running{request_handle(request), next_++});
    }
    return {};
  }

  result<void> take(bitnet_request* request) {
    running& at = running_.at(request);
    while (true) {
      bitnet_event e{};
      e.struct_size = sizeof e;
      library_error err;
      const bitnet_status status = bitnet_request_next(request, 0, &e, &err);
      if (status == BITNET_TIMEOUT) return {};
      if (status != BITNET_OK) return failed(status, err, stage::work);
      if (e.kind == BITNET_EVENT_FAILED)
        return fail(exit_code_of(e.status, stage::work),
                    in_flags(std::string(e.message.data, e.message.size)));
      if (e.kind == BITNET_EVENT_PROMPT && at.n_seen++ >= all_[at.index].n_context)
        sums_[at.index] += static_cast<double>(e.logprob);
      if (e.kind == BITNET_EVENT_END) return end(request, at);
    }
  }

  result<void> end(bitnet_request* request, const running& at) {
    const std::size_t n_tokens = all_[at.index].ids.size();
    if (at.n_seen != n_tokens)
      return fail(exit_code::failure,
                  fmt::format("the backend gave the probabilities of {} tokens in place of {}",
                              at.n_seen, n_tokens));
    running_.erase(request);
    ++n_ended_;
    return {};
  }

  const invocation& in_;
  bitnet_scheduler* scheduler_;
  std::size_t most_running_;
  const std::vector<candidate>& all_;
  std::vector<double> sums_;
  bitnet_generation how_{};
  std::unordered_map<const bitnet_request*, running> running_;
  std::size_t next_ = 0, n_ended_ = 0;
};

// ---- what is printed ---------------------------------------------------------------------------

std::vector<eval::choice_score> scores_of(const std::vector<eval::choice_item>& items,
                                          const std::vector<candidate>& all,
                                          const std::vector<double>& sums) {
  std::vector<eval::choice_score> out(items.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    eval::choice_score& to = out[all[i].item];
    to.logprobs.push_back(sums[i]);
    to.lengths.push_back(
        static_cast<double>(eval::characters_of(items[all[i].item].endings[all[i].ending])));
  }
  return out;
}

ordered_json share_json(const eval::share& x) {
  const auto [low, high] = x.wilson();
  return {{"n", x.n}, {"value", x.value()}, {"low", low}, {"high", high}};
}

std::string choice_json(ordered_json content, const eval::choice_summary& summary,
                        const std::vector<eval::choice_item>& items,
                        const std::vector<eval::choice_score>& scores) {
  content["n_items"] = items.size();
  content["accuracy"] = share_json(summary.right);
  content["accuracy_normalised"] = share_json(summary.right_normalised);
  content["random"] = summary.random;
  content["items"] = ordered_json::array();
  for (std::size_t i = 0; i < items.size(); ++i)
    content["items"].push_back({{"line", items[i].line},
                                {"label", items[i].label},
                                {"chosen", eval::chosen(scores[i], false)},
                                {"chosen_normalised", eval::chosen(scores[i], true)},
                                {"logprobs", scores[i].logprobs}});
  return content.dump() + "\n";
}

std::string choice_text(const eval::choice_summary& summary, std::size_t n_items) {
  const auto line = [](const char* name, const eval::share& x) {
    const auto [low, high] = x.wilson();
    return fmt::format("{:<21}{:6.2f} %, 95 % interval {:.2f} to {:.2f}\n", name, 100 * x.value(),
                       100 * low, 100 * high);
  };
  return line("accuracy", summary.right) + line("accuracy, normalised", summary.right_normalised) +
         fmt::format("{:<21}{:6.2f} %\n{} questions\n", "random", 100 * summary.random, n_items);
}

}  // namespace

result<int> eval_choice(const invocation& in, const std::string& wanted) {
  const std::string& questions = in.set.text("file");
  if (questions.empty()) return fail(exit_code::usage, "choice needs questions: -f FILE.jsonl");
  uint32_t n_parallel = 32;
  if (in.set.given("parallel")) {
    const auto given = counts(in.set, "parallel", "requests", 1, most_parallel);
    if (!given) return std::unexpected(given.error());
    if (given->size() != 1) return fail(exit_code::usage, "choice takes one number as --parallel");
    n_parallel = given->front();
  }
  const auto items = read_items(questions);
  if (!items) return std::unexpected(items.error());
  const auto file = find_model(wanted, in.variables);
  if (!file) return std::unexpected(file.error());
  const auto runtime = open_runtime(in);
  if (!runtime) return std::unexpected(runtime.error());
  const auto model =
      open_model(in, runtime->get(), *file, static_cast<uint32_t>(in.set.integer("ctx-size")));
  if (!model) return std::unexpected(model.error());
  const auto all = candidates_of(questions, model->get(), *items);
  if (!all) return std::unexpected(all.error());
  const auto context = context_for(in, *items, *all, describe(model->get()).n_context);
  if (!context) return std::unexpected(context.error());
  const auto scheduler = open_scheduler(in, model->get(), *context, n_parallel);
  if (!scheduler) return std::unexpected(scheduler.error());
  const auto sums = choice_runner(in, scheduler->get(), std::size_t{2} * n_parallel, *all).run();
  if (!sums) return std::unexpected(sums.error());

  const auto scores = scores_of(*items, *all, *sums);
  const auto summary = eval::summary_of(*items, scores);
  const std::string out =
      in.set.flag("json") ? choice_json(eval_head("choice", *file, runtime->get(), model->get()),
                                        summary, *items, scores)
                          : choice_text(summary, items->size());
  if (auto done = print(out); !done) return std::unexpected(done.error());
  return exit_code::ok;
}

}  // namespace bitnet::host
