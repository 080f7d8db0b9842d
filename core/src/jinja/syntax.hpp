#pragma once
// The syntax trees of a template.

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "jinja/value.hpp"

namespace bitnet::jinja {

struct expression;
using expression_ptr = std::unique_ptr<expression>;

struct argument {
  enum class kind : uint8_t { positional, named, spread_list, spread_dict };
  kind how;
  std::string name;
  expression_ptr content;
};

struct expression {
  enum class kind : uint8_t {
    constant,
    name,
    list,
    tuple,
    dict,         // parts: key, value, key, value ...
    plus,         // + a
    minus,        // - a
    inversion,    // not a
    both,         // a and b
    either,       // a or b
    arithmetic,   // name is the sign
    concat,       // a ~ b ~ ...
    compare,      // parts[0] words[0] parts[1] words[1] parts[2] ...
    conditional,  // condition, then, else (may be null)
    item,         // a[b]
    slice,        // a[b:c:d], missing ones null
    attribute,    // a.name
    filter,       // a|name(...); parts[0] null in a filter block
    test,         // a is name(...)
    call          // a(...)
  };
  kind what;
  uint32_t line;
  uint32_t depth = 1;  // of this tree
  std::string name;
  value constant;
  std::vector<expression_ptr> parts;
  std::vector<std::string> words;
  std::vector<argument> arguments;
};

struct statement;
using body = std::vector<statement>;

// Target of a set or a for: a name, an attribute of a namespace, or several.
struct target {
  std::string name;
  std::string attribute;
  std::vector<target> parts;  // not empty: a tuple
};

struct parameter {
  std::string name;
  expression_ptr otherwise;  // null: no else
};

struct macro_syntax {
  std::string name;
  std::vector<parameter> parameters;
  std::set<std::string, std::less<>> names;  // names of the parameters
  bool takes_list = false;                   // the body uses varargs
  bool takes_dict = false;                   // the body uses kwargs
  bool takes_caller = false;
  std::unique_ptr<body> content;
};

struct statement {
  enum class kind : uint8_t {
    text,
    output,
    branch,  // bodies[i] where conditions[i]; one more body: else
    loop,    // expressions[0] is the list, expressions[1] an optional condition; bodies: content,
             // else
    assign,
    assign_block,  // expressions[0]: a chain of filters, may be null
    define,
    call,    // expressions[0] is the call, macro its caller
    filter,  // expressions[0] the chain, bodies[0]
    with,    // targets and expressions, bodies[0]
    scope,   // bodies[0], with its own names
    leave,
    next
  };
  kind what;
  uint32_t line;
  marked_text text;
  std::vector<expression_ptr> expressions;
  std::vector<target> targets;
  std::vector<body> bodies;
  std::shared_ptr<const macro_syntax> macro;
};

}  // namespace bitnet::jinja
