#pragma once
// Why a request was rejected, as OpenAI's API reports it.

#include <cstdint>
#include <expected>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "bitnet/abi/base.h"

namespace bitnet::host::openai {

struct api_error {
  int status = 400;  // of HTTP
  std::string type = "invalid_request_error";
  std::string code;     // "": null
  std::string message;  // one sentence
  std::string param;    // the member of the body, such as messages[0].role; "": null
  // Tokens, for context_length_exceeded; 0: another error.
  uint64_t n_prompt = 0, n_context = 0;
};

template <class T>
using parsed = std::expected<T, api_error>;

[[nodiscard]] std::unexpected<api_error> invalid(std::string param, std::string message,
                                                 std::string code = "invalid_value");
// `why` says what is missing and what to do; the message also names the member.
[[nodiscard]] std::unexpected<api_error> unsupported(std::string param, std::string_view why);
// `param`: the member that the prompt came from.
[[nodiscard]] std::unexpected<api_error> too_long(std::string param, uint64_t n_prompt,
                                                  uint64_t n_context);

// The error for a bitnet_status of a request: HTTP status 400 if the request is at fault, else 500.
[[nodiscard]] api_error error_of(bitnet_status status, std::string message, std::string param = "");
// Whether the request itself causes this status, so that it would fail again on a healthy engine.
[[nodiscard]] bool is_of_request(bitnet_status status);

// {"message", "type", "param", "code"}; if the context is exceeded, also llama-server's
// "n_prompt_tokens" and "n_ctx".
[[nodiscard]] nlohmann::ordered_json error_json(const api_error& why);

}  // namespace bitnet::host::openai
