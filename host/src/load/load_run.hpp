#pragma once
// Sends concurrent requests to a server of OpenAI's API and records when each token came.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "load/server_address.hpp"

namespace bitnet::host::load {

struct load_setup {
  server_address to;
  std::string model, key;
  bool chats = false;        // /v1/chat/completions in place of /v1/completions
  bool ignores_eos = false;  // sends ignore_eos, which OpenAI's own servers reject
  uint32_t n_streams = 1;    // concurrent requests
  uint32_t n_requests = 1;   // in all streams
  uint32_t n_prompt = 1;     // words per prompt
  uint32_t n_shared = 0;     // leading words that all prompts share
  uint32_t n_gen = 1;        // per request, at most
  uint32_t seed = 1;
};

// Times in ns of a monotonic clock.
struct request_times {
  uint64_t begun_ns = 0, ended_ns = 0;
  std::vector<uint64_t> pieces_ns;         // when pieces of text came
  uint64_t n_prompt = 0, n_generated = 0;  // the server's count of tokens; 0: not reported
  std::string failure;                     // "" for none

  [[nodiscard]] std::optional<double> first_ms() const;
  [[nodiscard]] double all_ms() const;
  // Tokens by the server's count, else the number of pieces.
  [[nodiscard]] uint64_t tokens() const;
  // Mean time per token after the first, in ms; nothing for fewer than two tokens.
  [[nodiscard]] std::optional<double> token_ms() const;
};

struct load_outcome {
  std::vector<request_times> requests;
  uint64_t wall_ns = 0;  // from the first request to the last answer
};

// The body of request `number`.
[[nodiscard]] std::string request_body(const load_setup& setup, uint32_t number);
// Each stream sends its next request after the previous answer. Every stream's thread polls
// `is_ended`; a cancelled request has a failure.
[[nodiscard]] load_outcome run_load(const load_setup& setup, const std::function<bool()>& is_ended);
// The first model of /v1/models; the error says why there is none.
[[nodiscard]] std::expected<std::string, std::string> first_model(
    const server_address& at, const std::string& key, const std::function<bool()>& is_ended);

}  // namespace bitnet::host::load
