#pragma once
// A model file that was read, checked and put into words that a backend understands.
//
// Source  docs/reference/models.md (graph, keys, tensor names); GGUF is read by gguf/,
//         the bytes of weights by formats/.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bitnet/abi/tensor.h"
#include "formats/reading.hpp"
#include "model/rope.hpp"
#include "tokenizer/tokenizer.hpp"

namespace bitnet::model {

enum class activation : uint8_t { relu2, silu, gelu };

// Layers that keep a state in place of keys: a short convolution, then the gated delta rule. Value
// head h goes with key head h % key_heads.
struct recurrence {
  uint32_t taps = 0;  // rows that the convolution sees
  uint32_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;
  // What their last matrix reads was rotated with its heads in another order: those that share a
  // key head side by side.
  bool regrouped = false;

  [[nodiscard]] uint64_t values() const { return uint64_t{value_heads} * value_dim; }
  [[nodiscard]] uint64_t channels() const { return 2 * uint64_t{key_heads} * key_dim + values(); }
  // f32 of the state of a layer: rows of the convolution, then the heads.
  [[nodiscard]] uint64_t rows_elements() const { return (taps - 1) * channels(); }
  [[nodiscard]] uint64_t elements() const { return rows_elements() + key_dim * values(); }
};

struct hyperparameters {
  std::string architecture;  // as the file spells it
  std::string name;          // general.name, may be empty
  uint32_t n_vocab = 0;
  uint32_t n_context = 0;  // trained for
  uint32_t n_layers = 0;
  uint32_t n_skipped = 0;  // blocks behind them in the file, which predict further tokens
  uint32_t n_embedding = 0;
  uint32_t n_feed_forward = 0;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t rope_dims = 0;   // rotated dimensions of a head, even, <= head_dim
  float rope_base = 10000;  // theta
  float rope_scale = 1;     // multiplies the position
  model::rope_scaling rope_scaling{};
  bool rope_neox = true;  // false: pairs (2i, 2i+1)
  float rms_epsilon = 1e-5F;
  bool sub_norms = true;
  bool head_norms = false;
  bool post_norms = false;      // norms of what attention and the gated product add
  float embedding_scale = 1;    // of looked-up rows; a tied head multiplies by rows as they are
  float attention_divisor = 0;  // of the products of queries and keys
  // Layers that see `window` tokens, the last of them their own, and rotate by local_rope_base
  // without scaling. Empty: none.
  std::vector<bool> windowed{};
  uint32_t window = 0;
  float local_rope_base = 10000;
  // Which layers are recurrent; empty: none.
  std::vector<bool> recurrent{};
  model::recurrence recurrence{};
  bool gated_attention = false;  // attn_q has a gate beside each head, for what attention gives
  bool trained_on_i8 = true;
  activation gate = activation::relu2;
  // Elements of a row of activations that share a scale where ternary weights read them; 0: all of
  // it. Where that many do not fit, fewer do: activation_group_of.
  uint32_t activation_group = 0;

  [[nodiscard]] bool is_recurrent(uint32_t layer) const {
    return !recurrent.empty() && recurrent[layer];
  }
  [[nodiscard]] uint32_t n_recurrent() const {
    return static_cast<uint32_t>(std::ranges::count(recurrent, true));
  }
  // Layers with keys and values.
  [[nodiscard]] uint32_t n_attending() const { return n_layers - n_recurrent(); }
  // f32 of the state of a sequence; 0: there is none.
  [[nodiscard]] uint64_t state_elements() const {
    return recurrent.empty() ? 0 : n_recurrent() * recurrence.elements();
  }
};

inline constexpr uint32_t no_weight = BITNET_NONE;

// HADAMARD of bitnet/abi/ops.h: blocks of that many elements; 0: nothing is transformed.
struct transform {
  uint32_t block = 0;
  uint32_t factors = no_weight;  // index into model::weights()

  bool operator==(const transform&) const = default;
};

// One tensor in a form of bitnet/abi/tensor.h. Shape: ne[0] = K contiguous, ne[1] = M rows.
struct weight {
  std::string name;  // GGUF name
  uint32_t format = BITNET_FORMAT_NONE;
  uint32_t rank = 2;
  int64_t ne[2] = {1, 1};
  uint64_t data_bytes = 0;    // in `format`
  uint64_t scale_group = 0;   // ternary: see bitnet_tensor_desc
  std::vector<float> scales;  // there while they are held: model::hold_scales
  // The bytes themselves when the file already holds them in `format` (32-byte aligned, mapped for
  // the life of the model), else empty: then stream_weight converts.
  std::span<const std::byte> alias;
  uint32_t source_type = 0;  // GGUF type id
  // What its input goes through first, where it is a matrix of a linear layer: factors first.
  transform of_input;
};

// What rotates queries and keys in a context of some length.
struct rotation {
  float base = 10000;
  float scale = 1;                // multiplies the position
  uint32_t divisors = no_weight;  // index into model::weights(), of the angles
  float magnitude = 1;            // see rope_scaling

  bool operator==(const rotation&) const = default;
};

// Indices into model::weights().
struct layer {
  uint32_t attn_norm = no_weight;
  uint32_t attn_q = no_weight, attn_k = no_weight, attn_v = no_weight, attn_output = no_weight;
  uint32_t ffn_norm = no_weight, ffn_gate = no_weight, ffn_up = no_weight, ffn_down = no_weight;
  uint32_t attn_sub_norm = no_weight, ffn_sub_norm = no_weight;
  uint32_t attn_q_norm = no_weight, attn_k_norm = no_weight;
  uint32_t post_attention_norm = no_weight, post_ffw_norm = no_weight;
  // Of recurrent layers: what is mixed, its gate, the inputs of decay and strength; factors of the
  // convolution (channels x taps) and of the decays (2 x value_heads); norm of heads; the way out.
  uint32_t attn_qkv = no_weight, attn_gate = no_weight, ssm_alpha = no_weight, ssm_beta = no_weight;
  uint32_t ssm_conv = no_weight, ssm_gates = no_weight, ssm_norm = no_weight, ssm_out = no_weight;
};

// How many activations share a scale before ternary weights read them.
enum class activations : uint8_t {
  automatic,  // a row's unless scales of groups say that the model was trained on floats
  row,
  group32,
  group64,
  group128,
  floats  // none: ternary weights become dense ones of the same values
};

struct load_options {
  bool vocabulary_only = false;
  uint32_t i2s_layout = 0;  // BITNET_I2S_LAYOUT_*
  formats::tl1_tiles tl1_tiles = formats::tl1_tiles::generated;
  std::optional<activation> gate;
  model::activations activations = model::activations::automatic;
};

// The largest of 32, 64 and 128 up to `wanted` that fits the width and the scale groups of a
// ternary weight (LINEAR_TERNARY_GROUPED in ops.h); 0: none does, or none is wanted.
uint32_t activation_group_of(const weight& w, uint32_t wanted);

class model {
 public:
  // BITNET_NOT_FOUND, BITNET_BAD_DATA or BITNET_UNSUPPORTED when the file is at fault.
  static result<model> load(const std::filesystem::path& file, const load_options& options);
  model(model&&) noexcept;
  model& operator=(model&&) noexcept;
  ~model();

  [[nodiscard]] const hyperparameters& shape() const;
  [[nodiscard]] const tokenizer::tokenizer& tokens() const;
  [[nodiscard]] std::span<const weight> weights() const;  // empty with vocabulary_only
  [[nodiscard]] std::span<const layer> layers() const;
  [[nodiscard]] uint32_t token_embedding() const;
  // What its rows go through when they are looked up: factors last.
  [[nodiscard]] transform embedding_transform() const;
  [[nodiscard]] uint32_t output_norm() const;
  [[nodiscard]] uint32_t output() const;  // == token_embedding() when tied
  // Keys of one rotation make no sense under another: it stays for the life of a sequence.
  [[nodiscard]] rotation rotation_of(uint32_t n_context) const;
  // Of layers with a window.
  [[nodiscard]] rotation local_rotation() const;

  // Scales of groups are a ninth of a model's bytes, and a backend that has copied them needs them
  // no more. So they are there from load() until the last hold goes, and while one lives; what was
  // let go is read again. BITNET_BAD_DATA if the file is no longer what it was. Any thread.
  using scales_hold = std::shared_ptr<const void>;
  [[nodiscard]] result<scales_hold> hold_scales() const;

  // Names the bytes of weight `index` in its file: changes when they do. Holds the file's identity
  // and a hash of samples. "" for a model that is not on disk.
  [[nodiscard]] std::string weight_identity(uint32_t index) const;

  // BITNET_BAD_DATA, naming the file, if it lost bytes or changed its size since it was loaded:
  // what was computed from it meanwhile means nothing.
  [[nodiscard]] result<void> check_file() const;
  // The first of the two, which costs no system call: for every token.
  [[nodiscard]] result<void> check_read() const;

  // Feeds the bytes of weight `index`, in its `format`, to sink in order and in pieces of at most
  // 4 MiB; stops at the first failure that sink returns. Thread-safe.
  using sink = std::function<result<void>(uint64_t offset, std::span<const std::byte> bytes)>;
  [[nodiscard]] result<void> stream_weight(uint32_t index, const sink& to) const;

 private:
  struct contents;
  explicit model(std::unique_ptr<contents> c);
  std::unique_ptr<contents> contents_;
};

// The JSON text of bitnet_inspect (bitnet.h).
result<std::string> inspect(const std::filesystem::path& file, const load_options& options);

}  // namespace bitnet::model
