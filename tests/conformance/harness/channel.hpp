#pragma once
// How a child reports to its parent what happens: one JSON object a line, written at once, so that
// what was said before a crash is not lost.
//
//   {"began": TEST}  {"ended": TEST, "status": "passed|failed|skipped", "text": ..., "ms": ...,
//   "weights": [...]}                            and how its weights were kept
//   {"breach": SUITE, "rule": ..., "text": ...}   a rule broken, wherever that was noticed
//   {"slot": ...}                                 that ran when a fatal signal came
//   {"stage": ...}  {"fact": {...}}  {"rows": [...]}  {"done": EXIT STATUS}

#include <nlohmann/json.hpp>

namespace bitnet::conformance::channel {

void open(int descriptor);
void say(const nlohmann::json& record);
// May be called anywhere, also between a plugin's call of abort and its end.
void breach(const char* suite, const char* rule, const char* text);

// From a signal handler: allocates nothing.
void slot_of_crash(const char* slot);

// Exit status of a child that could not report: its descriptors were closed.
inline constexpr int lost = 9;

}  // namespace bitnet::conformance::channel
