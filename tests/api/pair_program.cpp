// Two backends in one process, in this order: pair_program A B computes with A, then with B beside
// it, then with A again, all of the same prompt; pair_program A computes with A alone. It prints
// one line of JSON: the tokens of each, or the status and the reason of one that was rejected.
// backend_pairs.py runs it.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "../demo_model.hpp"
#include "bitnet/bitnet.h"

namespace {

constexpr int32_t n_tokens = 4;  // after a step of several: stand-ins of drivers are slow
constexpr char begin[] = "Once upon a time";

class engine {
 public:
  explicit engine(const char* device) {
    error_.struct_size = sizeof error_;
    bitnet_runtime_options options;
    bitnet_runtime_defaults(&options, sizeof options);
    options.device = device;
    options.n_threads = 1;
    const std::string file = bitnet::test::demo_model();
    status_ = bitnet_runtime_open(&options, &runtime_, &error_);
    if (status_ == BITNET_OK)
      status_ = bitnet_model_open(runtime_, file.c_str(), nullptr, &model_, &error_);
    if (status_ == BITNET_OK) status_ = bitnet_session_open(model_, nullptr, &session_, &error_);
  }
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine() {
    bitnet_session_close(session_);
    bitnet_model_close(model_);
    bitnet_runtime_close(runtime_);
  }

  // The most likely tokens behind a fixed prompt.
  std::vector<bitnet_token> compute() {
    std::vector<bitnet_token> prompt(64), out(n_tokens);
    uint64_t n_prompt = 0;
    if (status_ == BITNET_OK)
      status_ = bitnet_tokenize(model_, {begin, sizeof begin - 1}, BITNET_TOKENIZE_MODEL_BOS,
                                prompt.data(), prompt.size(), &n_prompt, &error_);
    if (status_ == BITNET_OK) status_ = bitnet_session_truncate(session_, 0, &error_);
    bitnet_sampling greedy;
    bitnet_sampling_defaults(&greedy, sizeof greedy);
    greedy.temperature = 0;
    bitnet_generation how;
    bitnet_generation_defaults(&how, sizeof how);
    how.max_tokens = n_tokens;
    how.sampling = &greedy;
    how.out_tokens = out.data();
    how.out_capacity = out.size();
    bitnet_generation_result result{};
    result.struct_size = sizeof result;
    if (status_ == BITNET_OK)
      status_ = bitnet_generate(session_, prompt.data(), n_prompt, &how, &result, &error_);
    out.resize(status_ == BITNET_OK ? result.n_generated : 0);
    return out;
  }

  [[nodiscard]] bitnet_status status() const { return status_; }
  [[nodiscard]] const char* reason() const { return error_.message; }

 private:
  bitnet_runtime* runtime_ = nullptr;
  bitnet_model* model_ = nullptr;
  bitnet_session* session_ = nullptr;
  bitnet_status status_ = BITNET_OK;
  bitnet_error error_{};
};

// {"device": "a", "tokens": [...]} or {"device": "b", "status": -4, "reason": "..."}.
std::string json_of(const char* device, engine& of) {
  const std::vector<bitnet_token> tokens = of.compute();
  std::string out = std::string("{\"device\": \"") + device + "\", ";
  if (of.status() != BITNET_OK) {
    std::string reason;
    for (const char c : std::string(of.reason()))
      reason += c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ' ? '\'' : c;
    return out + "\"status\": " + std::to_string(of.status()) + ", \"reason\": \"" + reason + "\"}";
  }
  out += "\"tokens\": [";
  for (std::size_t i = 0; i < tokens.size(); ++i)
    out += (i == 0 ? "" : ", ") + std::to_string(tokens[i]);
  return out + "]}";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fputs("usage: pair_program BACKEND [BACKEND]\n", stderr);
    return 2;
  }
  engine first(argv[1]);
  const std::string alone = json_of(argv[1], first);
  if (argc == 2) {
    std::printf("[%s]\n", alone.c_str());
    return 0;
  }
  engine second(argv[2]);
  const std::string beside = json_of(argv[2], second);
  const std::string again = json_of(argv[1], first);
  std::printf("[%s, %s, %s]\n", alone.c_str(), beside.c_str(), again.c_str());
  return 0;
}
