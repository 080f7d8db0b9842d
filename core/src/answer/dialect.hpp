#pragma once
// How a family of models writes tool calls and thinking into its answers.
//
// To add a dialect, define it in a file beside this and add a line to dialects.cpp. The splitter,
// the choice by template and the grammars use only the members below.

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

// The calls of one frame, at least one; else the reason: "expected ..., found ...".
using calls_or_reason = std::expected<std::vector<call>, std::string>;

enum class ending : uint8_t {
  tag,      // at `end`; strings of a JSON body are skipped
  bracket,  // where the body's first bracket closes
  answer    // at the end of the answer
};

// The delimiters of calls.
struct frame {
  std::string_view begin;
  ending ends = ending::tag;
  std::string_view end = {};
  // The frame counts only at the start of the visible answer or behind another call there. What
  // does not parse as a call is text, since `begin` is too common to promise one.
  bool leading = false;
  bool kept = false;  // `begin` and `end` are part of the body
};

// The input of a grammar for calls.
struct call_choice {
  const tools* all = nullptr;
  std::string_view only;  // a tool's name; "": any tool
  // One per tool: GBNF rules with "arguments-N" for the arguments of tool N, including the
  // dialect's marks around them; "": any arguments.
  std::span<const std::string> bound = {};
};

struct dialect {
  std::string_view name;
  std::span<const frame> frames = {};
  // A text that every call by write() has, and no call of another dialect that read() accepts.
  std::string_view mark = {};
  std::string_view thinking_begins = "<think>";
  std::string_view thinking_ends = "</think>";
  calls_or_reason (*read)(std::string_view body, const tools& known) = nullptr;
  // Writes a call as in an answer, with its frame.
  std::string (*write)(const call& one) = nullptr;
  // GBNF rules with "call" for one call as by write(). No rule is called "root".
  std::string (*grammar)(const call_choice& which) = nullptr;
  // The notation of arguments, for a tool whose schema is bound.
  schema::notation (*arguments)(const tool& of) = nullptr;
  // Separates two calls of one answer.
  std::string_view between_calls = "\n";
  // Explains to the model how to call a tool; used if the model's template has no tools.
  std::string_view instructions = {};
};

std::span<const dialect* const> dialects();
const dialect* find_dialect(std::string_view name);
std::string dialect_names();  // "hermes, ..." for messages
// A dialect without calls; thinking stands between <think> and </think>.
const dialect& plain_dialect();
// A dialect without calls; thinking stands between the marks of `d`.
const dialect& without_calls(const dialect& d);

// All tags by which the splitter finds the parts of an answer, of all dialects. Where they are
// control tokens of a vocabulary, the detokenizer still writes them as text.
std::vector<std::string_view> answer_tags();

}  // namespace bitnet::answer
