#pragma once
// What a template says, as trees.

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
    conditional,  // condition, then, else or null
    item,         // a[b]
    slice,        // a[b:c:d], absent ones null
    attribute,    // a.name
    filter,       // a|name(...); parts[0] null in a filter block
    test,         // a is name(...)
    call          // a(...)
  };
  kind what;
  uint32_t line;
  uint32_t depth = 1;  // of the tree below, this one included
  std::string name;
  value constant;
  std::vector<expression_ptr> parts;
  std::vector<std::string> words;
  std::vector<argument> arguments;
};

struct statement;
using body = std::vector<statement>;

// What a set or a for writes to: a name, an attribute of a namespace, or several.
struct target {
  std::string name;
  std::string attribute;
  std::vector<target> parts;  // not empty: a tuple
};

struct parameter {
  std::string name;
  expression_ptr otherwise;  // null: none
};

struct macro_syntax {
  std::string name;
  std::vector<parameter> parameters;
  std::set<std::string, std::less<>> names;  // of the parameters
  bool takes_list = false;                   // the body speaks of varargs
  bool takes_dict = false;                   // ... of kwargs
  bool takes_caller = false;
  std::unique_ptr<body> content;
};

struct statement {
  enum class kind : uint8_t {
    text,
    output,
    branch,  // bodies[i] where conditions[i]; one more body: else
    loop,    // main in expressions[0], if expressions[1]; bodies: content, else
    assign,
    assign_block,  // expressions[0]: a chain of filters, or null
    define,
    call,    // expressions[0] is the call, macro its caller
    filter,  // expressions[0] the chain, bodies[0]
    with,    // targets and expressions, bodies[0]
    scope,   // bodies[0], with names of its own
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
