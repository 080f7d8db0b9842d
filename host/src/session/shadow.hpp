#pragma once
// The shadow of --shadow: a second backend that recomputes some rows of logits.

#include <nlohmann/json.hpp>
#include <optional>

#include "session/engine.hpp"
#include "session/shadowing.hpp"

namespace bitnet::host {

// The value of --shadow; nothing if it is not given. Exit code 2 for an invalid value, before a
// model is loaded.
[[nodiscard]] result<std::optional<shadow_wish>> given_shadow(const settings& set);

// Opens a shadow for texts of sessions from open_session() and of schedulers from open_scheduler()
// with this `n_context`. Empty if none is requested.
[[nodiscard]] result<shadow_handle> open_shadow(const invocation& in, bitnet_model* model,
                                                uint32_t n_context);

// From now on the shadow compares some of the rows. Does nothing without a shadow.
[[nodiscard]] result<void> give_shadow(bitnet_session* to, bitnet_shadow* shadow);
[[nodiscard]] result<void> give_shadow(bitnet_scheduler* to, bitnet_shadow* shadow);

[[nodiscard]] result<nlohmann::json> shadow_report(bitnet_shadow* shadow);

// Call it at the end of the work. Waits for pending comparisons, a minute at most or until Ctrl-C,
// looks for the first differing op if a row differed, and notes the result in a line. Returns
// nothing without a shadow.
std::optional<nlohmann::json> end_shadow(const invocation& in, bitnet_shadow* shadow);

}  // namespace bitnet::host
