#pragma once
// Lines of OpenAI's batch files: a request in, an answer out.
//
// In   {"custom_id", "method": "POST", "url", "body": {...}}
// Out  {"id", "custom_id", "response": {"status_code", "request_id", "body"} or null,
//      "error": null or {"code", "message", "param", "line"?}}

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "openai/request.hpp"

namespace bitnet::host::batch {

struct request_line {
  std::string custom_id;
  openai::endpoint to = openai::endpoint::chat;
  nlohmann::json body;
  std::string text;  // of the body
};

// What of a line could be read: a request, or why there is none, with the id where there is one.
struct read_line {
  std::string custom_id;  // "": it cannot be read
  std::optional<request_line> request;
  openai::api_error fault;  // where there is no request
};
[[nodiscard]] read_line read_request_line(std::string_view text);

// Lines of the output, each with its end. An answer, with a status of 200:
[[nodiscard]] std::string answer_line(const std::string& custom_id,
                                      const nlohmann::ordered_json& body);
// a request that the endpoint rejected, with its status and the error in body and line;
[[nodiscard]] std::string rejection_line(const std::string& custom_id,
                                         const openai::api_error& why);
// a line of the input that is no request. Without an id, its number is what names it.
[[nodiscard]] std::string fault_line(const std::string& custom_id, uint64_t number,
                                     const openai::api_error& why);

// What every line of an output begins with.
inline constexpr std::string_view output_prefix = R"({"id":"batch_req_)";

// What a line of an output is about, for a run that goes on.
struct written_line {
  std::string custom_id;  // "": of a line of the input, by `number`
  uint64_t number = 0;
  std::string fingerprint;  // of the model that answered; "": none did
};
// nullopt: the text is no line of an output.
[[nodiscard]] std::optional<written_line> read_written_line(std::string_view text);

}  // namespace bitnet::host::batch
