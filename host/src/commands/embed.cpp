// bitnet embed: computes vectors of texts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <utility>

#include "basic/npy.hpp"
#include "basic/output.hpp"
#include "commands/commands.hpp"
#include "commands/prompt.hpp"
#include "model_files/find_model.hpp"
#include "process/interrupt.hpp"
#include "session/generation.hpp"

namespace bitnet::host {
namespace {

// Splits text into lines without their newlines.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// One text, or one per line of standard input. An empty one is an error: leaving out its row would
// shift all later rows.
result<std::vector<std::string>> given_texts(const invocation& in) {
  auto prompt = given_prompt(in, in.positionals);
  if (!prompt) return std::unexpected(prompt.error());
  if (std::optional<std::string> one = *std::move(prompt)) {
    if (one->empty()) return fail(exit_code::usage, "the text is empty");
    return std::vector{*std::move(one)};
  }
  if (stdin_is_terminal()) {
    return fail(exit_code::usage, "needs a text: -p TEXT, -f FILE or lines on standard input");
  }
  auto piped = piped_text();
  if (!piped) return std::unexpected(piped.error());
  auto texts = lines_of(*piped);
  if (texts.empty()) return fail(exit_code::usage, "there is no text on standard input");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) {
      return fail(exit_code::usage, fmt::format("line {} of standard input is empty", i + 1));
    }
  }
  return texts;
}

result<void> check_output(const settings& set) {
  const bool npy = set.text("format") == "npy";
  if (!npy && set.given("output")) {
    return fail(exit_code::usage, "-o is for --format npy; other formats go to standard output");
  }
  return npy && set.given("output") ? check_is_no_model(set.text("output")) : result<void>{};
}

// Texts, or the tokens of a single one.
struct texts_or_ids {
  std::vector<std::string> texts;
  token_list ids;
};

result<texts_or_ids> given_texts_or_ids(const invocation& in) {
  auto ids = given_ids(in);
  if (!ids) return std::unexpected(ids.error());
  if (std::optional<token_list> one = *std::move(ids)) {
    if (one->empty()) return fail(exit_code::usage, "there are no tokens in --ids");
    return texts_or_ids{{}, *std::move(one)};
  }
  auto texts = given_texts(in);
  if (!texts) return std::unexpected(texts.error());
  return texts_or_ids{*std::move(texts), {}};
}

// Tokenizes each text. A text that does not fit the context is reported before anything is
// computed.
result<std::vector<token_list>> tokens_of(const engine& all, texts_or_ids from) {
  std::vector<token_list> out;
  if (from.texts.empty()) out.push_back(std::move(from.ids));
  for (const std::string& text : from.texts) {
    auto ids =
        tokenize(all.model.get(), text, BITNET_TOKENIZE_MODEL_BOS | BITNET_TOKENIZE_MODEL_EOS);
    if (!ids) return std::unexpected(ids.error());
    out.push_back(*std::move(ids));
  }
  const uint64_t room = bitnet_session_capacity(all.session.get());
  const auto too_long =
      std::ranges::find_if(out, [&](const auto& ids) { return ids.size() > room; });
  if (too_long == out.end()) return out;
  return fail(exit_code::failure,
              fmt::format("text {}: {} tokens do not fit the context of {}; use a larger -c",
                          too_long - out.begin() + 1, too_long->size(), room));
}

// Writes the embeddings one after the other in the requested format.
class writer {
 public:
  static result<writer> open(const settings& set, uint64_t n_texts, uint64_t width) {
    writer out(set.text("format"));
    if (out.format_ != "npy") return out;
    auto file = npy_file::create(set.given("output") ? set.text("output") : "-", {n_texts, width});
    if (!file) return std::unexpected(file.error());
    out.file_.emplace(*std::move(file));
    return out;
  }

  result<void> write(std::span<const float> embedding, std::size_t index, std::size_t n_tokens) {
    if (file_) return file_->write(embedding);
    if (format_ == "text") return print(fmt::format("{}\n", fmt::join(embedding, " ")));
    return print(fmt::format("{{\"index\":{},\"tokens\":{},\"embedding\":[{}]}}\n", index, n_tokens,
                             fmt::join(embedding, ",")));
  }
  result<void> finish() { return file_ ? file_->commit() : result<void>{}; }

 private:
  explicit writer(std::string format) : format_(std::move(format)) {}

  std::string format_;
  std::optional<npy_file> file_;  // for npy only
};

result<void> write_all(bitnet_session* session, const std::vector<token_list>& texts,
                       std::vector<float>& room, writer& to) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    library_error err;
    const bitnet_status status = bitnet_embed(session, texts[i].data(), texts[i].size(),
                                              room.data(), room.size(), nullptr, &err);
    if (status != BITNET_OK) return failed(status, err, stage::work);
    if (auto done = to.write(room, i, texts[i].size()); !done) return done;
  }
  return to.finish();
}

}  // namespace

result<int> embed_command(const invocation& in) {
  if (auto fine = check_output(in.set); !fine) return std::unexpected(fine.error());
  auto from = given_texts_or_ids(in);
  if (!from) return std::unexpected(from.error());
  auto all = open_engine(in, in.set.text("model"));
  if (!all) return std::unexpected(all.error());
  auto tokens = tokens_of(*all, *std::move(from));
  if (!tokens) return std::unexpected(tokens.error());
  std::vector<float> room(describe(all->model.get()).n_embedding);
  auto to = writer::open(in.set, tokens->size(), room.size());
  if (!to) return std::unexpected(to.error());
  const auto begin = std::chrono::steady_clock::now();
  {
    const interrupt::scope until_written(all->session.get());
    if (auto done = write_all(all->session.get(), *tokens, room, *to); !done) {
      return std::unexpected(done.error());
    }
  }
  if (in.set.flag("perf")) {
    std::size_t n_tokens = 0;
    for (const token_list& one : *tokens) n_tokens += one.size();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    in.out.line(
        fmt::format("{} texts of {} tokens in {:.1f} ms", tokens->size(), n_tokens, took.count()));
  }
  return exit_code::ok;
}

}  // namespace bitnet::host
