#include "plan/plan.hpp"

#include <fmt/format.h>

namespace bitnet::host::plans {

std::string text_of(const layer_range& layers) {
  return layers.first == layers.last ? fmt::to_string(layers.first)
                                     : fmt::format("{}-{}", layers.first, layers.last);
}

std::string section_text(const part& of) {
  std::string out = of.embedding ? "embedding" : "";
  const auto add = [&](const std::string& piece) { out += (out.empty() ? "" : ", ") + piece; };
  if (of.n_layers != 0)
    add((of.n_layers == 1 ? "layer " : "layers ") +
        text_of({of.first_layer, of.first_layer + of.n_layers - 1}));
  if (of.head) add("head");
  return out;
}

}  // namespace bitnet::host::plans
