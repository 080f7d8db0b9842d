#pragma once
// Reads bytes and text from files and standard input, with limits; unescapes texts given as flags.

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace bitnet::host {

struct read_failure {
  int number;           // errno; EFBIG: too long, EINTR: Ctrl-C, EILSEQ: not text
  std::string message;  // "<file>: No such file or directory"
};

inline constexpr uint64_t longest_text = 256ull * 1024 * 1024;  // bytes of a prompt

[[nodiscard]] std::expected<std::string, read_failure> read_file(const std::string& file,
                                                                 uint64_t limit);
// The same for a file that the user did not name: a pipe or a device in its place is an error,
// since reading it could block.
[[nodiscard]] std::expected<std::string, read_failure> read_usual_file(const std::string& file,
                                                                       uint64_t limit);
[[nodiscard]] std::expected<std::string, read_failure> read_stdin(uint64_t limit);

// The same for text, which must pass text/incoming.hpp.
[[nodiscard]] std::expected<std::string, read_failure> read_text_file(const std::string& file,
                                                                      uint64_t limit);
[[nodiscard]] std::expected<std::string, read_failure> read_usual_text_file(const std::string& file,
                                                                            uint64_t limit);
[[nodiscard]] std::expected<std::string, read_failure> read_text_stdin(uint64_t limit);

// Replaces "\n" \t \r \\ \' \" \xHH by their bytes; an unknown escape stays, as in llama.cpp.
[[nodiscard]] std::string unescape(std::string_view text);

}  // namespace bitnet::host
