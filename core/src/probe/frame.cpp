#include "probe/frame.hpp"

#define XXH_INLINE_ALL
#include <fmt/core.h>

#include <xxhash.h>

#include <bit>
#include <cstring>
#include <utility>

#include "plugin/codes/text.hpp"

namespace bitnet::probe {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view frame_magic = "BNP1";

struct header {
  char magic[4];
  uint32_t kind;
  uint64_t payload_bytes;
  uint64_t checksum;
};
static_assert(sizeof(header) == 24);

std::unexpected<plugin::defect> damaged(const std::string& what) {
  return plugin::reject(
      plugin::code::probe_message,
      fmt::format("what came back from its probe is no message of ours: {}", what));
}

}  // namespace

frame_header encode_header(frame_kind kind, std::string_view payload) {
  header fields{};
  std::memcpy(fields.magic, frame_magic.data(), sizeof fields.magic);
  fields.kind = static_cast<uint32_t>(kind);
  fields.payload_bytes = payload.size();
  fields.checksum = XXH3_64bits(payload.data(), payload.size());
  frame_header out{};
  static_assert(sizeof fields == sizeof out);
  std::memcpy(out.data(), &fields, sizeof fields);
  return out;
}

std::string encode(frame_kind kind, std::string_view payload) {
  const frame_header header = encode_header(kind, payload);
  std::string out(header.begin(), header.end());
  out += payload;
  return out;
}

void frame_reader::feed(std::span<const std::byte> bytes) {
  bytes_.erase(0, std::exchange(begin_, 0));
  bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

plugin::checked<std::optional<frame>> frame_reader::next() {
  const std::string_view rest = std::string_view(bytes_).substr(begin_);
  if (rest.size() < sizeof(header)) return std::nullopt;
  header fields{};
  std::memcpy(&fields, rest.data(), sizeof fields);
  if (std::string_view(fields.magic, sizeof fields.magic) != frame_magic)
    return damaged(
        fmt::format("it begins with '{}'", plugin::printable(rest.substr(0, sizeof fields.magic))));
  if (fields.kind < static_cast<uint32_t>(frame_kind::task) ||
      fields.kind > static_cast<uint32_t>(frame_kind::crash))
    return damaged(fmt::format("its kind is {}", fields.kind));
  if (fields.payload_bytes > max_payload_bytes)
    return damaged(fmt::format("it has {} bytes; at most {} are read", fields.payload_bytes,
                               max_payload_bytes));
  if (rest.size() - sizeof fields < fields.payload_bytes) return std::nullopt;
  const std::string_view payload = rest.substr(sizeof fields, fields.payload_bytes);
  if (XXH3_64bits(payload.data(), payload.size()) != fields.checksum)
    return damaged("its checksum is wrong");
  begin_ += sizeof fields + payload.size();
  return frame{static_cast<frame_kind>(fields.kind), std::string(payload)};
}

}  // namespace bitnet::probe
