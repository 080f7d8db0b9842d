#include "crossval/llama_api.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "crossval/discovery.hpp"
#include "crossval/stream.hpp"

namespace bitnet::host::crossval {
namespace {

constexpr unsigned char untouched = 0xa5;  // no default in llama.h begins or ends with it
constexpr std::size_t longest_struct = sizeof(llama_block) / 2;
constexpr std::string_view supported =
    "supported are versions since February 2024, by either set of names: "
    "llama_load_model_from_file, llama_new_context_with_model and llama_n_vocab, or "
    "llama_model_load_from_file, llama_init_from_model and llama_vocab_n_tokens";

std::string loader_error() {
  const char* text = ::dlerror();
  return text == nullptr ? "the dynamic linker gives no reason" : text;
}

// Loads ggml libraries until no more can be loaded, since they depend on each other.
void load_needed(const std::vector<std::string>& folders) {
  std::vector<std::string> left = ggml_libraries(folders);
  for (std::size_t before = left.size() + 1; left.size() < before;) {
    before = left.size();
    std::erase_if(left, [](const std::string& one) {
      return ::dlopen(one.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr;
    });
  }
}

// Finds n_ctx in llama_context_params by its defaults {n_ctx 512, n_batch 512 or 2048}: at the
// start, or after a seed in versions up to August 2024. -1: not found.
int offset_of_context(const llama_block& params) {
  std::array<uint32_t, 3> words{};
  std::memcpy(words.data(), params.bytes, sizeof words);
  const auto are_defaults = [&](std::size_t at) {
    return words[at] == 512 && (words[at + 1] == 2048 || words[at + 1] == 512);
  };
  if (are_defaults(0)) return 0;
  return are_defaults(1) ? static_cast<int>(sizeof(uint32_t)) : -1;
}

}  // namespace

std::string_view words_of(llama_api_year which) {
  return which == llama_api_year::y2024 ? "API of 2024" : "API since 2025";
}

template <class F>
F llama_api::symbol(const char* name) const {
  return reinterpret_cast<F>(::dlsym(library_, name));
}

result<llama_api> llama_api::load(const std::string& library,
                                  const std::vector<std::string>& folders) {
  llama_api out;
  out.library_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (out.library_ == nullptr) {
    load_needed(folders);
    out.library_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (out.library_ == nullptr)
    return fail(exit_code::no_comparison,
                fmt::format("{} cannot be loaded: {}", library, loader_error()));
  if (auto found = out.find_functions(); !found) return std::unexpected(found.error());
  return out;
}

result<void> llama_api::find_functions() {
  load_model_ = symbol<load_function>("llama_model_load_from_file");
  new_context_ = symbol<context_function>("llama_init_from_model");
  n_vocab_ = symbol<int32_t (*)(const void*)>("llama_vocab_n_tokens");
  const bool is_new = load_model_ != nullptr && new_context_ != nullptr && n_vocab_ != nullptr &&
                      ::dlsym(library_, "llama_model_get_vocab") != nullptr;
  api_year_ = is_new ? llama_api_year::y2025 : llama_api_year::y2024;
  if (!is_new) {
    load_model_ = symbol<load_function>("llama_load_model_from_file");
    new_context_ = symbol<context_function>("llama_new_context_with_model");
    n_vocab_ = symbol<int32_t (*)(const void*)>("llama_n_vocab");
  }
  batch_ = symbol<batch_function>("llama_batch_get_one");
  tokenize_ = symbol<tokenize_function>("llama_tokenize");
  decode_ = symbol<int32_t (*)(void*, llama_block)>("llama_decode");
  logits_ = symbol<float* (*)(void*)>("llama_get_logits");
  n_context_ = symbol<uint32_t (*)(const void*)>("llama_n_ctx");
  free_context_ = symbol<void (*)(void*)>("llama_free");
  backend_init_ = symbol<void (*)()>("llama_backend_init");

  std::string missing;
  const auto need = [&](bool there, const char* name) {
    if (!there) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
  };
  need(load_model_ != nullptr, "llama_load_model_from_file");
  need(new_context_ != nullptr, "llama_new_context_with_model");
  need(n_vocab_ != nullptr, "llama_n_vocab");
  for (const char* name :
       {"llama_model_default_params", "llama_context_default_params", "llama_batch_get_one",
        "llama_tokenize", "llama_decode", "llama_get_logits", "llama_n_ctx", "llama_free",
        "llama_backend_init", "llama_numa_init"})  // with the latter, init takes no parameter
    need(::dlsym(library_, name) != nullptr, name);
  if (missing.empty()) return {};
  return fail(exit_code::no_comparison,
              fmt::format("libllama.so has no {}: {}", missing, supported));
}

std::string llama_api::version() const {
  const auto ggml = symbol<const char* (*)()>("ggml_version");
  if (ggml == nullptr) return "";
  const char* text = ggml();
  return text == nullptr ? "" : fmt::format("ggml {}", text);
}

void llama_api::start(const std::string& folder) const {
  backend_init_();
  const auto count = symbol<std::size_t (*)()>("ggml_backend_dev_count");
  const auto load_all = symbol<void (*)(const char*)>("ggml_backend_load_all_from_path");
  if (count != nullptr && load_all != nullptr && count() == 0) load_all(folder.c_str());
}

result<llama_block> llama_api::default_params(const char* name) const {
#if defined(__x86_64__)
  // Calls the function as compiled code does, with the result's address as first parameter. Filling
  // the block first shows which bytes the function leaves unwritten.
  llama_block out;
  std::memset(out.bytes, untouched, sizeof out.bytes);
  symbol<void (*)(llama_block*)>(name)(&out);
  const auto is_untouched = [](unsigned char c) { return c == untouched; };
  const bool is_short =
      std::ranges::all_of(std::span(out.bytes).subspan(longest_struct), is_untouched);
  const bool was_written = !std::ranges::all_of(std::span(out.bytes).first(8), is_untouched);
  if (is_short && was_written) return out;
  return fail(exit_code::no_comparison,
              fmt::format("the struct that {} returns has another form than those of llama.h; {}",
                          name, supported));
#else
  return symbol<llama_block (*)()>(name)();
#endif
}

result<void> llama_api::open_model(const std::string& file) {
  const auto params = default_params("llama_model_default_params");
  if (!params) return std::unexpected(params.error());
  model_ = load_model_(file.c_str(), *params);
  if (model_ == nullptr)
    return fail(exit_code::no_comparison, fmt::format("it cannot load {}", file));
  const int32_t n = n_vocab();
  if (n > 0 && static_cast<uint32_t>(n) <= most_vocabulary) return {};
  return fail(exit_code::no_comparison, fmt::format("a vocabulary of {} tokens", n));
}

const void* llama_api::vocabulary() const {
  if (api_year_ == llama_api_year::y2024) return model_;
  return symbol<const void* (*)(const void*)>("llama_model_get_vocab")(model_);
}

int32_t llama_api::n_vocab() const {
  return n_vocab_(vocabulary());
}

std::string llama_api::model_description() const {
  const auto describe = symbol<int32_t (*)(const void*, char*, std::size_t)>("llama_model_desc");
  std::array<char, 256> text{};
  if (describe != nullptr) describe(model_, text.data(), text.size());
  text.back() = '\0';
  return text.data();
}

result<std::vector<int32_t>> llama_api::tokenize(const std::string& text) const {
  std::vector<int32_t> out(text.size() + 16);  // a token per byte, and special ones
  const auto most = static_cast<int32_t>(out.size());
  const int32_t n = tokenize_(vocabulary(), text.data(), static_cast<int32_t>(text.size()),
                              out.data(), most, true, false);
  if (n < 0 || n > most)
    return fail(exit_code::no_comparison,
                fmt::format("llama_tokenize gives {} for a text of {} bytes", n, text.size()));
  out.resize(static_cast<std::size_t>(n));
  return out;
}

result<void> llama_api::new_context(uint32_t n_context, int32_t n_threads) {
  auto params = default_params("llama_context_default_params");
  if (!params) return std::unexpected(params.error());
  if (const int at = offset_of_context(*params); at >= 0)
    std::memcpy(params->bytes + at, &n_context, sizeof n_context);
  if (context_ != nullptr) free_context_(context_);
  context_ = new_context_(model_, *params);
  used_ = 0;
  if (context_ == nullptr)
    return fail(exit_code::no_comparison,
                fmt::format("it cannot make a context of {} tokens", n_context));
  const auto set_threads = symbol<void (*)(void*, int32_t, int32_t)>("llama_set_n_threads");
  if (set_threads != nullptr && n_threads > 0) set_threads(context_, n_threads, n_threads);
  return {};
}

uint32_t llama_api::n_context() const {
  return n_context_(context_);
}

result<const float*> llama_api::decode(int32_t token) {
  const llama_block batch = batch_(&token, 1, static_cast<int32_t>(used_), 0);
  const int32_t status = decode_(context_, batch);
  if (status != 0)
    return fail(exit_code::no_comparison,
                fmt::format("llama_decode gives {} at position {}", status, used_));
  const float* row = logits_(context_);
  if (row == nullptr)
    return fail(exit_code::no_comparison, fmt::format("no logits at position {}", used_));
  ++used_;
  return row;
}

}  // namespace bitnet::host::crossval
