#include "serving/saved_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "files/descriptor.hpp"
#include "files/new_file.hpp"
#include "generate/token_ids.hpp"
#include "gguf/text.hpp"
#include "kv/saved_sequence.hpp"
#include "system/limits.hpp"

namespace bitnet::serving {
namespace {

// The first fact of a file, so that the message about a file of another model names the model, and
// not the types, which differ too.
result<kv::fact> model_of(const async_engine& e) {
  const auto on = e.headed_for();
  auto hash = on->model().fingerprint();
  if (!hash) return std::unexpected(std::move(hash.error()));
  return kv::fact{"model", *std::move(hash),
                  "open the model that it was saved with, or compute the prompt again and save it"};
}

std::unexpected<failure> not_written(const files::problem& why) {
  const bool wrong_path = why.error == ENOENT || why.error == ENOTDIR || why.error == EACCES ||
                          why.error == EROFS || why.error == EISDIR || why.error == ELOOP ||
                          why.error == EEXIST;
  return std::unexpected(failure{
      wrong_path ? BITNET_INVALID_ARGUMENT : BITNET_IO,
      fmt::format("the saved sequence cannot be written: {}; {}", why.text,
                  wrong_path ? "give the path of a file in a folder that this process can write to"
                             : "make room on its file system, or give a path on another one"),
      {"errno", why.error}});
}

result<void> write(const kv::saved_sequence& s, const std::filesystem::path& path) {
  const kv::saved_frame around = kv::frame_of(s);
  auto file = files::new_file::create(path, {.mode = S_IRUSR | S_IWUSR, .regular_only = true});
  if (!file) return not_written(file.error());
  for (const std::span<const std::byte> part : {std::span<const std::byte>(around.begin), s.blocks,
                                                s.state, std::span<const std::byte>(around.end)})
    if (auto ok = file->write(part); !ok) return not_written(ok.error());
  if (auto ok = file->finish(); !ok) return not_written(ok.error());
  return {};
}

struct file_bytes {
  std::unique_ptr<std::byte[]> memory;
  std::span<const std::byte> all;
};

result<std::size_t> read_to(const files::descriptor& file, std::span<std::byte> to) {
  std::size_t at = 0;
  while (at < to.size()) {
    const ssize_t n = ::read(file.get(), to.data() + at, to.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return std::unexpected(
          failure{BITNET_BAD_DATA,
                  fmt::format("the file cannot be read: {}; look at its file system",
                              limits::reason(errno)),
                  {"errno", errno}});
    if (n == 0) break;
    at += static_cast<std::size_t>(n);
  }
  return at;
}

result<files::descriptor> open_regular(const std::filesystem::path& path, uint64_t& size) {
  files::descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info{};
  if (!file || ::fstat(file.get(), &info) != 0)
    return std::unexpected(
        failure{BITNET_NOT_FOUND,
                fmt::format("the file cannot be opened: {}; give one that bitnet_scheduler_save "
                            "wrote and this process can read",
                            limits::reason(errno)),
                {"errno", errno}});
  if (!S_ISREG(info.st_mode))
    return bad_data("expected a saved sequence, found something that is no regular file");
  size = static_cast<uint64_t>(info.st_size);
  return file;
}

result<file_bytes> read_whole(const files::descriptor& file, uint64_t size,
                              std::span<const std::byte> begin) {
  file_bytes out;
  out.memory.reset(new (std::nothrow) std::byte[size]);
  if (out.memory == nullptr)
    return fail(BITNET_OUT_OF_MEMORY,
                fmt::format("there is no memory for the {} bytes of the saved sequence", size));
  const std::span<std::byte> all(out.memory.get(), size);
  std::ranges::copy(begin, all.begin());
  const auto n = read_to(file, all.subspan(begin.size()));
  if (!n) return std::unexpected(n.error());
  out.all = all.first(begin.size() + *n);
  return out;
}

kv::saved_form form_here(const async_engine::facts& now, kv::fact model) {
  kv::saved_form out = now.form;
  out.facts.insert(out.facts.begin(), std::move(model));
  return out;
}

// Checks before memory is taken that the file can be used here: with the right form and a possible
// number of blocks it has no more bytes than the scheduler's room.
result<void> check_outline(std::span<const std::byte> begin, uint64_t size, const async_engine& e) {
  const auto outline = kv::read_saved_outline(begin, size);
  if (!outline) return std::unexpected(outline.error());
  auto model = model_of(e);
  if (!model) return std::unexpected(std::move(model.error()));
  const async_engine::facts now = e.describe();
  if (auto ok = kv::check_form(outline->form, form_here(now, *std::move(model))); !ok) return ok;
  if (outline->n_blocks <= now.limits.n_blocks) return {};
  return fail(BITNET_OUT_OF_DEVICE_MEMORY,
              fmt::format("the saved sequence has {} blocks of {} tokens, and the scheduler has "
                          "room for {}: open it with a larger kv_bytes",
                          outline->n_blocks, kv::block_tokens, now.limits.n_blocks));
}

result<uint64_t> put_in(async_engine& e, const std::filesystem::path& path) {
  uint64_t size = 0;
  const auto file = open_regular(path, size);
  if (!file) return std::unexpected(file.error());
  std::vector<std::byte> begin(std::min<uint64_t>(size, kv::saved_outline_bytes));
  const auto n = read_to(*file, begin);
  if (!n) return std::unexpected(n.error());
  begin.resize(*n);
  if (auto ok = check_outline(begin, size, e); !ok) return std::unexpected(std::move(ok.error()));
  const auto bytes = read_whole(*file, size, begin);
  if (!bytes) return std::unexpected(bytes.error());
  auto s = kv::read_saved(bytes->all);
  if (!s) return std::unexpected(std::move(s.error()));
  if (auto ok = generate::check_ids(s->tokens, e.describe().limits.n_vocab); !ok)
    return std::unexpected(std::move(ok.error()));
  // The ticking thread compares the other facts again, since its runner may be another one by then.
  s->form.facts.erase(s->form.facts.begin());
  return e.scheduler().put_in(*s);
}

}  // namespace

result<uint64_t> save(async_engine& e, std::span<const int32_t> tokens,
                      const std::filesystem::path& path) {
  auto model = model_of(e);
  if (!model) return std::unexpected(std::move(model.error()));
  auto taken = e.scheduler().take_out(tokens);
  if (!taken) return std::unexpected(std::move(taken.error()));
  kv::saved_sequence& s = taken->it;
  s.form.facts.insert(s.form.facts.begin(), *std::move(model));
  if (auto ok = write(s, path); !ok) return pass_on(std::move(ok), gguf::quote(path.native()));
  return s.tokens.size();
}

result<uint64_t> restore(async_engine& e, const std::filesystem::path& path) {
  auto n = put_in(e, path);
  if (!n) return pass_on(std::move(n), gguf::quote(path.native()));
  return n;
}

}  // namespace bitnet::serving
