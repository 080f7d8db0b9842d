#include "crossval/foreign.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <optional>

#include "crossval/llama_api.hpp"
#include "crossval/stream.hpp"

namespace bitnet::host::crossval {
namespace {

constexpr std::size_t words_before_folders = 4;  // foreign_word, library, model, threads

result<void> put(int to, record kind, std::span<const std::byte> body) {
  if (write_record(to, kind, body)) return {};
  return fail(exit_code::failure, "the parent reads no more");
}
result<void> put(int to, record kind, std::string_view body) {
  return put(to, kind, std::as_bytes(std::span(body.substr(0, longest_text))));
}

std::optional<std::string> whole_input() {
  std::string out;
  std::array<char, 65536> bytes{};
  for (;;) {
    const ssize_t n = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) return out;
    out.append(bytes.data(), static_cast<std::size_t>(n));
  }
}

// Writes the rows of the tokens that both engines share.
result<void> answer(int to, llama_api& engine, const asked_prompt& asked, int32_t n_threads) {
  const auto tokens = engine.tokenize(asked.text);
  if (!tokens) return std::unexpected(tokens.error());
  if (auto done = put(to, record::tokens, std::as_bytes(std::span(*tokens))); !done) return done;
  const std::size_t common = common_length(asked.ids, *tokens);
  if (common == 0) return {};
  if (auto done = engine.new_context(static_cast<uint32_t>(common), n_threads); !done) return done;
  if (engine.n_context() < common)
    return fail(exit_code::no_comparison,
                fmt::format("its context has {} tokens, the prompt {}: this version's parameters "
                            "are not known well enough to set more; shorten the prompt",
                            engine.n_context(), common));
  const auto n_vocab = static_cast<std::size_t>(engine.n_vocab());
  for (std::size_t i = 0; i < common; ++i) {
    const auto row = engine.decode((*tokens)[i]);
    if (!row) return std::unexpected(row.error());
    if (auto done = put(to, record::row, std::as_bytes(std::span(*row, n_vocab))); !done)
      return done;
  }
  return {};
}

result<void> put_model(int to, const llama_api& engine) {
  const auto n_vocab = static_cast<uint32_t>(engine.n_vocab());
  std::string body(reinterpret_cast<const char*>(&n_vocab), sizeof n_vocab);
  body += engine.model_description();
  return put(to, record::model, body);
}

result<void> perform_foreign(int to, const foreign_task& task) {
  auto engine = llama_api::load(task.library, task.folders);
  if (!engine) return std::unexpected(engine.error());
  const std::string version = engine->version();
  if (auto done = put(to, record::library,
                      fmt::format("{}{}{}", words_of(engine->api_year()),
                                  version.empty() ? "" : ", ", version));
      !done)
    return done;
  if (task.model.empty()) return put(to, record::done, "");
  const auto input = whole_input();
  if (!input) return fail(exit_code::no_comparison, "the request cannot be read");
  const auto prompts = read_request(*input);
  if (!prompts) return std::unexpected(prompts.error());
  engine->start(task.folders.empty() ? "" : task.folders.front());
  if (auto done = engine->open_model(task.model); !done) return done;
  if (auto done = put_model(to, *engine); !done) return done;
  for (const asked_prompt& one : *prompts)
    if (auto done = answer(to, *engine, one, task.n_threads); !done) return done;
  return put(to, record::done, "");
}

foreign_task task_of(const std::vector<std::string>& words) {
  foreign_task out{words[1], {}, words[2], 0};
  std::from_chars(words[3].data(), words[3].data() + words[3].size(), out.n_threads);
  out.folders.assign(words.begin() + words_before_folders, words.end());
  return out;
}

}  // namespace

std::vector<std::string> foreign_words(const foreign_task& task) {
  std::vector<std::string> out = {std::string(foreign_word), task.library, task.model,
                                  std::to_string(task.n_threads)};
  out.insert(out.end(), task.folders.begin(), task.folders.end());
  return out;
}

int run_foreign(const std::vector<std::string>& words) {
  if (words.size() < words_before_folders) return exit_code::usage;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  // Libraries may print to standard output, so it is redirected to standard error.
  const int to = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (to < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return exit_code::failure;
  const auto done = perform_foreign(to, task_of(words));
  if (!done) static_cast<void>(put(to, record::failed, done.error().message));
  ::_exit(done ? exit_code::ok : exit_code::failure);  // skips the library's exit handlers
}

}  // namespace bitnet::host::crossval
