#pragma once
// The facts of a receipt, from what was counted and from the handles of bitnet.h; the rules of
// receipt/ judge them.

#include <string>

#include "api/objects.hpp"
#include "base/result.hpp"
#include "json/value.hpp"

namespace bitnet::api {

// What every receipt has: the selection, the host, memory; and "failed" with that failure.
json::value failed_facts(bitnet_runtime& runtime, const failure& why);

// Of the last answer of a session. `with_tokens`: those of the prompt and of the answer, too.
// Reads files whole whose sums are not remembered. The caller has the session's turn.
result<json::value> session_facts(bitnet_session& session, bool with_tokens);

// Of a choice of a request that has ended. `choice` as events have it. Reads files likewise.
result<json::value> request_facts(bitnet_request& request, uint32_t choice, bool with_tokens);

}  // namespace bitnet::api
