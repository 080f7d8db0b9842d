#include "library/advice.hpp"

#include <array>

namespace bitnet::host {
namespace {

struct saying {
  std::string_view library;
  std::string_view program;
};

// The longer of two that begin alike comes first.
constexpr std::array<saying, 32> sayings = {{
    {"allow_fake", "--allow-fake"},
    {"allow_fallback", "--allow-fallback"},
    {"allowed_backends", "--allow-backends"},
    {"bitnet_convert", "`bitnet quantize`"},
    {"choose one of them as pooling", "choose one of them with --pooling"},
    {"i2s_layout QK256", "--i2s-layout qk256"},
    {"i2s_layout", "--i2s-layout"},
    {"kv_budget_bytes", "--kv-budget"},
    {"kv_k", "--cache-type-k"},
    {"kv_v", "--cache-type-v"},
    {"leave window 0", "leave --sliding-window out"},
    {"n_batch", "--batch-size"},
    {"n_context", "--ctx-size"},
    {"n_gpu_layers", "--n-gpu-layers"},
    {"n_threads", "--threads"},
    {"name a template", "use --chat-template"},
    {"probe all backends", "run `bitnet backends`"},
    {"probe_fresh", "`bitnet backends probe --all --fresh`"},
    {"request another device", "choose another with --device"},
    {"request it as the device", "ask for it with --device"},
    {"request the device", "use --device"},
    {"set overwrite", "give --force"},
    {"set window", "give --sliding-window"},
    {"sign the file again", "sign the file again with `bitnet backends sign`"},
    {"sign the file", "sign the file with `bitnet backends sign`"},
    {"split_mode", "--split-mode"},
    {"tensor_split", "--tensor-split"},
    {"tl1_tiles", "--tl1-tiles"},
    {"trusted_keys", "--trusted-keys"},
    {"user_backends", "--user-backends"},
    {"wait for its probe to end", "wait for it, as `bitnet backends probe --all` does"},
    {"window_keep", "--keep"},
}};

// The saying that is a word of its own at `at`, or NULL. A quote is before a key of JSON, which
// stays as it is, or before a text, which may begin with several words.
const saying* saying_at(std::string_view message, std::size_t at) {
  const bool quoted = at != 0 && message[at - 1] == '"';
  if (at != 0 && !quoted && message[at - 1] != ' ') return nullptr;
  for (const saying& one : sayings) {
    if (quoted && !one.library.contains(' ')) continue;
    if (!message.substr(at).starts_with(one.library)) continue;
    const std::size_t end = at + one.library.size();
    if (end == message.size() || std::string_view(" ,;:.\"").contains(message[end])) return &one;
  }
  return nullptr;
}

}  // namespace

std::string in_flags(std::string_view message) {
  std::string out;
  for (std::size_t at = 0; at < message.size();) {
    if (const saying* found = saying_at(message, at)) {
      out += found->program;
      at += found->library.size();
    } else {
      out += message[at++];
    }
  }
  return out;
}

}  // namespace bitnet::host
