// bitnet eval choice: counts the multiple-choice questions that a model answers correctly.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "batch/line_reader.hpp"
#include "commands/eval_commands.hpp"
#include "commands/figures.hpp"
#include "eval/choices.hpp"
#include "model_files/find_model.hpp"
#include "process/interrupt.hpp"
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

// A question as tokens: the prefix that all endings share, and the rest of each.
struct token_item {
  token_list context;            // at least one
  std::vector<token_list> rest;  // at least one each
  // For each ending, how many leading tokens of `rest` belong to the context and are not scored.
  std::vector<std::size_t> skipped;

  [[nodiscard]] std::size_t longest() const {
    return context.size() + std::ranges::max(rest, {}, &token_list::size).size();
  }
};

// Moves the common prefix of the complete texts in `rest` to `context`, at most `n_before` tokens
// of each.
void share_context(token_item& to, const std::vector<std::size_t>& n_before) {
  std::size_t n = std::ranges::min(n_before);
  for (const token_list& one : to.rest) n = std::min(n, eval::common_prefix(to.rest.front(), one));
  to.context.assign(to.rest.front().begin(),
                    to.rest.front().begin() + static_cast<std::ptrdiff_t>(n));
  for (std::size_t i = 0; i < to.rest.size(); ++i) {
    to.rest[i].erase(to.rest[i].begin(), to.rest[i].begin() + static_cast<std::ptrdiff_t>(n));
    to.skipped.push_back(n_before[i] - n);
  }
}

result<token_item> tokens_of(const std::string& file, const bitnet_model* model,
                             const eval::choice_item& item) {
  const auto context = tokenize(model, item.context, BITNET_TOKENIZE_MODEL_BOS);
  if (!context) return wrong_line(file, item.line, context.error().message);
  token_item out;
  std::vector<std::size_t> n_before;  // length of the prefix shared with the context's own tokens
  for (std::size_t e = 0; e < item.endings.size(); ++e) {
    auto ids = tokenize(model, eval::joined(item, e), BITNET_TOKENIZE_MODEL_BOS);
    if (!ids) return wrong_line(file, item.line, ids.error().message);
    n_before.push_back(eval::common_prefix(*context, *ids));
    if (n_before.back() == 0)
      return wrong_line(file, item.line,
                        fmt::format("with ending {} all tokens of the context are other ones", e));
    if (n_before.back() == ids->size())
      return wrong_line(file, item.line,
                        fmt::format("ending {} has no tokens of its own behind the context", e));
    out.rest.push_back(*std::move(ids));
  }
  share_context(out, n_before);
  return out;
}

result<std::vector<token_item>> tokens_of(const std::string& file, const bitnet_model* model,
                                          const std::vector<eval::choice_item>& items) {
  std::vector<token_item> out;
  out.reserve(items.size());
  for (const eval::choice_item& item : items) {
    auto one = tokens_of(file, model, item);
    if (!one) return std::unexpected(one.error());
    out.push_back(*std::move(one));
  }
  return out;
}

// Size of the session's context: the longest question must fit.
result<uint32_t> context_for(const invocation& in, const std::vector<eval::choice_item>& items,
                             const std::vector<token_item>& all, uint32_t trained) {
  const auto longest = std::ranges::max_element(all, {}, &token_item::longest);
  const std::size_t needed = longest->longest();
  const auto asked = static_cast<std::size_t>(in.set.integer("ctx-size"));
  const std::size_t most = asked != 0 ? asked : trained != 0 ? trained : needed;
  if (needed > most)
    return wrong_line(in.set.text("file"),
                      items[static_cast<std::size_t>(longest - all.begin())].line,
                      fmt::format("the question with its longest ending has {} tokens; a context "
                                  "of {} has no room for it; use a larger -c",
                                  needed, most));
  return static_cast<uint32_t>(needed);
}

// Scores questions in one session. A context is evaluated once for all its endings.
class choice_scorer {
 public:
  choice_scorer(bitnet_session* session, uint32_t n_vocab) : session_(session), n_vocab_(n_vocab) {}

  // Returns the log probability of each ending.
  result<std::vector<double>> score(const token_item& item) {
    if (auto done = truncate(0); !done) return std::unexpected(done.error());
    std::vector<float> last(n_vocab_);
    if (auto done = append(item.context, false, last); !done) return std::unexpected(done.error());
    std::vector<double> out;
    for (std::size_t e = 0; e < item.rest.size(); ++e) {
      if (auto done = truncate(item.context.size()); !done) return std::unexpected(done.error());
      const auto sum = score_ending(item.rest[e], item.skipped[e], last);
      if (!sum) return std::unexpected(sum.error());
      out.push_back(*sum);
    }
    return out;
  }

 private:
  // `last`: logits after the context. Logits of the ending are computed several rows at a time.
  result<double> score_ending(std::span<const bitnet_token> ids, std::size_t skipped,
                              std::span<const float> last) {
    double sum = 0;
    const auto add = [&](std::span<const float> row, std::size_t at) {
      if (at >= skipped) sum += eval::log_softmax(row)[static_cast<std::size_t>(ids[at])];
    };
    add(last, 0);
    constexpr std::size_t most_bytes = 64U << 20;
    const std::size_t step = std::max<std::size_t>(most_bytes / (sizeof(float) * n_vocab_), 1);
    std::vector<float> rows;
    for (std::size_t at = 0; at + 1 < ids.size(); at += step) {
      const std::size_t n = std::min(step, ids.size() - 1 - at);
      rows.resize(n * n_vocab_);
      if (auto done = append(ids.subspan(at, n), true, rows); !done)
        return std::unexpected(done.error());
      for (std::size_t i = 0; i < n; ++i)
        add(std::span<const float>(rows).subspan(i * n_vocab_, n_vocab_), at + i + 1);
    }
    if (!std::isfinite(sum))
      return fail(exit_code::failure, "the model gives logits that are no finite numbers");
    return sum;
  }

  result<void> truncate(std::size_t n) {
    library_error err;
    const bitnet_status status = bitnet_session_truncate(session_, n, &err);
    if (status != BITNET_OK) return failed(status, err, stage::work);
    return {};
  }

  result<void> append(std::span<const bitnet_token> ids, bool all_rows, std::span<float> rows) {
    if (ids.empty()) return {};
    library_error err;
    const bitnet_status status = bitnet_session_eval(
        session_, ids.data(), ids.size(), all_rows ? 1 : 0, rows.data(), rows.size(), &err);
    if (status != BITNET_OK) return failed(status, err, stage::work);
    return {};
  }

  bitnet_session* session_;
  std::size_t n_vocab_;
};

result<std::vector<eval::choice_score>> scores_of(const invocation& in, bitnet_session* session,
                                                  uint32_t n_vocab,
                                                  const std::vector<eval::choice_item>& items,
                                                  const std::vector<token_item>& tokens) {
  const interrupt::scope until_scored(session);
  choice_scorer scorer(session, n_vocab);
  progress_bar bar(in.out, "scoring");
  std::vector<eval::choice_score> out;
  out.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    auto sums = scorer.score(tokens[i]);
    if (!sums) return std::unexpected(sums.error());
    eval::choice_score& to = out.emplace_back();
    to.logprobs = *std::move(sums);
    for (const std::string& ending : items[i].endings)
      to.lengths.push_back(static_cast<double>(eval::characters_of(ending)));
    bar.update(i + 1, items.size());
  }
  return out;
}

// ---- what is printed ---------------------------------------------------------------------------

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
  return eval_line(content);
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
  const auto items = read_items(questions);
  if (!items) return std::unexpected(items.error());
  const auto file = find_model(wanted, in.variables);
  if (!file) return std::unexpected(file.error());
  const auto runtime = open_runtime(in);
  if (!runtime) return std::unexpected(runtime.error());
  const auto model =
      open_model(in, runtime->get(), *file, static_cast<uint32_t>(in.set.integer("ctx-size")));
  if (!model) return std::unexpected(model.error());
  const auto tokens = tokens_of(questions, model->get(), *items);
  if (!tokens) return std::unexpected(tokens.error());
  const bitnet_model_info info = describe(model->get());
  const auto context = context_for(in, *items, *tokens, info.n_context);
  if (!context) return std::unexpected(context.error());
  const auto session = open_session(in, model->get(), *context, false);
  if (!session) return std::unexpected(session.error());
  note_layers(in.out, runtime->get(), session->get());
  const auto scores = scores_of(in, session->get(), info.n_vocab, *items, *tokens);
  if (!scores) return std::unexpected(scores.error());
  const auto summary = eval::summary_of(*items, *scores);
  const std::string out =
      in.set.flag("json") ? choice_json(eval_report("choice", *file, runtime->get(), model->get()),
                                        summary, *items, *scores)
                          : choice_text(summary, items->size());
  if (auto done = print(out); !done) return std::unexpected(done.error());
  return exit_code::ok;
}

}  // namespace bitnet::host
