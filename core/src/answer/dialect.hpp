#pragma once
// How a family of models writes tool calls and thinking into its answers.
//
// Adding one: a file beside this that defines it, and a line in dialects.cpp. Everything else, the
// splitter, the choice by a template and the grammars, goes by what is here.

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "answer/tools.hpp"
#include "schema/notation.hpp"

namespace bitnet::answer {

struct call {
  std::string name;
  std::string arguments;  // JSON text of an object
  bool operator==(const call&) const = default;
};

// The calls of one frame, at least one, or why there are none: "expected ..., found ...".
using calls_or_reason = std::expected<std::vector<call>, std::string>;

enum class ending : uint8_t {
  tag,      // `end`; not within a string where the body is JSON
  bracket,  // where the bracket that the body begins with is closed
  answer    // with the answer
};

// What stands around calls.
struct frame {
  std::string_view begin;
  ending ends = ending::tag;
  std::string_view end = {};
  // Counts only where what the model says begins, or behind another call there, and what is no
  // call is text: such a beginning is no promise of a call.
  bool leading = false;
  bool kept = false;  // `begin` and `end` are part of the body
};

// What a grammar for calls is made of.
struct call_choice {
  const tools* all = nullptr;
  std::string_view only;  // a name; "": any of them
  // Of each tool, GBNF rules of which "arguments-N" is the arguments of the tool N, between the
  // marks that the dialect has around them; "": any arguments.
  std::span<const std::string> bound = {};
};

struct dialect {
  std::string_view name;
  std::span<const frame> frames = {};
  // Is in each call as write() has it, and in none of another dialect that this one reads, too.
  std::string_view mark = {};
  std::string_view thinking_begins = "<think>";
  std::string_view thinking_ends = "</think>";
  calls_or_reason (*read)(std::string_view body, const tools& known) = nullptr;
  // One call as an answer has it, with its frame.
  std::string (*write)(const call& one) = nullptr;
  // GBNF rules of which "call" is one call as write() has it. None of them is called "root".
  std::string (*grammar)(const call_choice& which) = nullptr;
  // How arguments of the tool are written that a schema binds.
  schema::notation (*arguments)(const tool& of) = nullptr;
  // Between two calls of one answer.
  std::string_view between_calls = "\n";
  // For models whose templates know no tools: how to call one, in words for the model.
  std::string_view instructions = {};
};

std::span<const dialect* const> dialects();
const dialect* find_dialect(std::string_view name);
std::string dialect_names();  // "hermes, ..." for messages
// No calls, and thinking between <think> and </think>.
const dialect& plain_dialect();
// No calls, and thinking between the marks of `form`.
const dialect& without_calls(const dialect& form);

// The tags by which the parser finds the parts of an answer, in all dialects. A vocabulary may have
// them as control tokens; the detokenizer writes them out as text all the same.
std::vector<std::string_view> answer_tags();

}  // namespace bitnet::answer
