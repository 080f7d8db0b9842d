#include "kernel_text.hpp"

#include <iterator>

#include "kernel_sources.hpp"

namespace bitnet::webgpu {
namespace {

// Parts of a kernel's text, in addition to common.wgsl.
enum part : uint8_t {
  codes = 1,
  reduce = 2,
  norm = 4,
  matrix = 8,
  dot = 16,
  ternary = 32,
  activation = 64,
  runs = 128
};

// Texts of the kernels that every plugin brings, in the order of gpu::kernel_id.
constexpr const char* texts[] = {
#define BITNET_KERNEL_TEXT(name, read, written) source::name,
    BITNET_GPU_KERNELS_OF_ALL(BITNET_KERNEL_TEXT)
#undef BITNET_KERNEL_TEXT
};

// nullptr if this plugin has no such kernel.
const char* own_text_of(gpu::kernel_id id) {
  if (id == known_answer) return source::known_answer;
  return id < gpu::kernel_id::every ? texts[static_cast<size_t>(id)] : nullptr;
}

// The parts that a kernel needs. If one is missing here, the WGSL compiler reports it.
uint32_t parts_of(gpu::kernel_id id) {
  using gpu::kernel_id;
  switch (id) {
    case kernel_id::embed_gather:
    case kernel_id::linear_dense:
      return matrix;
    case kernel_id::rms_norm:
      return norm;
    case kernel_id::act_quant:
      return codes | reduce;
    case kernel_id::act_quant_groups:
      return codes;
    case kernel_id::linear_ternary:
      return dot | ternary;
    case kernel_id::attn_paged:
      return reduce;
    case kernel_id::elementwise:
      return activation;
    case kernel_id::short_conv:
      return runs;
    case kernel_id::delta_rule:
      return norm | runs;
    case kernel_id::norm_quant:
      return codes | reduce | norm;
    case kernel_id::glu_quant:
      return codes | reduce | norm | activation;
    case kernel_id::bit_linear:
      return codes | reduce | norm | dot | ternary;
    case known_answer:
      return reduce | norm | dot;
    default:
      return 0;
  }
}

bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// `text` with every word `from` replaced by `to`.
std::string renamed(const std::string& text, const std::string& from, const std::string& to) {
  std::string out;
  size_t at = 0;
  for (;;) {
    const size_t found = text.find(from, at);
    if (found == std::string::npos) return out + text.substr(at);
    const size_t end = found + from.size();
    const bool whole =
        (found == 0 || !in_word(text[found - 1])) && (end == text.size() || !in_word(text[end]));
    out += text.substr(at, found - at) + (whole ? to : from);
    at = end;
  }
}

// Repeats each line with the word EACH_KEPT for each number below `n`, instead of a loop: drivers
// with a limit of loop passes do not count it.
std::string unrolled(const std::string& text, uint32_t n) {
  constexpr const char* each = "EACH_KEPT";
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(at, end - at);
    const bool is_repeated =
        line.find(each) != std::string::npos && line.find("//") == std::string::npos;
    for (uint32_t i = 0; is_repeated && i < n; ++i)
      out += renamed(line, each, std::to_string(i) + "u");
    if (!is_repeated) out += line;
    at = end;
  }
  return out;
}

// The declaration of a memory binding, and its name.
struct declaration {
  size_t at = std::string::npos, bytes = 0;
  std::string name;
};
declaration declared(const std::string& text, uint32_t binding) {
  const std::string begin =
      "@group(0) @binding(" + std::to_string(binding) + ") var<storage, read_write> ";
  declaration out;
  out.at = text.find(begin);
  if (out.at == std::string::npos) return out;
  const size_t name = out.at + begin.size(), colon = text.find(':', name);
  out.name = text.substr(name, colon - name);
  out.bytes = text.find('\n', colon) + 1 - out.at;
  return out;
}

std::string constant(const char* name, uint32_t value) {
  return std::string("const ") + name + " = " + std::to_string(value) + "u;\n";
}

}  // namespace

const char* name_of(gpu::kernel_id id) {
  if (id == known_answer) return "known_answer";
  return id < gpu::kernel_id::every ? gpu::row_of(id).name : "?";
}

uint32_t bindings_of(gpu::kernel_id id) {
  return id == known_answer ? 3 : gpu::bindings_of(id);
}

std::string text_of(const gpu::kernel_spec& spec, const dialect& device,
                    const shared_bindings& same) {
  const char* const own = own_text_of(spec.id);
  if (!own) return "";
  const uint32_t parts = parts_of(spec.id);
  const bool subgroups = device.subgroups && (parts & reduce) != 0;
  std::string out = subgroups && device.enables ? "enable subgroups;\n" : "";
  constexpr const char* constants[] = {"T", "C1", "C2", "C3", "C4"};
  for (size_t i = 0; i < std::size(constants); ++i)
    out += constant(constants[i], spec.constants[i]);
  out += source::common;
  if (parts & reduce) out += subgroups ? source::reduce_subgroups : source::reduce;
  if (parts & codes) out += source::codes;
  if (parts & norm) out += source::norm;
  if (parts & matrix) out += source::matrix;
  if (parts & dot) out += device.packed_dot ? source::dot_packed : source::dot_plain;
  if (parts & ternary) out += source::ternary;
  if (parts & activation) out += source::activation;
  if (parts & runs) out += source::runs;
  out += unrolled(own, spec.constants[3]);
  for (uint32_t i = 1; i < same.size(); ++i) {
    if (same[i] == i) continue;
    const declaration twice = declared(out, i), once = declared(out, same[i]);
    if (twice.name.empty() || once.name.empty()) continue;
    out.erase(twice.at, twice.bytes);
    out = renamed(out, twice.name, once.name);
  }
  return out;
}

}  // namespace bitnet::webgpu
