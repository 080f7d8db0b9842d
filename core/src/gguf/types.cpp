#include "gguf/types.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace bitnet::gguf {
namespace {

struct row {
  uint32_t id;
  std::string_view name;
  type_size size;  // block 0: the id does not decide it
};

constexpr std::array rows = {
    row{type::f32, "F32", {1, 4}},
    row{type::f16, "F16", {1, 2}},
    row{type::q4_0, "Q4_0", {32, 18}},
    row{3, "Q4_1", {32, 20}},
    row{6, "Q5_0", {32, 22}},
    row{7, "Q5_1", {32, 24}},
    row{type::q8_0, "Q8_0", {32, 34}},
    row{9, "Q8_1", {32, 36}},
    row{10, "Q2_K", {256, 84}},
    row{11, "Q3_K", {256, 110}},
    row{type::q4_k, "Q4_K", {256, 144}},
    row{13, "Q5_K", {256, 176}},
    row{type::q6_k, "Q6_K", {256, 210}},
    row{15, "Q8_K", {256, 292}},
    row{16, "IQ2_XXS", {256, 66}},
    row{17, "IQ2_XS", {256, 74}},
    row{18, "IQ3_XXS", {256, 98}},
    row{19, "IQ1_S", {256, 50}},
    row{20, "IQ4_NL", {32, 18}},
    row{21, "IQ3_S", {256, 110}},
    row{22, "IQ2_S", {256, 82}},
    row{23, "IQ4_XS", {256, 136}},
    row{24, "I8", {1, 1}},
    row{25, "I16", {1, 2}},
    row{26, "I32", {1, 4}},
    row{27, "I64", {1, 8}},
    row{28, "F64", {1, 8}},
    row{29, "IQ1_M", {256, 56}},
    row{type::bf16, "BF16", {1, 2}},
    row{31, "Q4_0_4_4", {0, 0}},
    row{32, "Q4_0_4_8", {0, 0}},
    row{33, "Q4_0_8_8", {0, 0}},
    row{type::tq1_0, "TQ1_0", {256, 54}},
    row{type::tq2_0, "TQ2_0", {256, 66}},
    row{type::i2_s, "I2_S", {0, 0}},
    row{37, "I8_S", {0, 0}},
    row{type::tl1, "TL1", {0, 0}},
    row{type::tl2, "TL2 or MXFP4", {0, 0}},
    row{40, "NVFP4 or an old Q1_0", {0, 0}},
    row{type::q1_0, "Q1_0", {128, 18}},
    row{type::q2_0, "Q2_0", {0, 0}},
    row{type::stq1_0, "STQ1_0", {0, 0}},
    row{type::iq1_bn, "IQ1_BN", {0, 0}},
    row{type::iq2_bn, "IQ2_BN", {0, 0}},
    row{type::pq2_0, "PQ2_0", {0, 0}},
    row{type::ptq1_0, "PTQ1_0", {0, 0}},
    row{type::iq2_bn_r4, "IQ2_BN_R4", {0, 0}},
    row{type::hf_packed, "packed U8", {0, 0}},
    row{type::hf_packed_inverse, "packed U8, inverse scale", {0, 0}},
    row{type::hf_master_f32, "F32 master", {1, 4}},
    row{type::hf_master_f16, "F16 master", {1, 2}},
    row{type::hf_master_bf16, "BF16 master", {1, 2}},
};

}  // namespace

std::optional<type_size> size_of(uint32_t id) {
  const auto* at = std::ranges::find(rows, id, &row::id);
  if (at == rows.end() || at->size.block == 0) return std::nullopt;
  return at->size;
}

std::string_view short_name(uint32_t id) {
  const auto* at = std::ranges::find(rows, id, &row::id);
  return at == rows.end() ? std::string_view() : at->name;
}

std::string type_name(uint32_t id) {
  const std::string_view name = short_name(id);
  return fmt::format("{} ({})", name.empty() ? "unknown" : name, id);
}

}  // namespace bitnet::gguf
