#pragma once
// A second backend that computes some rows of logits again, as --shadow asks for it.

#include <nlohmann/json.hpp>
#include <optional>

#include "library/engine.hpp"
#include "library/shadowing.hpp"

namespace bitnet::host {

// Of --shadow; nothing where it is not given. Exit code 2 for one that is none, which is better
// known before a model is loaded.
[[nodiscard]] result<std::optional<shadow_wish>> given_shadow(const settings& set);

// For texts of sessions as open_session() has them, and of schedulers as open_scheduler() has them,
// with this `n_context`. Empty where none is asked for.
[[nodiscard]] result<shadow_handle> open_shadow(const invocation& in, bitnet_model* model,
                                                uint32_t n_context);

// From now on some of its rows are compared. Without a shadow nothing is done.
[[nodiscard]] result<void> give_shadow(bitnet_session* to, bitnet_shadow* shadow);
[[nodiscard]] result<void> give_shadow(bitnet_scheduler* to, bitnet_shadow* shadow);

[[nodiscard]] result<nlohmann::json> shadow_report(bitnet_shadow* shadow);

// At the end of the work: waits for rows that are not compared yet, for a minute at most or until
// Ctrl-C, looks for the first op that differs where a row did, and notes all that in a line.
// Nothing without a shadow.
std::optional<nlohmann::json> end_shadow(const invocation& in, bitnet_shadow* shadow);

}  // namespace bitnet::host
