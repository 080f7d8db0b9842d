// Generates N tokens and prints how many times memory was allocated on the way, in the whole
// process: by the library, the backend, the C++ library. For a trace of its system calls, a
// "decode_cost: begin" and "decode_cost: end" are written to no descriptor before and after.
//
//   decode_cost MODEL N TEMPERATURE
//
// Exit code 77 when no backend computes here.
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "bitnet/bitnet.h"

namespace {

std::atomic<unsigned long> allocations{0};

int fail(const char* what, const bitnet_error& err) {
  std::fprintf(stderr, "skip: %s: %s\n", what, err.message);
  return err.code == BITNET_UNAVAILABLE ? 77 : 1;
}

// A call that does nothing, and that a list of system calls shows.
void mark(std::string_view text) {
  [[maybe_unused]] const auto none = write(-1, text.data(), text.size());
}

}  // namespace

// glibc's own, under the names that stay when malloc is replaced.
extern "C" {
void* __libc_malloc(std::size_t n);
void* __libc_calloc(std::size_t n, std::size_t size);
void* __libc_realloc(void* old, std::size_t n);
void* __libc_memalign(std::size_t alignment, std::size_t n);

void* malloc(std::size_t n) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(n);
}
void* calloc(std::size_t n, std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(n, size);
}
void* realloc(void* old, std::size_t n) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(old, n);
}
void* aligned_alloc(std::size_t alignment, std::size_t n) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, n);
}
}

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: decode_cost MODEL N TEMPERATURE\n", stderr);
    return 2;
  }
  bitnet_error err{};
  err.struct_size = sizeof err;
  bitnet_runtime_options options;
  bitnet_runtime_defaults(&options, sizeof options);
  options.n_threads = 2;
  bitnet_runtime* runtime = nullptr;
  if (bitnet_runtime_open(&options, &runtime, &err) != BITNET_OK) return fail("runtime", err);
  bitnet_model* model = nullptr;
  if (bitnet_model_open(runtime, argv[1], nullptr, &model, &err) != BITNET_OK)
    return fail("model", err);
  bitnet_session* session = nullptr;
  if (bitnet_session_open(model, nullptr, &session, &err) != BITNET_OK) return fail("session", err);

  bitnet_sampling sampling;
  bitnet_sampling_defaults(&sampling, sizeof sampling);
  sampling.temperature = std::strtof(argv[3], nullptr);
  sampling.ignore_eos = 1;
  std::vector<bitnet_token> tokens(4096);
  bitnet_generation generation{};
  generation.struct_size = sizeof generation;
  generation.sampling = &sampling;
  generation.out_tokens = tokens.data();
  generation.out_capacity = tokens.size();
  generation.text = [](void*, bitnet_str) { return int32_t{0}; };
  bitnet_generation_result result{};
  result.struct_size = sizeof result;
  const bitnet_token prompt = 1;

  // What is made once, at the first token, is no token's.
  generation.max_tokens = 4;
  if (bitnet_generate(session, &prompt, 1, &generation, &result, &err) != BITNET_OK)
    return fail("warming up", err);
  if (bitnet_session_truncate(session, 0, &err) != BITNET_OK) return fail("truncate", err);

  generation.max_tokens = std::atoi(argv[2]);
  const unsigned long before = allocations.load();
  mark("decode_cost: begin");
  if (bitnet_generate(session, &prompt, 1, &generation, &result, &err) != BITNET_OK)
    return fail("generating", err);
  mark("decode_cost: end");
  const unsigned long after = allocations.load();
  std::printf("{\"tokens\": %llu, \"allocations\": %lu}\n",
              static_cast<unsigned long long>(result.n_generated), after - before);
  bitnet_session_close(session);
  bitnet_model_close(model);
  bitnet_runtime_close(runtime);
  return 0;
}
