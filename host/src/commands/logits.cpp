// bitnet logits: writes the model's logits for a text as a NumPy array.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>

#include "basic/npy.hpp"
#include "commands/commands.hpp"
#include "commands/prompt.hpp"
#include "model_files/find_model.hpp"
#include "process/interrupt.hpp"
#include "session/generation.hpp"

namespace bitnet::host {
namespace {

// A text or ids; checked before a model is loaded for it.
struct input {
  std::optional<std::string> text;
  token_list ids;
};

result<input> given_input(const invocation& in) {
  auto ids = given_ids(in);
  if (!ids) return std::unexpected(ids.error());
  if (std::optional<token_list> one = *std::move(ids)) return input{std::nullopt, *std::move(one)};
  auto prompt = given_prompt(in, in.positionals);
  if (!prompt) return std::unexpected(prompt.error());
  if (!*prompt) return fail(exit_code::usage, "needs a text: -p TEXT, -f FILE or --ids \"1 2 3\"");
  return input{*std::move(prompt), {}};
}

result<token_list> ids_of(const invocation& in, const bitnet_model* model, const input& from) {
  if (!from.text) return from.ids;
  uint32_t flags = BITNET_TOKENIZE_MODEL_BOS;
  if (in.set.flag("parse-special")) flags |= BITNET_TOKENIZE_PARSE_SPECIAL;
  return tokenize(model, *from.text, flags);
}

result<void> check_ids(const token_list& ids, uint32_t n_vocab) {
  if (ids.empty()) return fail(exit_code::usage, "there are no tokens to evaluate");
  const auto bad = std::ranges::find_if(
      ids, [&](bitnet_token id) { return id < 0 || static_cast<uint32_t>(id) >= n_vocab; });
  if (bad == ids.end()) return {};
  return fail(exit_code::usage,
              fmt::format("token id {} is not in the vocabulary of {} tokens", *bad, n_vocab));
}

result<void> eval(bitnet_session* session, std::span<const bitnet_token> ids, bool all_rows,
                  std::span<float> logits) {
  library_error err;
  const bitnet_status status = bitnet_session_eval(
      session, ids.data(), ids.size(), all_rows ? 1 : 0, logits.data(), logits.size(), &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return {};
}

// Writes the rows of one step at a time, since a row per position takes much memory.
result<void> write_all_rows(bitnet_session* session, const token_list& ids, uint32_t n_vocab,
                            uint32_t step, npy_file& to) {
  std::vector<float> logits(std::min<std::size_t>(step, ids.size()) * n_vocab);
  for (std::size_t begin = 0; begin < ids.size(); begin += step) {
    const std::size_t n = std::min<std::size_t>(step, ids.size() - begin);
    const std::span<float> rows(logits.data(), n * n_vocab);
    if (auto done = eval(session, {ids.data() + begin, n}, true, rows); !done) return done;
    if (auto done = to.write(rows); !done) return done;
  }
  return {};
}

result<void> write_last_row(bitnet_session* session, const token_list& ids, uint32_t n_vocab,
                            npy_file& to) {
  std::vector<float> logits(n_vocab);
  if (auto done = eval(session, ids, false, logits); !done) return done;
  return to.write(logits);
}

}  // namespace

result<int> logits_command(const invocation& in) {
  const std::string& target = in.set.text("output");
  if (target.empty()) return fail(exit_code::usage, "needs a file to write: -o FILE.npy");
  if (auto fine = check_is_no_model(target); !fine) return std::unexpected(fine.error());
  auto from = given_input(in);
  if (!from) return std::unexpected(from.error());
  auto all = open_engine(in, in.set.text("model"));
  if (!all) return std::unexpected(all.error());
  auto ids = ids_of(in, all->model.get(), *from);
  if (!ids) return std::unexpected(ids.error());
  const uint32_t n_vocab = describe(all->model.get()).n_vocab;
  if (auto done = check_ids(*ids, n_vocab); !done) return std::unexpected(done.error());
  bitnet_session* const session = all->session.get();
  if (ids->size() > bitnet_session_capacity(session)) {
    return fail(exit_code::failure,
                fmt::format("{} tokens do not fit the context of {}; use a larger -c", ids->size(),
                            bitnet_session_capacity(session)));
  }

  const bool every = in.set.flag("all");
  std::vector<uint64_t> shape{n_vocab};
  if (every) shape.insert(shape.begin(), ids->size());
  auto file = npy_file::create(target, shape);
  if (!file) return std::unexpected(file.error());
  const auto begin = std::chrono::steady_clock::now();
  {
    const interrupt::scope until_written(session);
    auto done = every ? write_all_rows(session, *ids, n_vocab, step_size(in.set), *file)
                      : write_last_row(session, *ids, n_vocab, *file);
    if (done) done = file->commit();
    if (!done) return std::unexpected(done.error());
  }
  if (in.set.flag("perf")) {
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    in.out.line(fmt::format("{} tokens in {:.1f} ms", ids->size(), took.count()));
  }
  return exit_code::ok;
}

}  // namespace bitnet::host
