#pragma once
// The receipts of a command: what --receipt and its options ask for.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "library/engine.hpp"

namespace bitnet::host {

// What a command was about to answer with: its code, or its failure. With --receipt a receipt is
// written before: of the last answer of the session, or of the failure. `facts`: members that are
// added to it, such as gates[{name, limit, measured, passed}]. A receipt that cannot be written is
// a failure, unless there is one already.
[[nodiscard]] result<int> with_receipt(const invocation& in, const engine& on, result<int> done,
                                       const nlohmann::json& facts);
[[nodiscard]] result<int> with_receipt(const invocation& in, const engine& on, result<int> done);
// The same where no session came to be.
[[nodiscard]] result<int> with_failed_receipt(const invocation& in, const failure& why);

// The receipt of a choice of a request that has ended, in one line with its end, as the options
// beside --receipt ask for it. `program`: what the program adds.
[[nodiscard]] result<std::string> request_receipt(const invocation& in, bitnet_runtime* runtime,
                                                  bitnet_request* request, uint32_t choice,
                                                  nlohmann::json program);

// What a receipt states, whether it is true or not; nullopt: the text is no receipt.
[[nodiscard]] std::optional<nlohmann::json> stated_predicate(std::string_view receipt);

// The names of the ancestor's receipts that belong to devices of one maker, of `predicate`'s
// selected device: {cuda_version, sm_arch}, null where they do not apply.
[[nodiscard]] nlohmann::json names_of_device(const std::string& driver_version,
                                             const std::string& arch);

}  // namespace bitnet::host
