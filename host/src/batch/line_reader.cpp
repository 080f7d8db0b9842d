#include "batch/line_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "system/limits.hpp"
#include "text/ascii.hpp"

namespace bitnet::host::batch {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;

}  // namespace

result<line_reader> line_reader::open(const std::string& file) {
  const bool is_stdin = file == "-";
  const int fd = is_stdin ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                          : ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  line_reader out(is_stdin ? "standard input" : file, files::descriptor(fd));
  if (fd < 0)
    return fail(exit_code::usage, fmt::format("{}: {}", out.name_, limits::reason(errno)));
  struct stat facts{};
  if (::fstat(fd, &facts) == 0 && S_ISDIR(facts.st_mode))
    return fail(exit_code::usage,
                fmt::format("{} is a folder; name a file of requests", out.name_));
  if (S_ISREG(facts.st_mode)) out.file_bytes_ = static_cast<uint64_t>(facts.st_size);
  return out;
}

result<void> line_reader::read_more() {
  buffer_.erase(0, begin_);
  searched_ -= begin_;
  begin_ = 0;
  if (buffer_.size() > longest_line) {  // dropped; read_more() still finds its end
    too_long_ = true;
    bytes_taken_ += buffer_.size();
    buffer_.clear();
    searched_ = 0;
  }
  const std::size_t before = buffer_.size();
  buffer_.resize(before + piece_bytes);
  ssize_t n = 0;
  do {
    n = ::read(file_.get(), buffer_.data() + before, piece_bytes);
  } while (n < 0 && errno == EINTR);
  const int error = errno;
  buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  if (n < 0) return fail(exit_code::failure, fmt::format("{}: {}", name_, limits::reason(error)));
  at_end_ = n == 0;
  return {};
}

input_line line_reader::cut(std::size_t end, bool has_newline) {
  input_line out{++number_, buffer_.substr(begin_, end - begin_), ""};
  const std::size_t next = end + (has_newline ? 1 : 0);
  bytes_taken_ += next - begin_;
  begin_ = searched_ = next;
  if (std::exchange(too_long_, false) || out.text.size() > longest_line) {
    out.text.clear();
    out.fault = fmt::format("the line has more than {} bytes", longest_line);
  }
  return out;
}

result<std::optional<input_line>> line_reader::take() {
  while (true) {
    const std::size_t end = buffer_.find('\n', searched_);
    const bool has_newline = end != std::string::npos;
    if (!has_newline) searched_ = buffer_.size();
    // The last line may lack its newline.
    const bool is_rest = !has_newline && at_end_ && (begin_ < buffer_.size() || too_long_);
    if (!has_newline && !is_rest) return std::nullopt;
    input_line line = cut(has_newline ? end : buffer_.size(), has_newline);
    if (!line.fault.empty()) return line;
    auto text = incoming_.next(std::move(line.text));
    if (!text && line.number == 1)
      return fail(exit_code::usage, fmt::format("{}: {}", name_, text.error()));
    if (!text) {
      line.fault = text.error();
      return line;
    }
    line.text = *std::move(text);
    if (!std::ranges::all_of(line.text, is_space_ascii)) return line;
  }
}

}  // namespace bitnet::host::batch
