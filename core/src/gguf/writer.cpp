#include "gguf/writer.hpp"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/wording.hpp"
#include "gguf/text.hpp"

namespace bitnet::gguf {
namespace {

void put_raw(std::vector<std::byte>& to, const void* from, size_t size) {
  const size_t before = to.size();
  to.resize(before + size);
  if (size != 0) std::memcpy(to.data() + before, from, size);
}

template <class T>
void put(std::vector<std::byte>& to, T x) {
  put_raw(to, &x, sizeof x);
}

void put_text(std::vector<std::byte>& to, std::string_view text) {
  put<uint64_t>(to, text.size());
  put_raw(to, text.data(), text.size());
}

uint64_t padded(uint64_t size) {
  return (size + written_alignment - 1) / written_alignment * written_alignment;
}

}  // namespace

void metadata_builder::begin(std::string_view key, value_type type) {
  ++count_;
  put_text(bytes_, key);
  put(bytes_, static_cast<uint32_t>(type));
}

void metadata_builder::text(std::string_view key, std::string_view x) {
  begin(key, value_type::string);
  put_text(bytes_, x);
}

void metadata_builder::u32(std::string_view key, uint32_t x) {
  begin(key, value_type::u32);
  put(bytes_, x);
}

void metadata_builder::f32(std::string_view key, float x) {
  begin(key, value_type::f32);
  put(bytes_, x);
}

void metadata_builder::boolean(std::string_view key, bool x) {
  begin(key, value_type::boolean);
  put<uint8_t>(bytes_, x ? 1 : 0);
}

void metadata_builder::i32s(std::string_view key, std::span<const int32_t> x) {
  begin(key, value_type::array);
  put(bytes_, static_cast<uint32_t>(value_type::i32));
  put<uint64_t>(bytes_, x.size());
  put_raw(bytes_, x.data(), x.size_bytes());
}

void metadata_builder::f32s(std::string_view key, std::span<const float> x) {
  begin(key, value_type::array);
  put(bytes_, static_cast<uint32_t>(value_type::f32));
  put<uint64_t>(bytes_, x.size());
  put_raw(bytes_, x.data(), x.size_bytes());
}

void metadata_builder::texts(std::string_view key, std::span<const std::string> x) {
  begin(key, value_type::array);
  put(bytes_, static_cast<uint32_t>(value_type::string));
  put<uint64_t>(bytes_, x.size());
  for (const std::string& one : x) put_text(bytes_, one);
}

void metadata_builder::copy(std::string_view key, const value& content) {
  begin(key, content.type);
  if (content.type == value_type::string) put<uint64_t>(bytes_, content.bytes.size());
  if (content.type == value_type::array) {
    put(bytes_, static_cast<uint32_t>(content.element));
    put<uint64_t>(bytes_, content.count);
  }
  put_raw(bytes_, content.bytes.data(), content.bytes.size());
}

std::vector<std::byte> header_of(const metadata_builder& metadata,
                                 std::span<const planned_tensor> tensors) {
  std::vector<std::byte> out;
  put_raw(out, "GGUF", 4);
  put<uint32_t>(out, 3);
  put<uint64_t>(out, tensors.size());
  put<uint64_t>(out, metadata.count());
  put_raw(out, metadata.bytes().data(), metadata.bytes().size());
  uint64_t offset = 0;
  for (const planned_tensor& t : tensors) {
    put_text(out, t.name);
    put(out, static_cast<uint32_t>(t.ne.size()));
    for (const uint64_t n : t.ne) put(out, n);
    put(out, t.type);
    put(out, offset);
    offset += padded(t.bytes);
  }
  out.resize(padded(out.size()));
  return out;
}

namespace {

std::unexpected<failure> failed(const std::filesystem::path& path, const char* doing,
                                const files::problem& why) {
  const bool wrong_path = why.error == ENOENT || why.error == ENOTDIR || why.error == EACCES ||
                          why.error == EROFS || why.error == EISDIR || why.error == ELOOP;
  return fail(wrong_path ? BITNET_INVALID_ARGUMENT : BITNET_IO,
              fmt::format("{} {}: {}", quote(path.native()), doing, why.text));
}

}  // namespace

result<file_writer> file_writer::create(const std::filesystem::path& path, bool overwrite) {
  auto file = files::new_file::create(path, {.overwrite = overwrite});
  if (!file && file.error().error == EEXIST)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("{} exists; name another file, or {}", quote(path.native()),
                            say(word::set_overwrite)));
  if (!file) return failed(path, "cannot be created", file.error());
  return file_writer(path, *std::move(file));
}

result<void> file_writer::write(std::span<const std::byte> bytes) {
  if (auto fine = file_.write(bytes); !fine)
    return failed(path_, "cannot be written", fine.error());
  written_ += bytes.size();
  return {};
}

result<void> file_writer::pad() {
  constexpr std::array<std::byte, written_alignment> zeros{};
  return write(std::span(zeros).first(padded(written_) - written_));
}

result<void> file_writer::finish() {
  if (auto fine = file_.finish(); !fine)
    return failed(path_, "cannot be given its name", fine.error());
  return {};
}

}  // namespace bitnet::gguf
