#include "batch/output_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "batch/batch_line.hpp"
#include "text/printable.hpp"

namespace bitnet::host::batch {
namespace {

// Enough for the embeddings of many texts. A longer line was not written by this program.
constexpr std::size_t longest_output_line = std::size_t{1} << 30;

}  // namespace

result<output_file> output_file::open(const std::string& path, int input, const shard& part,
                                      const std::string& fingerprint, written& already) {
  const other_file others[] = {{input, "the input"}};
  auto file = line_file::open(path, others);
  if (!file) return std::unexpected(file.error());
  output_file out(*std::move(file));
  const auto rest = out.lines_.read(longest_output_line, "an answer", [&](std::string_view line) {
    return out.read_line(line, part, fingerprint, already);
  });
  if (!rest) return std::unexpected(rest.error());
  if (auto ok = out.remove_rest(*rest, already); !ok) return std::unexpected(ok.error());
  return out;
}

result<void> output_file::read_line(std::string_view line, const shard& part,
                                    const std::string& fingerprint, written& already) const {
  ++already.n;
  const auto reject = [&](std::string_view why) {
    return fail(exit_code::usage, fmt::format("line {} of {} {}; name another output", already.n,
                                              lines_.path(), why));
  };
  const auto about = read_written_line(line);
  if (!about) return reject("is no answer of a batch");
  if (!about->fingerprint.empty() && about->fingerprint != fingerprint)
    return reject(fmt::format("is an answer of another model ({}, and this one is {})",
                              text::printable(about->fingerprint), fingerprint));
  const bool is_mine =
      about->custom_id.empty() ? part.has_line(about->number) : part.has(about->custom_id);
  if (!is_mine) return reject("belongs to another --shard");
  const bool is_new = about->custom_id.empty() ? already.lines.insert(about->number).second
                                               : already.ids.add_answered(about->custom_id);
  if (!is_new) return reject("answers what an earlier line has answered");
  return {};
}

// Removes the bytes after the last complete line, unless they show that the file is not an output.
result<void> output_file::remove_rest(std::string_view rest, written& already) {
  const std::size_t n = std::min(rest.size(), output_prefix.size());
  if (already.n == 0 && rest.substr(0, n) != output_prefix.substr(0, n))
    return fail(exit_code::usage,
                fmt::format("{} is no output of a batch; name another output", lines_.path()));
  already.cut_bytes = rest.size();
  if (rest.empty()) return {};
  return lines_.cut(lines_.bytes());
}

}  // namespace bitnet::host::batch
