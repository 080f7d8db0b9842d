#pragma once
// --plan, and what a model's programs run: a plan is made of two steps of a session of its own.

#include <optional>
#include <string>

#include "library/engine.hpp"
#include "plan/pins.hpp"
#include "plan/plan.hpp"

namespace bitnet::host {

// Tokens of the step of a prompt that a plan is made of, where steps are that large.
inline constexpr uint32_t plan_prompt = 64;

// The plan of --plan; nothing where the command has no such option or none was given. Exit code 2
// for a file that is none, and beside options that the plan decides and that come from a source
// of the same rank or of a higher one.
[[nodiscard]] result<std::optional<plans::plan>> given_plan(const settings& set);

// What the model runs where it is open, with the options of the settings.
[[nodiscard]] result<plans::plan> plan_of_model(const invocation& in, bitnet_model* model,
                                                const std::string& file);

// Exit code 14, with each place, where what the model runs is not what --plan has.
[[nodiscard]] result<void> check_plan(const invocation& in, bitnet_model* model,
                                      const std::string& file);

}  // namespace bitnet::host
