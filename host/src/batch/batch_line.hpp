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
  std::string text;  // the body's raw text
};

// A parsed input line: a request, or the error in its place. The id is kept where it can be read.
struct read_line {
  std::string custom_id;  // "": it cannot be read
  std::optional<request_line> request;
  openai::api_error fault;  // set if there is no request
};
[[nodiscard]] read_line read_request_line(std::string_view text);

// These functions write output lines, each with its newline. An answer, with status 200:
[[nodiscard]] std::string answer_line(const std::string& custom_id,
                                      const nlohmann::ordered_json& body);
// A request that the endpoint rejected, with its HTTP status and error:
[[nodiscard]] std::string rejection_line(const std::string& custom_id,
                                         const openai::api_error& why);
// An input line that is not a request. Without an id, the line's number names it.
[[nodiscard]] std::string fault_line(const std::string& custom_id, uint64_t number,
                                     const openai::api_error& why);

// Every output line begins with this text.
inline constexpr std::string_view output_prefix = R"({"id":"batch_req_)";

// An output line as a resumed run reads it.
struct written_line {
  std::string custom_id;  // "": the input line `number` had no id
  uint64_t number = 0;
  std::string fingerprint;  // of the model that answered; "": none did
};
// nullopt: the text is not an output line.
[[nodiscard]] std::optional<written_line> read_written_line(std::string_view text);

}  // namespace bitnet::host::batch
