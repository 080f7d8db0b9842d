#pragma once
// When the tokens of requests came that ran at the same time, and what a table says of that.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace bitnet::host {

// Of one request, on a clock that only goes forward, as its reader saw it.
struct token_times {
  uint64_t submitted_ns = 0;
  std::vector<uint64_t> tokens_ns;
  uint64_t generate_ns = 0;  // from the first token to the end, as the scheduler counted it
};

// Milliseconds that a request waited for its first token; nothing where none came.
[[nodiscard]] std::optional<double> first_ms(const token_times& of);
// Adds the milliseconds between each token and the one before it.
void add_between_ms(const token_times& of, std::vector<double>& to);
// Tokens per second of all requests together, from when the last of them had its first token until
// the first of them had its last. Nothing where less than half of some request's tokens came in
// that time, or where the reader saw them come in less than nine tenths of the time that they took:
// it was kept from reading and does not know.
[[nodiscard]] std::optional<double> rate_together(std::span<const token_times> all);

}  // namespace bitnet::host
