#include "generate/text_tokens.hpp"

#include <string>

namespace bitnet::generate {

std::shared_ptr<const grammar::prefix_tree> text_tokens(const tokenizer::tokenizer& of) {
  return std::make_shared<const grammar::prefix_tree>(of.size(), [&](int32_t id) -> std::string {
    if (of.ends_generation(id)) return {};
    return of.piece(id, false, false).value_or("");
  });
}

}  // namespace bitnet::generate
