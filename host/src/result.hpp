#pragma once
// A value or the reason there is none, and the exit code that the program leaves with.

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

#include "bitnet/abi/base.h"

namespace bitnet::host {

// The exit codes of this program; docs and tests use the same numbers.
namespace exit_code {
inline constexpr int ok = 0;
inline constexpr int failure = 1;
inline constexpr int usage = 2;           // flags, environment, config file, text given by the user
inline constexpr int model = 3;           // model file missing, invalid or unsupported
inline constexpr int unavailable = 4;     // no backend meets the request
inline constexpr int out_of_memory = 5;   // host or device
inline constexpr int suspicious = 8;      // weights, in strict mode
inline constexpr int too_slow = 9;        // a gate of speed or time
inline constexpr int too_large = 10;      // the gate of memory
inline constexpr int not_the_same = 11;   // the gate of determinism
inline constexpr int slower = 12;         // bench compare: something is slower
inline constexpr int no_comparison = 13;  // bench compare: the results cannot be compared
inline constexpr int not_kept = 14;       // a plan that cannot be kept to
inline constexpr int rejected = 22;       // the only candidate plugin broke a rule
inline constexpr int fake = 23;           // a fake device, which the user forbids
inline constexpr int skipped = 77;        // --skip-exit: what is to be used is missing
inline constexpr int interrupted = 130;   // Ctrl-C
}  // namespace exit_code

struct failure {
  int exit_code = exit_code::failure;
  std::string message;  // one line; empty: everything was said already
};

template <class T>
using result = std::expected<T, failure>;

[[nodiscard]] inline std::unexpected<failure> fail(int code, std::string message) {
  return std::unexpected(failure{code, std::move(message)});
}

// What the program was doing decides what a status means to its user.
enum class stage : uint8_t {
  model,  // opening or reading a model file
  text,   // turning text or ids given by the user into something else
  work,   // everything after that
};

[[nodiscard]] int exit_code_of(bitnet_status status, stage doing);

}  // namespace bitnet::host
