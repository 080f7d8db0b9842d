// bitnet tokenize and bitnet detokenize.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "commands/commands.hpp"
#include "commands/prompt.hpp"
#include "model_files/find_model.hpp"
#include "session/generation.hpp"

namespace bitnet::host {
namespace {

result<model_handle> open_tokenizer(const invocation& in) {
  auto file = find_model(in.set.text("model"), in.variables);
  if (!file) return std::unexpected(file.error());
  return open_vocabulary(in, *file);
}

// Reads an argument, a file or standard input as `exact` bytes or as text.
result<std::string> input_text(const invocation& in, const char* what, bool exact) {
  const bool by_file = in.set.given("file");
  if (by_file && !in.positionals.empty()) {
    return fail(exit_code::usage, fmt::format("give {} once: as arguments or as -f FILE", what));
  }
  const std::string& file = in.set.text("file");
  if (by_file) return exact ? file_bytes(file) : file_text(file);
  if (!in.positionals.empty()) return fmt::format("{}", fmt::join(in.positionals, " "));
  if (stdin_is_terminal()) {
    return fail(exit_code::usage,
                fmt::format("needs {}: as arguments, as -f FILE or on standard input", what));
  }
  return exact ? piped_bytes() : piped_text();
}

result<int> written(const std::string& text) {
  if (auto done = print(text); !done) return std::unexpected(done.error());
  return exit_code::ok;
}

}  // namespace

result<int> tokenize_command(const invocation& in) {
  if (in.positionals.size() > 1) {
    return fail(exit_code::usage, "takes one TEXT; quote it");
  }
  auto text = input_text(in, "a text", true);
  if (!text) return std::unexpected(text.error());
  auto model = open_tokenizer(in);
  if (!model) return std::unexpected(model.error());
  uint32_t flags = 0;
  if (in.set.flag("add-bos")) flags |= BITNET_TOKENIZE_ADD_BOS;
  if (in.set.flag("parse-special")) flags |= BITNET_TOKENIZE_PARSE_SPECIAL;
  auto ids = tokenize(model->get(), *text, flags);
  if (!ids) return std::unexpected(ids.error());
  if (!in.set.flag("json")) return written(fmt::format("{}\n", fmt::join(*ids, " ")));
  nlohmann::json pieces = nlohmann::json::array();
  for (const bitnet_token id : *ids) {
    auto piece = detokenize(model->get(), {id}, BITNET_DETOKENIZE_SPECIAL);
    if (!piece) return std::unexpected(piece.error());
    pieces.push_back(*piece);
  }
  return written(json_line({{"ids", *ids}, {"count", ids->size()}, {"pieces", pieces}}));
}

result<int> detokenize_command(const invocation& in) {
  auto text = input_text(in, "token ids", false);
  if (!text) return std::unexpected(text.error());
  auto ids = parse_ids(*text);
  if (!ids) return std::unexpected(ids.error());
  auto model = open_tokenizer(in);
  if (!model) return std::unexpected(model.error());
  const uint32_t flags = in.set.flag("special") ? BITNET_DETOKENIZE_SPECIAL : 0;
  auto out = detokenize(model->get(), *ids, flags);
  if (!out) return std::unexpected(out.error());
  if (in.set.flag("json")) return written(json_line({{"text", *out}, {"ids", *ids}}));
  // Prints exactly the text, so that it inverts tokenize; on a terminal it adds a newline.
  if (::isatty(STDOUT_FILENO) == 1 && !out->ends_with('\n')) *out += '\n';
  return written(*out);
}

}  // namespace bitnet::host
