#include "model/model.hpp"

#include <algorithm>
#include <cstring>

#include "model/formats.hpp"

namespace bitnet::conformance {

std::vector<uint8_t> pack_ternary(std::span<const int8_t> t, uint64_t k, uint64_t m) {
  const uint64_t row = (k + 127) / 128 * 32;
  std::vector<uint8_t> out(row * m, 0x55);  // code 1 everywhere: zeros past the end of a row
  for (uint64_t r = 0; r < m; ++r) {
    for (uint64_t i = 0; i < k; ++i) {
      uint8_t& byte = out[r * row + i / 128 * 32 + i % 32];
      const int shift = 6 - 2 * static_cast<int>(i % 128 / 32);
      byte = static_cast<uint8_t>((byte & ~(3 << shift)) | (t[r * k + i] + 1) << shift);
    }
  }
  return out;
}

float uniform(std::mt19937& random, float low, float high) {
  return low + (high - low) * static_cast<float>(random() % 65536) / 65536.0f;
}

uint32_t model::value(uint32_t dtype, int64_t rows, int64_t width) {
  values.push_back({dtype, 0, {rows, width}});
  return static_cast<uint32_t>(values.size() - 1);
}

bitnet_op& model::op(uint32_t id, const indices& in, const indices& out, const indices& weights) {
  bitnet_op o{};
  o.op = id;
  const auto put = [](uint32_t(&to)[4], const indices& from) {
    std::fill(std::begin(to), std::end(to), BITNET_NONE);
    std::copy(from.begin(), from.end(), to);
  };
  put(o.inputs, in);
  put(o.outputs, out);
  put(o.weights, weights);
  ops.push_back(o);
  return ops.back();
}

uint32_t model::tensor(uint32_t format, int64_t k, int64_t m, std::vector<uint8_t> data,
                       std::vector<float> scales, uint64_t scale_group) {
  bitnet_tensor_desc desc{};
  desc.struct_size = sizeof desc;
  desc.format = format;
  desc.rank = m == 1 && format != BITNET_FORMAT_TERNARY2 ? 1 : 2;
  desc.ne[0] = k;
  desc.ne[1] = m;
  desc.ne[2] = desc.ne[3] = 1;
  desc.data_bytes = data.size();
  desc.scale_group = scale_group;
  desc.n_scales = scales.size();
  tensors.push_back({desc, std::move(data), std::move(scales)});
  return static_cast<uint32_t>(tensors.size() - 1);
}

uint32_t model::matrix_f32(int64_t k, int64_t m, std::span<const float> elements) {
  std::vector<uint8_t> data(elements.size_bytes());
  std::memcpy(data.data(), elements.data(), data.size());
  const uint32_t at = tensor(BITNET_FORMAT_F32, k, m, std::move(data));
  tensors[at].desc.rank = 2;
  return at;
}

uint32_t model::dense(uint32_t format, int64_t k, int64_t m, std::mt19937& random) {
  const conformance::format& f = format_of(format);
  std::vector<uint8_t> data(row_bytes(format, static_cast<uint64_t>(k)) * static_cast<uint64_t>(m));
  for (uint8_t& b : data) b = static_cast<uint8_t>(random());
  const auto half = [&](uint64_t at, float low, float high) {
    const uint16_t h = float_to_half(uniform(random, low, high));
    std::memcpy(data.data() + at, &h, sizeof h);
  };
  for (uint64_t at = 0; at < data.size(); at += f.block_bytes) {
    const float low = m == 1 ? 0.5f : -1.0f, high = m == 1 ? 1.5f : 1.0f;
    if (format == BITNET_FORMAT_F32 || format == BITNET_FORMAT_BF16) {
      const float v = uniform(random, low, high);
      const auto* bytes = reinterpret_cast<const uint8_t*>(&v);
      std::memcpy(data.data() + at, format == BITNET_FORMAT_F32 ? bytes : bytes + 2, f.block_bytes);
    } else if (format == BITNET_FORMAT_F16) {
      half(at, low, high);
    } else {
      for (const uint32_t place : f.halves) half(at + place, -0.02f, 0.02f);
    }
  }
  return tensor(format, k, m, std::move(data));
}

uint32_t model::ternary(int64_t k, int64_t m, uint64_t scale_group, std::mt19937& random) {
  std::vector<int8_t> t(static_cast<uint64_t>(k * m));
  for (int8_t& v : t) v = static_cast<int8_t>(static_cast<int>(random() % 3) - 1);
  std::vector<float> scales(scale_group != 0 ? t.size() / scale_group : 1);
  for (float& s : scales) s = uniform(random, 0.01f, 0.06f);
  return tensor(BITNET_FORMAT_TERNARY2, k, m,
                pack_ternary(t, static_cast<uint64_t>(k), static_cast<uint64_t>(m)),
                std::move(scales), scale_group);
}

std::vector<bitnet_port> model::ports() const {
  std::vector<bitnet_port> out;
  for (uint32_t role = BITNET_PORT_TOKENS; role <= BITNET_PORT_OUTPUT_ROWS; ++role)
    out.push_back({role, BITNET_NONE});
  if (state_elements != 0) out.push_back({BITNET_PORT_STATES, BITNET_NONE});
  out.insert(out.end(), more_ports.begin(), more_ports.end());
  if (logits != BITNET_NONE) out.push_back({BITNET_PORT_LOGITS, logits});
  return out;
}

bitnet_graph model::graph(const std::vector<bitnet_port>& ports) const {
  bitnet_graph g{};
  g.struct_size = sizeof g;
  g.value_size = sizeof(bitnet_value);
  g.op_size = sizeof(bitnet_op);
  g.port_size = sizeof(bitnet_port);
  g.n_values = static_cast<uint32_t>(values.size());
  g.n_ops = static_cast<uint32_t>(ops.size());
  g.n_ports = static_cast<uint32_t>(ports.size());
  g.values = values.data();
  g.ops = ops.data();
  g.ports = ports.data();
  return g;
}

std::vector<bitnet_tensor_desc> model::descs() const {
  std::vector<bitnet_tensor_desc> out;
  for (const model_tensor& t : tensors) {
    out.push_back(t.desc);
    out.back().scales = t.scales.data();
  }
  return out;
}

}  // namespace bitnet::conformance
