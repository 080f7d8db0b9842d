#pragma once
// The functions of libllama.so that a comparison needs, looked up by name in the loaded library.
//
// Versions   of llama.h differ in names, in parameters and in structs passed by value. The names
//            decide which API a library has; a library with neither set is rejected. ADR 0074 lists
//            the layouts that are relied on, and the evidence for them.
// Structs    of parameters come from the library's defaults and are passed back unchanged, as
//            blocks larger than any of them. A block is passed like a struct of more than 16 bytes,
//            which all of these are: on the stack (x86-64), or by its address (aarch64).

#include <cstdint>
#include <string>
#include <vector>

#include "basic/result.hpp"

namespace bitnet::host::crossval {

// Holds any struct of llama.h. The second half must stay unwritten; default_params() checks that.
struct alignas(8) llama_block {
  unsigned char bytes[1024];
};

enum class llama_api_year : uint8_t {
  y2024,  // February to December 2024, and bitnet.cpp: llama_load_model_from_file, llama_n_vocab
  y2025,  // since January 2025: llama_model_load_from_file, llama_vocab_n_tokens
};
[[nodiscard]] std::string_view words_of(llama_api_year which);

class llama_api {
 public:
  // Loads `library`, and first those of its dependencies in `folders` that the dynamic linker would
  // not find. It is never closed.
  [[nodiscard]] static result<llama_api> load(const std::string& library,
                                              const std::vector<std::string>& folders);

  [[nodiscard]] llama_api_year api_year() const { return api_year_; }
  // "ggml 0.9.4"; "" if the library does not report its version.
  [[nodiscard]] std::string version() const;

  // Loads the backends that are separate files in the library's folder.
  void start(const std::string& folder) const;
  [[nodiscard]] result<void> open_model(const std::string& file);
  [[nodiscard]] int32_t n_vocab() const;
  [[nodiscard]] std::string model_description() const;
  [[nodiscard]] result<std::vector<int32_t>> tokenize(const std::string& text) const;

  // Replaces the context by an empty one. `n_context` is the size needed; if the struct's layout is
  // unknown, the library's default size stays.
  [[nodiscard]] result<void> new_context(uint32_t n_context, int32_t n_threads);
  [[nodiscard]] uint32_t n_context() const;
  // Evaluates one more token and returns n_vocab logits, owned by the library until the next call.
  [[nodiscard]] result<const float*> decode(int32_t token);

 private:
  using load_function = void* (*)(const char* file, llama_block params);
  using context_function = void* (*)(void* model, llama_block params);
  // Since October 2024 the function takes only the first two parameters; it ignores the registers
  // of the others.
  using batch_function = llama_block (*)(int32_t* tokens, int32_t n, int32_t position,
                                         int32_t sequence);
  using tokenize_function = int32_t (*)(const void* of, const char* text, int32_t bytes,
                                        int32_t* tokens, int32_t most, bool special, bool parse);

  llama_api() = default;
  [[nodiscard]] result<void> find_functions();
  template <class F>
  [[nodiscard]] F symbol(const char* name) const;
  // Returns the struct from the function `name`; fails if it exceeds the block's first half.
  [[nodiscard]] result<llama_block> default_params(const char* name) const;
  [[nodiscard]] const void* vocabulary() const;  // the argument of the token functions

  void* library_ = nullptr;
  llama_api_year api_year_ = llama_api_year::y2025;
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
