#include "commands/eval_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "commands/prompt.hpp"

namespace bitnet::host {
namespace {

constexpr uint32_t usual_context = 512;  // as in llama-perplexity
constexpr uint32_t least_context = 4;
constexpr std::size_t most_row_bytes = 64U << 20;  // limit of logits per call

result<void> append(bitnet_session* session, std::span<const bitnet_token> ids,
                    std::span<float> rows) {
  library_error err;
  const bitnet_status status =
      bitnet_session_eval(session, ids.data(), ids.size(), rows.empty() ? 0 : 1,
                          rows.empty() ? nullptr : rows.data(), rows.size(), &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return {};
}

}  // namespace

result<uint32_t> eval_context(const settings& set) {
  const int64_t asked = set.integer("ctx-size");
  if (asked == 0) return usual_context;
  if (asked < least_context)
    return fail(exit_code::usage,
                fmt::format("--ctx-size is the length of a chunk, at least {} tokens; found {}",
                            least_context, asked));
  return static_cast<uint32_t>(asked);
}

result<std::string> eval_text(const settings& set) {
  if (!set.given("file")) return fail(exit_code::usage, "needs a text: -f FILE");
  auto text = file_text(set.text("file"));
  if (text) drop_last_newline(*text);
  return text;
}

result<text_chunks> chunks_of(const settings& set, const bitnet_model* model,
                              const std::string& text, uint32_t n_context) {
  auto ids = tokenize(model, text, BITNET_TOKENIZE_MODEL_BOS);
  if (!ids) return std::unexpected(ids.error());
  if (ids->size() < std::size_t{2} * n_context)
    return fail(exit_code::usage,
                fmt::format("the text has {} tokens; chunks of {} need at least {}: give a longer "
                            "text or a smaller -c",
                            ids->size(), n_context, 2 * n_context));
  text_chunks out;
  out.rule.n_context = n_context;
  out.n_tokens = ids->size();
  out.n_chunks = out.rule.n_chunks(ids->size(), set.integer("chunks"));
  ids->resize(out.n_chunks * n_context);
  const bitnet_model_info info = describe(model);
  if (info.add_bos != 0 && info.bos != BITNET_NONE)
    for (std::size_t at = 0; at < ids->size(); at += n_context)
      (*ids)[at] = static_cast<bitnet_token>(info.bos);
  out.tokens = *std::move(ids);
  return out;
}

result<engine> open_eval(const invocation& in, const std::string& wanted, uint32_t n_context) {
  auto all = open_silently(in, wanted, n_context, false);
  if (!all) return all;
  const uint32_t trained = describe(all->model.get()).n_context;
  if (trained != 0 && n_context > trained)
    in.out.warning(fmt::format("the model was trained for {} tokens of context; chunks have {}",
                               trained, n_context));
  note_layers(in.out, all->runtime.get(), all->session.get());
  return all;
}

result<void> evaluate_chunk(bitnet_session* session, const settings& set,
                            std::span<const bitnet_token> ids, const eval::chunk_rule& rule,
                            uint32_t n_vocab, const row_sink& sink) {
  library_error err;
  const bitnet_status status = bitnet_session_truncate(session, 0, &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  const std::size_t read_only = rule.first_scored() - 1;
  if (auto done = append(session, ids.first(read_only), {}); !done) return done;
  const std::size_t fit = most_row_bytes / (sizeof(float) * n_vocab);
  const std::size_t step = std::clamp<std::size_t>(fit, 1, step_size(set));
  std::vector<float> logits(std::min<std::size_t>(step, rule.n_scored()) * n_vocab);
  for (std::size_t at = read_only; at + 1 < ids.size(); at += step) {
    const std::size_t n = std::min(step, ids.size() - 1 - at);
    const std::span<float> rows(logits.data(), n * n_vocab);
    if (auto done = append(session, ids.subspan(at, n), rows); !done) return done;
    if (!std::ranges::all_of(rows, [](float x) { return std::isfinite(x); }))
      return fail(exit_code::failure, "the model gives logits that are no finite numbers");
    if (auto done = sink(rows, ids.subspan(at + 1, n)); !done) return done;
  }
  return {};
}

result<std::vector<std::size_t>> sizes_of(const bitnet_model* model,
                                          std::span<const bitnet_token> ids,
                                          const eval::chunk_rule& rule) {
  std::vector<std::size_t> out;
  out.reserve(rule.n_scored());
  // Measures each token after another one, since some vocabularies drop the first token's blank.
  for (std::size_t at = rule.first_scored(); at < ids.size(); ++at) {
    const auto before = detokenize(model, {ids[at - 1]}, 0);
    if (!before) return std::unexpected(before.error());
    const auto both = detokenize(model, {ids[at - 1], ids[at]}, 0);
    if (!both) return std::unexpected(both.error());
    out.push_back(both->size() - std::min(before->size(), both->size()));
  }
  return out;
}

void add_rows(eval::token_tally& to, std::span<const float> rows,
              std::span<const bitnet_token> targets, std::span<const std::size_t> sizes) {
  const std::size_t n_vocab = rows.size() / targets.size();
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const eval::log_softmax row(rows.subspan(i * n_vocab, n_vocab));
    to.add(-row[static_cast<std::size_t>(targets[i])], sizes[i]);
  }
}

std::string tally_lines(const eval::token_tally& tally, const text_chunks& of) {
  const eval::estimate ppl = tally.perplexity();
  std::string out =
      fmt::format("PPL = {:.4f} +/- {:.5f} ({} tokens in {} chunks of {})\n", ppl.value, ppl.error,
                  tally.tokens(), of.n_chunks, of.rule.n_context);
  if (tally.bytes() == 0) return out;
  const eval::estimate bits = tally.bits_per_byte();
  return out + fmt::format("bits per byte = {:.5f} +/- {:.5f} ({} bytes)\n", bits.value, bits.error,
                           tally.bytes());
}

void add_tally(nlohmann::ordered_json& to, const eval::token_tally& tally, const text_chunks& of) {
  to["n_ctx"] = of.rule.n_context;
  to["n_tokens"] = of.n_tokens;
  to["n_chunks"] = of.n_chunks;
  to["n_scored"] = tally.tokens();
  to["nll"] = tally.nll().value;
  to["nll_error"] = tally.nll().error;
  to["ppl"] = tally.perplexity().value;
  to["ppl_error"] = tally.perplexity().error;
  to["bytes"] = tally.bytes();
  if (tally.bytes() == 0) return;
  to["bits_per_byte"] = tally.bits_per_byte().value;
  to["bits_per_byte_error"] = tally.bits_per_byte().error;
}

}  // namespace bitnet::host
