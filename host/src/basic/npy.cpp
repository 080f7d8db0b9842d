#include "basic/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cerrno>
#include <utility>

#include "basic/output.hpp"

namespace bitnet::host {

std::string npy_header(const std::vector<uint64_t>& shape) {
  constexpr char order = std::endian::native == std::endian::little ? '<' : '>';
  const char* const comma = shape.size() == 1 ? "," : "";  // a Python tuple of one element needs it
  std::string text = fmt::format("{{'descr': '{}f4', 'fortran_order': False, 'shape': ({}{}), }}",
                                 order, fmt::join(shape, ", "), comma);
  constexpr std::size_t before = 10;  // magic, version, length
  while ((before + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

result<npy_file> npy_file::create(const std::string& target, const std::vector<uint64_t>& shape) {
  npy_file out(target);
  if (target != "-") {
    auto file = files::new_file::create(target);
    if (!file) return out.broken(file.error());
    out.file_.emplace(*std::move(file));
  }
  if (auto done = out.write_bytes(npy_header(shape)); !done) return std::unexpected(done.error());
  return out;
}

std::unexpected<failure> npy_file::broken(const files::problem& why) const {
  if (why.error == EPIPE) return fail(exit_code::failure, "");
  return fail(exit_code::failure, fmt::format("cannot write {}: {}", target_, why.text));
}

result<void> npy_file::write_bytes(std::string_view bytes) {
  if (!file_) return print(bytes);
  if (auto done = file_->write(bytes); !done) return broken(done.error());
  return {};
}

result<void> npy_file::write(std::span<const float> values) {
  return write_bytes({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

result<void> npy_file::commit() {
  if (!file_) return {};
  if (auto done = file_->finish(); !done) return broken(done.error());
  return {};
}

}  // namespace bitnet::host
