#pragma once
// Reads a byte span from front to back. After the first read past the end all reads fail and give
// zeros, so that a parser may check once per record.

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "gguf/bytes.hpp"

namespace bitnet::gguf {

class cursor {
 public:
  explicit cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] uint64_t position() const { return position_; }
  [[nodiscard]] uint64_t remaining() const { return bytes_.size() - position_; }
  [[nodiscard]] bool failed() const { return !missing_.empty(); }
  [[nodiscard]] std::unexpected<failure> why() const {
    return fail(BITNET_BAD_DATA,
                fmt::format("the file ends inside {}, which begins at byte {} of {}: it is cut off "
                            "or damaged; download or copy it again",
                            missing_, position_, bytes_.size()));
  }

  // `what`: the name of the bytes, for the message if the file ends here.
  std::span<const std::byte> take(uint64_t size, std::string_view what) {
    if (failed()) return {};
    if (size > remaining()) {
      missing_ = what;
      return {};
    }
    const auto out = bytes_.subspan(position_, size);
    position_ += size;
    return out;
  }

  template <class T>
  T number(std::string_view what) {
    const auto at = take(sizeof(T), what);
    return failed() ? T{} : load<T>(at);
  }

  std::string_view string(std::string_view what) {
    const uint64_t start = position_;
    const auto size = number<uint64_t>(what);
    const auto at = take(size, what);
    if (failed()) position_ = start;
    return {reinterpret_cast<const char*>(at.data()), at.size()};
  }

 private:
  std::span<const std::byte> bytes_;
  uint64_t position_ = 0;
  std::string_view missing_;  // name of the bytes at which the file ended
};

}  // namespace bitnet::gguf
