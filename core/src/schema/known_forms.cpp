#include "schema/known_forms.hpp"

#include <algorithm>
#include <utility>

#include "grammar/gbnf.hpp"
#include "schema/compile.hpp"

namespace bitnet::schema {

// Moves what it finds to the end. Called with mutex_ locked.
std::shared_ptr<const grammar::rule_set> known_forms::look_up(language written_in,
                                                              std::string_view text) {
  const auto at = std::ranges::find_if(
      all_, [&](const entry& one) { return one.written_in == written_in && one.text == text; });
  if (at == all_.end()) return nullptr;
  std::rotate(at, at + 1, all_.end());
  return all_.back().rules;
}

result<std::shared_ptr<const grammar::rule_set>> known_forms::find(language written_in,
                                                                   std::string_view text) {
  {
    const std::lock_guard lock(mutex_);
    if (auto known = look_up(written_in, text)) return known;
  }
  auto rules = written_in == language::json_schema ? compile(text) : grammar::parse_gbnf(text);
  if (!rules) return std::unexpected(std::move(rules.error()));
  auto made = std::make_shared<const grammar::rule_set>(*std::move(rules));
  const std::lock_guard lock(mutex_);
  ++n_compiled_;
  if (auto known = look_up(written_in, text)) return known;  // another thread was faster
  if (all_.size() == most) all_.erase(all_.begin());
  all_.push_back({written_in, std::string(text), made});
  return made;
}

uint64_t known_forms::n_compiled() const {
  const std::lock_guard lock(mutex_);
  return n_compiled_;
}

}  // namespace bitnet::schema
