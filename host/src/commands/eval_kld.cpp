// bitnet eval kld: compares a model's probabilities with saved ones of another model.
#include <fmt/format.h>

#include <filesystem>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "commands/eval_commands.hpp"
#include "commands/eval_text.hpp"
#include "eval/divergence.hpp"
#include "eval/logits_file.hpp"
#include "model_files/find_model.hpp"
#include "process/interrupt.hpp"
#include "terminal/progress.hpp"

namespace bitnet::host {
namespace {

using nlohmann::ordered_json;

// ---- saving ------------------------------------------------------------------------------------

std::unexpected<failure> unwritten(const std::string& file, const std::string& why) {
  return fail(exit_code::failure, fmt::format("cannot write {}: {}", file, why));
}

result<void> save_chunks(const invocation& in, const engine& all, const text_chunks& chunks,
                         eval::logits_writer& to, eval::token_tally& tally) {
  const std::string& file = in.set.text("save-logits");
  const interrupt::scope until_saved(all.session.get());
  const uint32_t n_vocab = describe(all.model.get()).n_vocab;
  progress_bar bar(in.out, "saving");
  for (uint64_t i = 0; i < chunks.n_chunks; ++i) {
    const auto sizes = sizes_of(all.model.get(), chunks.chunk(i), chunks.rule);
    if (!sizes) return std::unexpected(sizes.error());
    std::size_t at = 0;
    const auto done = evaluate_chunk(
        all.session.get(), in.set, chunks.chunk(i), chunks.rule, n_vocab,
        [&](std::span<const float> rows, std::span<const bitnet_token> targets) -> result<void> {
          if (auto put = to.write(rows); !put) return unwritten(file, put.error());
          add_rows(tally, rows, targets, std::span(*sizes).subspan(at));
          at += targets.size();
          return {};
        });
    if (!done) return done;
    if (auto ended = to.end_chunk(); !ended) return unwritten(file, ended.error());
    bar.update(i + 1, chunks.n_chunks);
  }
  if (auto done = to.finish(); !done) return unwritten(file, done.error());
  return {};
}

result<int> save_base(const invocation& in, const std::string& wanted) {
  const std::string& file = in.set.text("save-logits");
  if (auto fine = check_is_no_model(file); !fine) return std::unexpected(fine.error());
  const auto context = eval_context(in.set);
  if (!context) return std::unexpected(context.error());
  const auto text = eval_text(in.set);
  if (!text) return std::unexpected(text.error());
  const auto all = open_eval(in, wanted, *context);
  if (!all) return std::unexpected(all.error());
  const auto chunks = chunks_of(in.set, all->model.get(), *text, *context);
  if (!chunks) return std::unexpected(chunks.error());
  auto to = eval::logits_writer::create(
      file, {.model = std::filesystem::path(all->file).filename().string(),
             .n_vocab = describe(all->model.get()).n_vocab,
             .n_context = *context,
             .n_chunks = static_cast<uint32_t>(chunks->n_chunks),
             .tokens = chunks->tokens});
  if (!to) return unwritten(file, to.error());
  eval::token_tally tally;
  if (auto done = save_chunks(in, *all, *chunks, *to, tally); !done)
    return std::unexpected(done.error());
  std::string out = tally_lines(tally, *chunks);
  if (in.set.flag("json")) {
    ordered_json content = eval_report("ppl", all->file, all->runtime.get(), all->model.get());
    add_tally(content, tally, *chunks);
    out = eval_line(content);
  }
  if (auto done = print(out); !done) return std::unexpected(done.error());
  return exit_code::ok;
}

// ---- comparing ---------------------------------------------------------------------------------

std::unexpected<failure> unreadable(const std::string& file, const std::string& why) {
  return fail(exit_code::usage, fmt::format("{}: {}", file, why));
}

result<void> compare_chunks(const invocation& in, const engine& all, eval::logits_reader& base,
                            const text_chunks& chunks, eval::divergence& to) {
  const std::string& file = in.set.text("compare");
  const interrupt::scope until_compared(all.session.get());
  const uint32_t n_vocab = base.header().n_vocab;
  std::vector<float> saved;
  progress_bar bar(in.out, "comparing");
  for (uint64_t i = 0; i < chunks.n_chunks; ++i) {
    const auto done = evaluate_chunk(
        all.session.get(), in.set, chunks.chunk(i), chunks.rule, n_vocab,
        [&](std::span<const float> rows, std::span<const bitnet_token> targets) -> result<void> {
          saved.resize(rows.size());
          if (auto got = base.read(saved); !got) return unreadable(file, got.error());
          for (std::size_t r = 0; r < targets.size(); ++r)
            to.add(std::span<const float>(saved).subspan(r * n_vocab, n_vocab),
                   rows.subspan(r * n_vocab, n_vocab), static_cast<std::size_t>(targets[r]));
          return {};
        });
    if (!done) return done;
    if (auto ended = base.end_chunk(); !ended) return unreadable(file, ended.error());
    bar.update(i + 1, chunks.n_chunks);
  }
  return {};
}

ordered_json estimate_json(const eval::estimate& x) {
  return {{"value", x.value}, {"error", x.error}};
}

ordered_json quantiles_json(const std::vector<eval::quantile>& all) {
  ordered_json out = ordered_json::array();
  for (const eval::quantile& q : all)
    out.push_back({{"percent", q.percent}, {"value", q.value}, {"low", q.low}, {"high", q.high}});
  return out;
}

void add_summary(ordered_json& to, const eval::divergence_summary& s) {
  const auto [low, high] = s.same_top.wilson();
  to["n_scored"] = s.n;
  to["base_ppl"] = estimate_json(s.base_ppl);
  to["ppl"] = estimate_json(s.ppl);
  to["ln_ppl_ratio"] = estimate_json(s.log_ratio);
  to["kld"] = estimate_json(s.kld);
  to["kld_min"] = s.kld_min;
  to["kld_max"] = s.kld_max;
  to["kld_quantiles"] = quantiles_json(s.kld_quantiles);
  to["same_top"] = {
      {"n", s.same_top.n}, {"value", s.same_top.value()}, {"low", low}, {"high", high}};
  to["delta_p"] = estimate_json(s.delta_p);
  to["rms_delta_p"] = estimate_json(s.rms_delta_p);
  to["delta_p_quantiles"] = quantiles_json(s.delta_p_quantiles);
}

std::string as_text(const eval::divergence_summary& s, const std::string& base) {
  const auto [low, high] = s.same_top.wilson();
  std::string out = fmt::format(
      "{} positions, against {}\n"
      "PPL of the base     {:12.6f} +/- {:.6f}\n"
      "PPL                 {:12.6f} +/- {:.6f}\n"
      "ln(PPL / base)      {:12.6f} +/- {:.6f}\n"
      "mean KLD            {:12.6g} +/- {:.6g}\n",
      s.n, base, s.base_ppl.value, s.base_ppl.error, s.ppl.value, s.ppl.error, s.log_ratio.value,
      s.log_ratio.error, s.kld.value, s.kld.error);
  out += fmt::format("maximum KLD         {:12.6g}\n", s.kld_max);
  for (auto q = s.kld_quantiles.rbegin(); q != s.kld_quantiles.rend(); ++q)
    out += fmt::format("{:4} % KLD          {:12.6g} 95 % interval {:.6g} to {:.6g}\n", q->percent,
                       q->value, q->low, q->high);
  out += fmt::format("minimum KLD         {:12.6g}\n", s.kld_min);
  out += fmt::format("same top token    {:12.4f} % 95 % interval {:.4f} to {:.4f}\n",
                     100 * s.same_top.value(), 100 * low, 100 * high);
  out += fmt::format("mean delta p      {:12.6f} % +/- {:.6f}\n", 100 * s.delta_p.value,
                     100 * s.delta_p.error);
  return out + fmt::format("RMS delta p       {:12.6f} % +/- {:.6f}\n", 100 * s.rms_delta_p.value,
                           100 * s.rms_delta_p.error);
}

// The file's chunks, at most --chunks of them.
text_chunks chunks_in(const eval::logits_header& header, int64_t most) {
  text_chunks out;
  out.rule.n_context = header.n_context;
  out.n_tokens = header.tokens.size();
  out.n_chunks = out.rule.n_chunks(out.n_tokens, most);
  out.tokens = header.tokens;
  return out;
}

result<int> compare_with_base(const invocation& in, const std::string& wanted) {
  const std::string& file = in.set.text("compare");
  for (const char* other : {"file", "ctx-size"})
    if (in.set.flagged(other))
      return fail(exit_code::usage,
                  fmt::format("--compare takes its text from {}: leave --{}", file, other));
  auto base = eval::logits_reader::open(file);
  if (!base) return unreadable(file, base.error());
  const text_chunks chunks = chunks_in(base->header(), in.set.integer("chunks"));
  const auto all = open_eval(in, wanted, base->header().n_context);
  if (!all) return std::unexpected(all.error());
  const uint32_t n_vocab = describe(all->model.get()).n_vocab;
  if (n_vocab != base->header().n_vocab)
    return fail(exit_code::usage,
                fmt::format("{} has logits of {} tokens, the model has {}: they have different "
                            "vocabularies",
                            file, base->header().n_vocab, n_vocab));
  eval::divergence found;
  if (auto done = compare_chunks(in, *all, *base, chunks, found); !done)
    return std::unexpected(done.error());
  const eval::divergence_summary summary = found.summary();
  std::string out = as_text(summary, base->header().model);
  if (in.set.flag("json")) {
    ordered_json content = eval_report("kld", all->file, all->runtime.get(), all->model.get());
    content["base"] = base->header().model;
    content["n_ctx"] = chunks.rule.n_context;
    content["n_chunks"] = chunks.n_chunks;
    add_summary(content, summary);
    out = eval_line(content);
  }
  if (auto done = print(out); !done) return std::unexpected(done.error());
  return exit_code::ok;
}

}  // namespace

result<int> eval_kld(const invocation& in, const std::string& wanted) {
  const bool saves = in.set.given("save-logits");
  if (saves == in.set.given("compare"))
    return fail(exit_code::usage,
                "kld needs --save-logits FILE, which writes the logits of a base model, or "
                "--compare FILE, which reads them: one of both");
  return saves ? save_base(in, wanted) : compare_with_base(in, wanted);
}

}  // namespace bitnet::host
