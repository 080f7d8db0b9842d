#pragma once
// Requests at a server of OpenAI's API, a number of them at any time, and when each of their tokens
// came.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "load/server_address.hpp"

namespace bitnet::host::load {

struct load_plan {
  server_address to;
  std::string model, key;
  bool chats = false;        // /v1/chat/completions in place of /v1/completions
  bool ignores_eos = false;  // the member ignore_eos, which servers of OpenAI's own refuse
  uint32_t n_streams = 1;    // requests at any time
  uint32_t n_requests = 1;   // of all streams together
  uint32_t n_prompt = 1;     // words of a prompt
  uint32_t n_shared = 0;     // first words that all prompts have in common
  uint32_t n_gen = 1;        // tokens at most
  uint32_t seed = 1;
};

// Times in ns of a steady clock.
struct request_times {
  uint64_t begun_ns = 0, ended_ns = 0;
  std::vector<uint64_t> pieces_ns;         // when text came
  uint64_t n_prompt = 0, n_generated = 0;  // tokens, as the server counts them; 0: it does not
  std::string failure;                     // "" for none

  [[nodiscard]] std::optional<double> first_ms() const;
  [[nodiscard]] double all_ms() const;
  // Tokens of the server's count, else pieces of text.
  [[nodiscard]] uint64_t tokens() const;
  // Between the first and the last, of each token; nothing of less than two.
  [[nodiscard]] std::optional<double> token_ms() const;
};

struct load_outcome {
  std::vector<request_times> requests;
  uint64_t wall_ns = 0;  // from the first request to the last answer
};

// The body of request `number`.
[[nodiscard]] std::string request_body(const load_plan& plan, uint32_t number);
// Each stream sends its next request when the last one is answered. `is_ended` is asked in each of
// its threads; the requests that it breaks off have a failure.
[[nodiscard]] load_outcome run_load(const load_plan& plan, const std::function<bool()>& is_ended);
// The first model of /v1/models; the message says why there is none.
[[nodiscard]] std::expected<std::string, std::string> first_model(
    const server_address& at, const std::string& key, const std::function<bool()>& is_ended);

}  // namespace bitnet::host::load
