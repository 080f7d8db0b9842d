#include "commands/prompt.hpp"

#include <fmt/core.h>

#include <unistd.h>

#include <cerrno>

#include "basic/text_input.hpp"
#include "commands/commands.hpp"
#include "session/generation.hpp"

namespace bitnet::host {

model_and_rest split_positionals(const invocation& in) {
  const auto& words = in.positionals;
  if (in.set.flagged("model") || words.empty()) return {in.set.text("model"), words};
  return {words.front(), {words.begin() + 1, words.end()}};
}

bool stdin_is_terminal() {
  return ::isatty(STDIN_FILENO) == 1;
}

void drop_last_newline(std::string& text) {
  if (text.ends_with('\n')) text.pop_back();
}

namespace {

result<std::string> taken(std::expected<std::string, read_failure> text) {
  if (text) return *std::move(text);
  const bool stopped = text.error().number == EINTR;
  return fail(stopped ? exit_code::interrupted : exit_code::usage,
              stopped ? "" : text.error().message);
}

}  // namespace

result<std::string> piped_text() {
  return taken(read_text_stdin(longest_text));
}

result<std::string> piped_bytes() {
  return taken(read_stdin(longest_text));
}

result<std::string> file_text(const std::string& file) {
  return taken(read_text_file(file, longest_text));
}

result<std::string> file_bytes(const std::string& file) {
  return taken(read_file(file, longest_text));
}

result<std::optional<std::string>> given_prompt(const invocation& in,
                                                const std::vector<std::string>& positionals) {
  const bool by_flag = in.set.given("prompt");
  const bool by_file = in.set.given("file");
  if (positionals.size() > 1) {
    return fail(
        exit_code::usage,
        fmt::format("more arguments than one prompt ('{}'): quote it as one", positionals[1]));
  }
  if (int{by_flag} + int{by_file} + int{!positionals.empty()} > 1) {
    return fail(exit_code::usage, "give the text once: as -p TEXT, as -f FILE or as an argument");
  }
  if (by_file) {
    auto text = file_text(in.set.text("file"));
    if (!text) return std::unexpected(text.error());
    drop_last_newline(*text);
    return *std::move(text);
  }
  if (by_flag) return in.set.text("prompt");
  if (!positionals.empty()) return positionals.front();
  return std::nullopt;
}

result<std::optional<token_list>> given_ids(const invocation& in) {
  if (!in.set.given("ids")) return std::nullopt;
  if (in.set.given("prompt") || in.set.given("file")) {
    return fail(exit_code::usage, "give either --ids or a text");
  }
  auto ids = parse_ids(in.set.text("ids"));
  if (!ids) return fail(exit_code::usage, fmt::format("--ids {}", ids.error().message));
  return *std::move(ids);
}

}  // namespace bitnet::host
