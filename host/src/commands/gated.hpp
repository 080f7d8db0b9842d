#pragma once
// Shared by commands with gates, and by commands that --skip-if-missing may skip.

#include "gates/gates.hpp"
#include "session/generation.hpp"

namespace bitnet::host {

// Exit code 2 if a gate is on the command line; `why` says why this command has none.
[[nodiscard]] result<void> no_gates(const invocation& in, std::string_view why);

// Takes a generation into the gates and repeats it as often as they require. `first`: the ids that
// the session generated for `prompt`.
[[nodiscard]] result<void> take_run(const invocation& in, gates& limits, bitnet_session* session,
                                    const token_list& prompt, const generation_setup& setup,
                                    const generated& first);

// Generates `n_tokens` likeliest tokens after `prompt`, and repeats that as often as the gates
// require.
[[nodiscard]] result<void> take_repeats(const invocation& in, gates& limits,
                                        bitnet_session* session, const token_list& prompt,
                                        uint32_t n_tokens);

// Notes what the gates measured; returns a failure that names the gates which did not pass.
[[nodiscard]] result<int> judged(const invocation& in, const gates& limits);

// Returns `done`. If no backend meets the request and --skip-if-missing is given, prints the reason
// and returns 0, or 77 with --skip-exit.
[[nodiscard]] result<int> skipped_if_missing(const invocation& in, result<int> done);

}  // namespace bitnet::host
