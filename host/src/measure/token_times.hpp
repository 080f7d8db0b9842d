#pragma once
// Arrival times of tokens in concurrent requests, and the rates and delays derived from them.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace bitnet::host {

// Times of one request on a monotonic clock, as its reader saw them.
struct token_times {
  uint64_t submitted_ns = 0;
  std::vector<uint64_t> tokens_ns;
  uint64_t generate_ns = 0;  // from the first token to the end, by the scheduler's count
};

// Time to the first token in ms; nothing if there was none.
[[nodiscard]] std::optional<double> first_ms(const token_times& of);
// Appends the times between consecutive tokens, in ms.
void add_between_ms(const token_times& of, std::vector<double>& to);
// Tokens per second of all requests together, while all of them generate: from the latest first
// token to the earliest last token. Nothing if some request has less than half of its tokens in
// that time. Nothing also if the reader saw a request's tokens in less than nine tenths of
// `generate_ns`: it was held up, so its times are wrong.
[[nodiscard]] std::optional<double> rate_together(std::span<const token_times> all);

}  // namespace bitnet::host
