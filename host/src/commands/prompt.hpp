#pragma once
// Where the text of a command comes from.

#include <optional>

#include "library/engine.hpp"

namespace bitnet::host {

// Of -p, -f and a positional at most one may be given (exit code 2). Nothing when there is none.
// A prompt from a file loses its last newline, as in llama.cpp.
[[nodiscard]] result<std::optional<std::string>> given_prompt(
    const invocation& in, const std::vector<std::string>& positionals);

// Of --ids, which excludes a text (exit code 2). Nothing when it is not given.
[[nodiscard]] result<std::optional<token_list>> given_ids(const invocation& in);

// docs/reference/text-input.md
[[nodiscard]] result<std::string> piped_text();
[[nodiscard]] result<std::string> file_text(const std::string& file);
// As it is, byte for byte.
[[nodiscard]] result<std::string> piped_bytes();
[[nodiscard]] result<std::string> file_bytes(const std::string& file);
[[nodiscard]] bool stdin_is_terminal();
void drop_last_newline(std::string& text);

}  // namespace bitnet::host
