#pragma once
// A session of the demo model, for tests of what calls may be made when.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "../demo_model.hpp"
#include "bitnet/bitnet.h"

namespace bitnet::test {

inline bitnet_error blank_error() {
  bitnet_error e{};
  e.struct_size = sizeof e;
  return e;
}

struct demo_session {
  bitnet_runtime* runtime = nullptr;
  bitnet_model* model = nullptr;
  bitnet_session* session = nullptr;
  bitnet_error error = blank_error();

  // The first status that is not BITNET_OK ends it.
  bitnet_status open(uint32_t n_threads = 2, const char* param = nullptr) {
    bitnet_runtime_options options;
    bitnet_runtime_defaults(&options, sizeof options);
    options.n_threads = n_threads;
    const char* const device = std::getenv("BITNET_TEST_DEVICE");
    options.device = device != nullptr ? device : "cpu";
    if (param != nullptr) {
      options.backend_params = &param;
      options.n_backend_params = 1;
    }
    static const std::string file = demo_model();  // once: a shortage is the library's
    if (file.empty()) return BITNET_NOT_FOUND;
    bitnet_status s = bitnet_runtime_open(&options, &runtime, &error);
    if (s == BITNET_OK) s = bitnet_model_open(runtime, file.c_str(), nullptr, &model, &error);
    if (s == BITNET_OK) s = bitnet_session_open(model, nullptr, &session, &error);
    return s;
  }
  void close() {
    bitnet_session_close(session);
    bitnet_model_close(model);
    bitnet_runtime_close(runtime);
    session = nullptr;
    model = nullptr;
    runtime = nullptr;
  }
  demo_session() = default;
  demo_session(const demo_session&) = delete;
  demo_session& operator=(const demo_session&) = delete;
  ~demo_session() { close(); }

  // `n` tokens behind a prompt of `n_prompt` equal ones; `text` may be NULL.
  bitnet_status generate(int32_t n, uint64_t n_prompt = 3, bitnet_text_callback text = nullptr,
                         void* user = nullptr, std::vector<bitnet_token>* out = nullptr) {
    bitnet_sampling sampling;
    bitnet_sampling_defaults(&sampling, sizeof sampling);
    sampling.temperature = 0;
    sampling.ignore_eos = 1;
    bitnet_generation g;
    bitnet_generation_defaults(&g, sizeof g);
    g.max_tokens = n;
    g.sampling = &sampling;
    g.text = text;
    g.text_user = user;
    std::vector<bitnet_token> room(static_cast<std::size_t>(n));
    g.out_tokens = room.data();
    g.out_capacity = room.size();
    const std::vector<bitnet_token> prompt(n_prompt, 5);
    bitnet_generation_result r{};
    r.struct_size = sizeof r;
    error = blank_error();
    const bitnet_status s = bitnet_generate(session, prompt.data(), prompt.size(), &g, &r, &error);
    if (out != nullptr) out->assign(room.begin(), room.begin() + static_cast<long>(r.n_generated));
    return s;
  }
};

}  // namespace bitnet::test
