#pragma once
// What a grammar must be for a matcher to end: every rule derives a text, and none begins with
// itself.

#include "base/result.hpp"
#include "grammar/rules.hpp"

namespace bitnet::grammar {

// Sets can_be_empty and rank of every rule.
result<void> check_rules(rule_set& of);

}  // namespace bitnet::grammar
