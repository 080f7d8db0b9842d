#pragma once
// Generates the answer of a receipt again and compares.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "session/engine.hpp"

namespace bitnet::host {

enum class replay_verdict : uint8_t { byte_equal, within_tolerance, different, not_comparable };

struct replay {
  replay_verdict verdict = replay_verdict::not_comparable;
  std::string why;                          // reason, for all but byte_equal
  std::optional<uint64_t> first_different;  // index in the answer
  bitnet_token was = -1, is = -1;           // at that index; -1: unknown, or no token
};
// "byte-equal", "equal within the tolerance", "different", "not comparable"
[[nodiscard]] const char* name_of(replay_verdict v);

// Replays a valid receipt with the model in `file`. `prompt`: the prompt's tokens, if the receipt
// does not have them.
[[nodiscard]] result<replay> replay_receipt(const invocation& in, const nlohmann::json& predicate,
                                            const std::string& file,
                                            const std::optional<token_list>& prompt);

}  // namespace bitnet::host
