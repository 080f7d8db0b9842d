#pragma once
// The protocol between bitnet-backend-probe and the core: frames over a stream socket. A program
// sends a job to a broker, which sends back stages and the answer. The broker sends a task to its
// child, which sends back the other kinds.
//
// Frame    "BNP1", kind u32, payload bytes u64, XXH3 of the payload u64, payload. Little-endian:
//          frames never leave the machine.
// Hostile  The plugin runs in the helper's process and can write anything into this socket. So
//          every byte is checked before use; tests/fuzz/probe/frame_fuzz.cpp.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "plugin/codes/codes.hpp"

namespace bitnet::probe {

// Increased with every change of the frames' content.
constexpr uint32_t protocol_version = 8;

// NOLINTNEXTLINE(performance-enum-size): as wide as in a frame
enum class frame_kind : uint32_t {
  task = 1,
  begin = 2,
  log = 3,
  facts = 4,
  done = 5,
  job = 6,
  answer = 7,
  crash = 8
};

struct frame {
  frame_kind kind = frame_kind::done;
  std::string payload;
};

constexpr uint64_t max_payload_bytes = uint64_t{16} << 20;

[[nodiscard]] std::string encode(frame_kind kind, std::string_view payload);

// The bytes before the payload. It allocates nothing, since signal handlers make it.
using frame_header = std::array<char, 24>;
[[nodiscard]] frame_header encode_header(frame_kind kind, std::string_view payload);

// Splits a stream into frames.
class frame_reader {
 public:
  void feed(std::span<const std::byte> bytes);
  // The next complete frame; nullopt if there is none yet; BN-P-MESSAGE for an invalid one.
  [[nodiscard]] plugin::checked<std::optional<frame>> next();

 private:
  std::string bytes_;
  std::size_t begin_ = 0;
};

}  // namespace bitnet::probe
