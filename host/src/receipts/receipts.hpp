#pragma once
// The receipts of a command, as --receipt and its options request them.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "session/engine.hpp"

namespace bitnet::host {

// Returns `done`, the command's exit code or failure. With --receipt it first writes a receipt of
// the session's last answer, or of the failure. `facts`: members added to it, such as gates[{name,
// limit, measured, passed}]. If the receipt cannot be written, that is the failure, unless `done`
// is one.
[[nodiscard]] result<int> with_receipt(const invocation& in, const engine& on, result<int> done,
                                       const nlohmann::json& facts);
[[nodiscard]] result<int> with_receipt(const invocation& in, const engine& on, result<int> done);
// The same if no session was opened.
[[nodiscard]] result<int> with_failed_receipt(const invocation& in, const failure& why);

// Makes the receipt of one choice of an ended request, as one line with its newline. Its content
// follows the options beside --receipt. `program`: members that the program adds.
[[nodiscard]] result<std::string> request_receipt(const invocation& in, bitnet_runtime* runtime,
                                                  bitnet_request* request, uint32_t choice,
                                                  nlohmann::json program);

// The claims of a receipt, unverified; nullopt: the text is not a receipt.
[[nodiscard]] std::optional<nlohmann::json> stated_predicate(std::string_view receipt);

// `driver_version` and `arch`: of the selected device. Returns the members {cuda_version, sm_arch},
// which BitNet-rs's receipts have for CUDA devices; null for others.
[[nodiscard]] nlohmann::json names_of_device(const std::string& driver_version,
                                             const std::string& arch);

}  // namespace bitnet::host
