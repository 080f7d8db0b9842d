#pragma once
// Checks that a matcher of the grammar ends: every rule derives a text, and no rule begins with
// itself.

#include "base/result.hpp"
#include "grammar/rules.hpp"

namespace bitnet::grammar {

// Sets can_be_empty and rank of every rule.
result<void> check_rules(rule_set& of);

}  // namespace bitnet::grammar
