#include <fmt/format.h>

#include <deque>
#include <random>

#include "answer/message.hpp"
#include "api/answers.hpp"
#include "api/call_guard.hpp"
#include "api/edge.hpp"

struct bitnet_answer {
  explicit bitnet_answer(bitnet::answer::splitter::options how) : splitter(std::move(how)) {}
  void take(std::vector<bitnet::answer::part> more) {
    message.add(more);
    for (bitnet::answer::part& one : more) waiting.push_back(std::move(one));
  }
  bitnet::answer::splitter splitter;
  bitnet::answer::message message;
  std::deque<bitnet::answer::part> waiting;
  bitnet::answer::part given;  // the last event points into it
  bool finished = false;
};

namespace {

using bitnet::api::guarded;
using bitnet::api::missing;
using part_kind = bitnet::answer::part::kind;

bitnet_str borrowed(const std::string& text) {
  return {text.data(), text.size()};
}

uint32_t number_of(part_kind what) {
  switch (what) {
    case part_kind::thinking_begins:
      return BITNET_ANSWER_REASONING_BEGIN;
    case part_kind::thinking:
      return BITNET_ANSWER_REASONING;
    case part_kind::thinking_ends:
      return BITNET_ANSWER_REASONING_END;
    case part_kind::content:
      return BITNET_ANSWER_CONTENT;
    case part_kind::call_begins:
      return BITNET_ANSWER_CALL_BEGIN;
    case part_kind::arguments:
      return BITNET_ANSWER_CALL_ARGUMENTS;
    case part_kind::call_ends:
      return BITNET_ANSWER_CALL_END;
    case part_kind::malformed:
      break;
  }
  return BITNET_ANSWER_MALFORMED;
}

bitnet_answer_event event_of(const bitnet::answer::part& one) {
  bitnet_answer_event out{};
  out.kind = number_of(one.what);
  out.call = one.index;
  out.text = borrowed(one.text);
  out.id = borrowed(one.id);
  const bool why = one.what == part_kind::malformed;
  (why ? out.message : out.name) = borrowed(one.name);
  return out;
}

}  // namespace

namespace bitnet::api {

std::string call_ids_of(const char* given) {
  if (given != nullptr) return given;
  std::random_device source;
  return fmt::format("call_{:08x}{:08x}_", source(), source());
}

bitnet_answer* make_answer(answer::splitter::options how) {
  return new bitnet_answer(std::move(how));
}

}  // namespace bitnet::api

void bitnet_answer_defaults(bitnet_answer_options* options, uint32_t size) {
  bitnet::api::give_defaults({}, options, size);
}

bitnet_status bitnet_answer_open(const bitnet_answer_options* options, bitnet_answer** out,
                                 bitnet_error* err) {
  return guarded(err, "bitnet_answer_open", [&]() -> bitnet::result<void> {
    if (out == nullptr) return missing("out");
    const auto taken = bitnet::api::take_options(options, bitnet_answer_defaults);
    if (!taken) return std::unexpected(taken.error());
    const std::string_view name = taken->dialect == nullptr ? "hermes" : taken->dialect;
    const bitnet::answer::dialect* dialect = bitnet::answer::find_dialect(name);
    if (dialect == nullptr)
      return bitnet::fail(BITNET_INVALID_ARGUMENT,
                          fmt::format("dialect: expected one of {}, found '{}'",
                                      bitnet::answer::dialect_names(), name));
    auto tools = bitnet::answer::parse_tools(bitnet::api::view(taken->tools), "tools");
    if (!tools) return std::unexpected(tools.error());
    *out = bitnet::api::make_answer({.dialect = dialect,
                                     .known = *std::move(tools),
                                     .thinks = taken->in_reasoning != 0,
                                     .id_prefix = bitnet::api::call_ids_of(taken->call_ids)});
    return {};
  });
}

void bitnet_answer_close(bitnet_answer* answer) {
  delete answer;
}

bitnet_status bitnet_answer_push(bitnet_answer* answer, bitnet_str text, bitnet_error* err) {
  return guarded(err, "bitnet_answer_push", [&]() -> bitnet::result<void> {
    if (answer == nullptr) return missing("answer");
    if (answer->finished)
      return bitnet::fail(BITNET_INVALID_ARGUMENT,
                          "the answer was finished; open another one for another answer");
    answer->take(answer->splitter.take(bitnet::api::view(text)));
    return {};
  });
}

bitnet_status bitnet_answer_finish(bitnet_answer* answer, bitnet_error* err) {
  return guarded(err, "bitnet_answer_finish", [&]() -> bitnet::result<void> {
    if (answer == nullptr) return missing("answer");
    if (!answer->finished) answer->take(answer->splitter.finish());
    answer->finished = true;
    return {};
  });
}

bitnet_status bitnet_answer_next(bitnet_answer* answer, bitnet_answer_event* out,
                                 bitnet_error* err) {
  return guarded(err, "bitnet_answer_next", [&]() -> bitnet::result<void> {
    if (answer == nullptr || out == nullptr) return missing("answer or out");
    if (answer->waiting.empty())
      return bitnet::fail(BITNET_NOT_FOUND, answer->finished
                                                ? "the answer has no more events"
                                                : "there are no more events until more is pushed");
    answer->given = std::move(answer->waiting.front());
    answer->waiting.pop_front();
    return bitnet::api::give_result(event_of(answer->given), out);
  });
}

int32_t bitnet_answer_in_reasoning(const bitnet_answer* answer) {
  return answer != nullptr && answer->splitter.thinks() ? 1 : 0;
}

bitnet_status bitnet_answer_message(const bitnet_answer* answer, char* out, uint64_t capacity,
                                    uint64_t* needed, bitnet_error* err) {
  return guarded(err, "bitnet_answer_message", [&]() -> bitnet::result<void> {
    if (answer == nullptr) return missing("answer");
    return bitnet::api::give_text(bitnet::json::written(answer->message.written()), out, capacity,
                                  needed);
  });
}
