#pragma once
// Reads the text that a command works on.

#include <optional>

#include "session/engine.hpp"

namespace bitnet::host {

// Returns the prompt of -p, -f or a positional word; more than one is exit code 2. Nothing if there
// is none. A prompt from a file loses its last newline, as in llama.cpp.
[[nodiscard]] result<std::optional<std::string>> given_prompt(
    const invocation& in, const std::vector<std::string>& positionals);

// Returns the tokens of --ids, which excludes a text (exit code 2). Nothing if not given.
[[nodiscard]] result<std::optional<token_list>> given_ids(const invocation& in);

// Reads text from a pipe: docs/reference/text-input.md.
[[nodiscard]] result<std::string> piped_text();
[[nodiscard]] result<std::string> file_text(const std::string& file);
// Reads a pipe unchanged, byte for byte.
[[nodiscard]] result<std::string> piped_bytes();
[[nodiscard]] result<std::string> file_bytes(const std::string& file);
[[nodiscard]] bool stdin_is_terminal();
void drop_last_newline(std::string& text);

}  // namespace bitnet::host
