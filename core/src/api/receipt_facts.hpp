#pragma once
// Collects the facts of a receipt from counters and handles; the rules of receipt/ judge them.

#include <string>

#include "api/objects.hpp"
#include "base/result.hpp"
#include "json/value.hpp"

namespace bitnet::api {

// Facts of a failed call: selection, host, memory, and "failed" with the failure.
json::value failed_facts(bitnet_runtime& runtime, const failure& why);

// Facts of a session's last answer. `with_tokens`: also the tokens of prompt and answer. Reads
// whole files whose sums are not cached. The caller holds the session's call
// guard.
result<json::value> session_facts(bitnet_session& session, bool with_tokens);

// Facts of a choice of an ended request, `choice` as in events. Reads files like session_facts().
result<json::value> request_facts(bitnet_request& request, uint32_t choice, bool with_tokens);

}  // namespace bitnet::api
