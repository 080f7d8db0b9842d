// bitnet eval ppl: perplexity of a text, and its bits per byte.
#include <fmt/format.h>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "commands/eval_commands.hpp"
#include "commands/eval_text.hpp"
#include "process/interrupt.hpp"
#include "terminal/progress.hpp"

namespace bitnet::host {
namespace {

result<std::vector<double>> tally_chunks(const invocation& in, const engine& all,
                                         const text_chunks& chunks, eval::token_tally& tally) {
  const interrupt::scope until_read(all.session.get());
  const uint32_t n_vocab = describe(all.model.get()).n_vocab;
  progress_bar bar(in.out, "reading");
  std::vector<double> so_far;  // perplexity after each chunk
  for (uint64_t i = 0; i < chunks.n_chunks; ++i) {
    const auto sizes = sizes_of(all.model.get(), chunks.chunk(i), chunks.rule);
    if (!sizes) return std::unexpected(sizes.error());
    std::size_t at = 0;
    const auto done = evaluate_chunk(
        all.session.get(), in.set, chunks.chunk(i), chunks.rule, n_vocab,
        [&](std::span<const float> rows, std::span<const bitnet_token> targets) -> result<void> {
          add_rows(tally, rows, targets, std::span(*sizes).subspan(at));
          at += targets.size();
          return {};
        });
    if (!done) return std::unexpected(done.error());
    so_far.push_back(tally.perplexity().value);
    bar.update(i + 1, chunks.n_chunks);
  }
  return so_far;
}

}  // namespace

result<int> eval_ppl(const invocation& in, const std::string& wanted) {
  const auto context = eval_context(in.set);
  if (!context) return std::unexpected(context.error());
  const auto text = eval_text(in.set);
  if (!text) return std::unexpected(text.error());
  const auto all = open_eval(in, wanted, *context);
  if (!all) return std::unexpected(all.error());
  const auto chunks = chunks_of(in.set, all->model.get(), *text, *context);
  if (!chunks) return std::unexpected(chunks.error());
  eval::token_tally tally;
  const auto so_far = tally_chunks(in, *all, *chunks, tally);
  if (!so_far) return std::unexpected(so_far.error());

  std::string out = tally_lines(tally, *chunks);
  if (in.set.flag("json")) {
    auto content = eval_report("ppl", all->file, all->runtime.get(), all->model.get());
    add_tally(content, tally, *chunks);
    content["ppl_after_chunk"] = *so_far;
    out = eval_line(content);
  }
  if (auto done = print(out); !done) return std::unexpected(done.error());
  return exit_code::ok;
}

}  // namespace bitnet::host
