#pragma once
// --plan, and plans of a model: they are made from two steps of a session opened for that.

#include <optional>
#include <string>

#include "basic/result.hpp"
#include "plan/plan.hpp"
#include "session/engine.hpp"

namespace bitnet::host {

// Tokens of the prompt step from which a plan is made, if steps can be that large.
inline constexpr uint32_t plan_prompt = 64;

// The plan of --plan; nothing if the option is absent or the command does not have it. Exit code 2
// for an invalid file, and for options that the plan decides if they come from a source of the same
// rank or a higher one.
[[nodiscard]] result<std::optional<plans::plan>> given_plan(const settings& set);

// The plan that describes what the open model runs with these settings.
[[nodiscard]] result<plans::plan> plan_of_model(const invocation& in, bitnet_model* model,
                                                const std::string& file);

// Exit code 14, with each difference, if the model does not run what --plan says.
[[nodiscard]] result<void> check_plan(const invocation& in, bitnet_model* model,
                                      const std::string& file);

}  // namespace bitnet::host
