#pragma once
// Bytes that were compressed by DEFLATE (RFC 1951), without a header around them.

#include <cstdint>
#include <span>
#include <vector>

namespace bitnet::rocm {

// The first `bytes` of what `packed` comes to, which must be all of it. False: `packed` is no such
// stream, or of another size.
bool inflate(std::span<const uint8_t> packed, uint64_t bytes, std::vector<uint8_t>& out);

}  // namespace bitnet::rocm
