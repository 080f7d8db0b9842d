#pragma once
// Bytes and text from files and standard input, with limits; escapes in texts given as flags.

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace bitnet::host {

struct read_failure {
  int number;  // errno; EFBIG when longer than allowed, EINTR after Ctrl-C, EILSEQ for no text
  std::string message;  // "<file>: No such file or directory"
};

inline constexpr uint64_t longest_text = 256ull * 1024 * 1024;  // bytes of a prompt

[[nodiscard]] std::expected<std::string, read_failure> read_file(const std::string& file,
                                                                 uint64_t limit);
// The same of a file that the user did not name: a pipe or a device in its place is a failure, and
// is not waited for.
[[nodiscard]] std::expected<std::string, read_failure> read_usual_file(const std::string& file,
                                                                       uint64_t limit);
[[nodiscard]] std::expected<std::string, read_failure> read_stdin(uint64_t limit);

// The same as text: by text/incoming.hpp.
[[nodiscard]] std::expected<std::string, read_failure> read_text_file(const std::string& file,
                                                                      uint64_t limit);
[[nodiscard]] std::expected<std::string, read_failure> read_usual_text_file(const std::string& file,
                                                                            uint64_t limit);
[[nodiscard]] std::expected<std::string, read_failure> read_text_stdin(uint64_t limit);

// "\n" \t \r \\ \' \" \xHH become bytes; an unknown escape stays as it is, as in llama.cpp.
[[nodiscard]] std::string unescape(std::string_view text);

}  // namespace bitnet::host
