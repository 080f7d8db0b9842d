#pragma once
// The functions of libllama.so that a comparison needs, found by name in a library that was loaded.
//
// Versions   of llama.h differ in names, in parameters and in the structs that are passed by value.
//            Names decide which API a library has; a library of neither is rejected. ADR 0074 has
//            which layouts are relied on and what shows that they are right.
// Structs    of parameters are taken as the library's defaults give them and handed back, as blocks
//            of more bytes than any of them has. A block is passed as the struct would be on x86-64
//            (in memory, on the stack) and aarch64 (in memory, by its address), for structs of more
//            than 16 bytes, which all of these are.

#include <cstdint>
#include <string>
#include <vector>

#include "result.hpp"

namespace bitnet::host::crossval {

// Any struct of llama.h. The second half stays as it was: default_params() looks.
struct alignas(8) llama_block {
  unsigned char bytes[1024];
};

enum class llama_generation : uint8_t {
  y2024,  // February to December 2024, and bitnet.cpp: llama_load_model_from_file, llama_n_vocab
  y2025,  // since January 2025: llama_model_load_from_file, llama_vocab_n_tokens
};
[[nodiscard]] std::string_view words_of(llama_generation which);

class llama_api {
 public:
  // Loads `library`, and before it what it needs from `folders` where the dynamic linker does not
  // find it by itself. Never closed.
  [[nodiscard]] static result<llama_api> load(const std::string& library,
                                              const std::vector<std::string>& folders);

  [[nodiscard]] llama_generation generation() const { return generation_; }
  // "ggml 0.9.4", "" for a version that does not say it.
  [[nodiscard]] std::string version() const;

  // Backends that are files of their own are loaded from the folder of the library.
  void start(const std::string& folder) const;
  [[nodiscard]] result<void> open_model(const std::string& file);
  [[nodiscard]] int32_t n_vocab() const;
  [[nodiscard]] std::string model_description() const;
  [[nodiscard]] result<std::vector<int32_t>> tokenize(const std::string& text) const;

  // A context with nothing in it, in place of the one before. `n_context` is what is needed: where
  // the struct of parameters is not known, the library's own number stays.
  [[nodiscard]] result<void> new_context(uint32_t n_context, int32_t n_threads);
  [[nodiscard]] uint32_t n_context() const;
  // The logits behind one more token: (n_vocab), the library's until the next call.
  [[nodiscard]] result<const float*> decode(int32_t token);

 private:
  using load_function = void* (*)(const char* file, llama_block params);
  using context_function = void* (*)(void* model, llama_block params);
  // Since October 2024 it takes the first two only; the others are then in registers unread.
  using batch_function = llama_block (*)(int32_t* tokens, int32_t n, int32_t position,
                                         int32_t sequence);
  using tokenize_function = int32_t (*)(const void* of, const char* text, int32_t bytes,
                                        int32_t* tokens, int32_t most, bool special, bool parse);

  llama_api() = default;
  [[nodiscard]] result<void> find_functions();
  template <class F>
  [[nodiscard]] F symbol(const char* name) const;
  // What the function of that name returns, which must be in the first half of the block alone.
  [[nodiscard]] result<llama_block> default_params(const char* name) const;
  [[nodiscard]] const void* vocabulary() const;  // what the functions on tokens take

  void* library_ = nullptr;
  llama_generation generation_ = llama_generation::y2025;
  load_function load_model_ = nullptr;
  context_function new_context_ = nullptr;
  batch_function batch_ = nullptr;
  tokenize_function tokenize_ = nullptr;
  int32_t (*decode_)(void* context, llama_block batch) = nullptr;
  float* (*logits_)(void* context) = nullptr;
  uint32_t (*n_context_)(const void* context) = nullptr;
  int32_t (*n_vocab_)(const void* of) = nullptr;
  void (*free_context_)(void* context) = nullptr;
  void (*backend_init_)() = nullptr;

  void* model_ = nullptr;
  void* context_ = nullptr;
  uint32_t used_ = 0;  // tokens in the context
};

}  // namespace bitnet::host::crossval
