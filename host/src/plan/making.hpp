#pragma once
// A plan of what the library reports: the ops of a session's program, and which kernels were
// counted in a step.

#include <nlohmann/json_fwd.hpp>

#include "plan/plan.hpp"

namespace bitnet::host::plans {

// `program` is the report of bitnet_session_program; `token` and `prompt` are the members `kernels`
// of bitnet_session_report behind a step of one token, and behind one of a prompt. Members that are
// missing or of another type are passed over.
[[nodiscard]] std::vector<part> parts_of(const nlohmann::json& program, const nlohmann::json& token,
                                         const nlohmann::json& prompt);

// Says of each row why its kernel runs, by the member `kernels` of the row of a backend in
// bitnet_runtime_report.
void explain(part& of, const nlohmann::json& listed);

}  // namespace bitnet::host::plans
