#include "jinja/template.hpp"

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "jinja/evaluator.hpp"
#include "jinja/parser.hpp"

namespace bitnet::jinja {

struct chat_template::contents {
  body statements;
};

result<chat_template> chat_template::parse(std::string_view source) {
  if (const auto broken = first_invalid_utf8(source))
    return bad_data(fmt::format("the template is no UTF-8 at byte {}", *broken));
  auto statements = parse_template(source);
  if (!statements) return std::unexpected(statements.error());
  chat_template out;
  out.contents_ = std::make_shared<const contents>(*std::move(statements));
  return out;
}

result<marked_text> chat_template::render(const dict& variables, std::time_t now,
                                          const limits& bounds) const {
  rendering at(bounds, now);
  marked_text out = evaluate(at, contents_->statements, variables);
  if (const auto& trouble = at.trouble()) return std::unexpected(*trouble);
  return out;
}

}  // namespace bitnet::jinja
