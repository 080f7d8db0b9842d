#pragma once
// Makes a plan from the library's reports: the ops of a session's program, and the kernels that
// were counted in a step.

#include <nlohmann/json_fwd.hpp>

#include "plan/plan.hpp"

namespace bitnet::host::plans {

// `program`: the report of bitnet_session_program. `token`, `prompt`: the member `kernels` of
// bitnet_session_report after a step of one token and after one of a prompt. Members that are
// missing or of another type are skipped.
[[nodiscard]] std::vector<part> parts_of(const nlohmann::json& program, const nlohmann::json& token,
                                         const nlohmann::json& prompt);

// Sets why each row's kernel runs. `listed`: the member `kernels` of the backend's row in
// bitnet_runtime_report.
void explain(part& of, const nlohmann::json& listed);

}  // namespace bitnet::host::plans
