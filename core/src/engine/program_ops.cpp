#include "engine/program_ops.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace bitnet::engine {
namespace {

void add_weight(program_op& to, const model::weight& w) {
  if (std::ranges::find(to.weights, w.name) != to.weights.end()) return;
  to.weights.push_back(w.name);
  to.weight_bytes += w.data_bytes;
  if (std::ranges::find(to.formats, w.format) == to.formats.end()) to.formats.push_back(w.format);
  if (!to.layer) to.layer = layer_of(w.name);
}

// A layer begins with an op that has a weight. An op without weights gets the layer before it.
void fill_layers(std::vector<program_op>& ops) {
  std::optional<uint32_t> now;
  for (program_op& one : ops) {
    if (!one.weights.empty()) now = one.layer;
    if (!one.layer) one.layer = now;
  }
}

}  // namespace

std::optional<uint32_t> layer_of(const std::string& weight_name) {
  constexpr std::string_view begin = "blk.";
  if (!weight_name.starts_with(begin)) return std::nullopt;
  uint32_t layer = 0;
  const char* const from = weight_name.data() + begin.size();
  const char* const end = weight_name.data() + weight_name.size();
  const auto [at, error] = std::from_chars(from, end, layer);
  if (error != std::errc() || at == end || *at != '.') return std::nullopt;
  return layer;
}

result<std::vector<program_op>> program_ops(const part& on, const session_options& options,
                                            const limits& most) {
  const program_bounds bounds(options, most);
  const compute::graph g =
      on.graph(most.n_context, options.embeddings ? model::ending::hidden : model::ending::logits);
  auto levels = on.levels(g, bounds.get());
  if (!levels) return std::unexpected(std::move(levels.error()));
  std::vector<program_op> out(g.ops.size());
  for (std::size_t i = 0; i < g.ops.size(); ++i) {
    program_op& one = out[i];
    one.op = g.ops[i].op;
    one.body_count = g.ops[i].body_count;
    one.level = (*levels)[i];
    const std::size_t last = std::min(g.ops.size() - 1, i + one.body_count);
    for (std::size_t k = i; k <= last; ++k)
      for (const uint32_t w : g.ops[k].weights)
        if (w != BITNET_NONE) add_weight(one, on.weight(w));
  }
  fill_layers(out);
  return out;
}

}  // namespace bitnet::engine
