#include "openai/api_error.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace bitnet::host::openai {
namespace {

using nlohmann::ordered_json;

ordered_json text_or_null(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

}  // namespace

std::unexpected<api_error> invalid(std::string param, std::string message, std::string code) {
  api_error out;
  out.code = std::move(code);
  out.message = std::move(message);
  out.param = std::move(param);
  return std::unexpected(std::move(out));
}

std::unexpected<api_error> unsupported(std::string param, std::string_view why) {
  std::string message = fmt::format("'{}' is not supported: {}", param, why);
  return invalid(std::move(param), std::move(message), "unsupported_parameter");
}

std::unexpected<api_error> too_long(std::string param, uint64_t n_prompt, uint64_t n_context) {
  // Clients that shorten a conversation look for the first six words, which are OpenAI's.
  auto out = invalid(std::move(param),
                     fmt::format("This model's maximum context length is {} tokens, and the prompt "
                                 "has {}: give a shorter prompt or a larger context",
                                 n_context, n_prompt),
                     "context_length_exceeded");
  out.error().n_prompt = n_prompt;
  out.error().n_context = n_context;
  return out;
}

bool is_of_request(bitnet_status status) {
  return status == BITNET_INVALID_ARGUMENT || status == BITNET_UNSUPPORTED ||
         status == BITNET_CONTEXT_FULL || status == BITNET_BAD_DATA ||
         status == BITNET_OUT_OF_DEVICE_MEMORY;
}

api_error error_of(bitnet_status status, std::string message, std::string param) {
  api_error out;
  out.message = std::move(message);
  out.param = std::move(param);
  if (!is_of_request(status)) {
    out.status = 500;
    out.type = "server_error";
    out.code = "internal_error";
    return out;
  }
  out.code = status == BITNET_CONTEXT_FULL           ? "context_length_exceeded"
             : status == BITNET_OUT_OF_DEVICE_MEMORY ? "request_too_large"
                                                     : "invalid_value";
  return out;
}

ordered_json error_json(const api_error& why) {
  ordered_json out = {{"message", why.message},
                      {"type", why.type},
                      {"param", text_or_null(why.param)},
                      {"code", text_or_null(why.code)}};
  if (why.n_context == 0) return out;
  out["n_prompt_tokens"] = why.n_prompt;
  out["n_ctx"] = why.n_context;
  return out;
}

}  // namespace bitnet::host::openai
