#pragma once
// What commands have in common that have gates, and that may be skipped where a backend is missing.

#include "gates/gates.hpp"
#include "library/generation.hpp"

namespace bitnet::host {

// Exit code 2 where a gate is on the command line and `why` says that nothing has it.
[[nodiscard]] result<void> no_gates(const invocation& in, std::string_view why);

// Takes a generation, and generates again as often as the gates want: `first` has the ids that
// `prompt` gave in the session.
[[nodiscard]] result<void> take_run(const invocation& in, gates& limits, bitnet_session* session,
                                    const token_list& prompt, const generation_plan& plan,
                                    const generated& first);

// Generates `n_tokens` likely tokens behind `prompt`, and does so as often again as the gates want.
[[nodiscard]] result<void> take_repeats(const invocation& in, gates& limits,
                                        bitnet_session* session, const token_list& prompt,
                                        uint32_t n_tokens);

// Notes what the gates measured; where one did not pass, the failure that says which.
[[nodiscard]] result<int> judged(const invocation& in, const gates& limits);

// `done`; where no backend meets the request, with --skip-if-missing, what is printed and returned
// in its place.
[[nodiscard]] result<int> skipped_if_missing(const invocation& in, result<int> done);

}  // namespace bitnet::host
