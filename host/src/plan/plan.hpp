#pragma once
// A plan: the device of each layer of a model, and the kernels of its ops.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bitnet::host::plans {

struct layer_range {
  uint32_t first = 0, last = 0;  // both inclusive
  bool operator==(const layer_range&) const = default;
};

// An op in each of some layers, or one outside the layers.
struct row {
  std::string op = {};                     // "qkv_rope_kv"
  std::optional<layer_range> layers = {};  // none: before the first layer or behind the last
  std::vector<std::string> formats = {};   // formats of its weights: "ternary2"
  std::string level = {};                // fused, optimised, reference; "": unknown, or not pinned
  std::vector<std::string> token = {};   // kernel ids in a step of one token; none: `level` counts
  std::vector<std::string> prompt = {};  // kernel ids in a step of a prompt
  uint64_t weight_bytes = 0;             // of all its weights
  uint32_t n_ops = 0;                    // ops of the program in this row
  uint32_t n_covered = 0;                // ops that each composite replaces; 0: a primitive
  std::string why = {};                  // reason for the kernel; "": unknown
};

struct part {
  std::string device = {};   // "cpu:0"
  std::string backend = {};  // "cpu"
  bool embedding = false, head = false;
  uint32_t first_layer = 0, n_layers = 0;
  std::vector<row> rows = {};
  std::string why = {};  // reason for the device; "": unknown
};

// Identifies the model of a plan.
struct identity {
  std::string name = {}, architecture = {};
  uint32_t n_layers = 0;
  uint64_t n_parameters = 0;
  std::string fingerprint = {};  // "fp_...", see model_files/fingerprint.hpp
};

struct plan {
  identity model = {};
  std::vector<std::string> forms = {};  // "vulkan.subgroups=0": settings that choose kernels
  std::vector<part> parts = {};         // in the order in which a token goes through them
};

// "3-5", or "3".
[[nodiscard]] std::string text_of(const layer_range& layers);
// "embedding, layers 0-5 and head"
[[nodiscard]] std::string section_text(const part& of);

}  // namespace bitnet::host::plans
