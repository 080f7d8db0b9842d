#include "batch/receipts_file.hpp"

#include <fmt/format.h>

#include <utility>

#include "batch/line_reader.hpp"
#include "files/new_file.hpp"

namespace bitnet::host::batch {
namespace {

// Contents of a receipts file, compared with the answered ids.
struct contents {
  uint64_t n = 0;           // lines
  uint64_t n_removed = 0;   // without an answer
  uint64_t good_bytes = 0;  // up to the first line to remove
  bool has_later = false;   // receipts to keep follow a line to remove
  std::string rest;         // a cut last line
};

}  // namespace

// After a kill the receipts to remove are at the end and are cut off. If they are elsewhere, lines
// of the output were deleted, and the file is rewritten.
result<receipts_file> receipts_file::open(const std::string& path,
                                          std::span<const other_file> others,
                                          const id_set& answered, const id_reader& id_of,
                                          uint64_t& removed) {
  auto file = line_file::open(path, others);
  if (!file) return std::unexpected(file.error());
  contents has;
  std::string kept;  // used only to rewrite the file
  bool keeps = false;
  const auto take = [&](std::string_view line) -> result<void> {
    const auto id = id_of(line);
    ++has.n;
    if (!id)
      return fail(
          exit_code::usage,
          fmt::format("line {} of {} is no receipt of a batch; name another file", has.n, path));
    const bool stays = answered.has(*id);
    if (keeps && stays) kept.append(line).push_back('\n');
    if (keeps) return {};
    if (!stays)
      ++has.n_removed;
    else if (has.n_removed == 0)
      has.good_bytes += line.size() + 1;
    else
      has.has_later = true;
    return {};
  };
  auto rest = file->read(longest_line, "a receipt", take);
  if (!rest) return std::unexpected(rest.error());
  has.rest = *std::move(rest);
  if (has.n == 0 && !has.rest.empty() && has.rest.front() != '{')
    return fail(exit_code::usage,
                fmt::format("{} has no receipts of a batch; name another file", path));
  removed = has.n_removed;
  if (!has.has_later) {
    if (auto ok = file->cut(has.good_bytes); !ok) return std::unexpected(ok.error());
    return receipts_file(*std::move(file));
  }
  keeps = true;
  if (auto again = file->read(longest_line, "a receipt", take); !again)
    return std::unexpected(again.error());
  if (auto done = files::write_file(path, kept); !done)
    return fail(exit_code::failure, fmt::format("cannot write {}: {}", path, done.error().text));
  file = line_file::open(path, others);
  if (!file) return std::unexpected(file.error());
  if (auto ok = file->cut(kept.size()); !ok) return std::unexpected(ok.error());
  return receipts_file(*std::move(file));
}

}  // namespace bitnet::host::batch
