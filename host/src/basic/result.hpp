#pragma once
// A value or the reason why there is none, with the exit code for the program.

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
inline constexpr int usage = 2;           // flags, environment, config file, or text of the user
inline constexpr int model = 3;           // model file missing, invalid or unsupported
inline constexpr int unavailable = 4;     // no backend meets the request; crossval: no engine found
inline constexpr int out_of_memory = 5;   // host or device
inline constexpr int suspicious = 8;      // weights, in strict mode
inline constexpr int too_slow = 9;        // gate of speed or time
inline constexpr int too_large = 10;      // gate of memory
inline constexpr int not_the_same = 11;   // gate of determinism; crossval
inline constexpr int slower = 12;         // bench compare: something is slower
inline constexpr int no_comparison = 13;  // bench compare, replay, crossval: results not comparable
inline constexpr int not_kept = 14;       // what runs differs from the plan of --plan
inline constexpr int rejected = 22;  // a plugin broke a rule; a model does not match its signature
inline constexpr int fake = 23;      // a fake device, which the user forbids
inline constexpr int skipped = 77;   // --skip-exit: the backend is missing
inline constexpr int interrupted = 130;  // Ctrl-C; batch and serve also SIGTERM
}  // namespace exit_code

struct failure {
  int exit_code = exit_code::failure;
  std::string message;  // one line; empty: already printed
};

template <class T>
using result = std::expected<T, failure>;

[[nodiscard]] inline std::unexpected<failure> fail(int code, std::string message) {
  return std::unexpected(failure{code, std::move(message)});
}

// What the program was doing; it decides which exit code a status gets.
enum class stage : uint8_t {
  model,  // opening or reading a model file
  text,   // converting text or ids of the user
  work,   // everything after that
};

[[nodiscard]] int exit_code_of(bitnet_status status, stage doing);

}  // namespace bitnet::host
