#include "commands/answer_printer.hpp"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

constexpr int dim = 2;
constexpr int yellow = 33;

std::string_view view(bitnet_str text) {
  return {text.data, text.size};
}

}  // namespace

answer_printer::answer_printer(const console& out, bool shows_reasoning)
    : out_(out), shows_reasoning_(shows_reasoning), on_terminal_(::isatty(STDOUT_FILENO) == 1) {}

result<void> answer_printer::open(const chat_prompt& prompt, const chat_form& form) {
  auto opened = open_answer(prompt, form);
  if (!opened) return std::unexpected(opened.error());
  answer_ = *std::move(opened);
  calls_as_json_ = !form.tools.empty();
  return {};
}

bool answer_printer::take(std::string_view text) {
  library_error err;
  bitnet_answer_push(answer_.get(), borrowed(text), &err);
  return print_events();
}

bool answer_printer::finish() {
  if (answer_ == nullptr) return true;
  library_error err;
  bitnet_answer_finish(answer_.get(), &err);
  if (!print_events()) return false;
  if (!thinks_) return true;
  if (shows_reasoning_ && !on_terminal_) out_.raw("\n");
  out_.note("the answer ended within its thinking; -n N gives it more tokens");
  return true;
}

result<nlohmann::json> message_of(const bitnet_answer* answer) {
  std::string text;
  library_error err;
  const bitnet_status status = fetch(
      [&](char* to, uint64_t capacity, uint64_t* needed) {
        return bitnet_answer_message(answer, to, capacity, needed, &err);
      },
      text);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return parse_json(text);
}

bool answer_printer::print_events() {
  bitnet_answer_event one{};
  one.struct_size = sizeof one;
  library_error err;
  while (printed_ && bitnet_answer_next(answer_.get(), &one, &err) == BITNET_OK) print_event(one);
  return printed_.has_value();
}

void answer_printer::print_event(const bitnet_answer_event& one) {
  switch (one.kind) {
    case BITNET_ANSWER_REASONING_BEGIN:
      thinks_ = true;
      return print_reasoning("<think>\n");
    case BITNET_ANSWER_REASONING:
      return print_reasoning(view(one.text));
    case BITNET_ANSWER_REASONING_END:
      thinks_ = false;
      print_reasoning("\n</think>");
      if (!shows_reasoning_) return;
      if (on_terminal_)
        printed_ = print("\n\n");
      else
        out_.raw("\n");
      return;
    case BITNET_ANSWER_CONTENT:
      return print_content(view(one.text));
    default:
      return print_call(one);
  }
}

void answer_printer::print_reasoning(std::string_view text) {
  if (!shows_reasoning_ || !printed_) return;
  if (on_terminal_)
    printed_ = print(out_.painted(dim, text));
  else
    out_.raw(out_.painted(dim, text::printable_lines(text)));
}

void answer_printer::begin_line() {
  if (in_line_ && printed_) printed_ = print("\n");
  in_line_ = false;
}

void answer_printer::print_call(const bitnet_answer_event& one) {
  switch (one.kind) {
    case BITNET_ANSWER_CALL_BEGIN:
      call_id_ = view(one.id);
      call_name_ = view(one.name);
      call_arguments_.clear();
      return;
    case BITNET_ANSWER_CALL_ARGUMENTS:
      call_arguments_ += view(one.text);
      return;
    default:
      break;
  }
  std::string line(view(one.text));  // as the model wrote it
  if (calls_as_json_ && one.kind == BITNET_ANSWER_CALL_END)
    line = json_text({{"id", call_id_},
                      {"type", "function"},
                      {"function", {{"name", call_name_}, {"arguments", call_arguments_}}}});
  if (line.empty()) return;
  begin_line();
  if (printed_) printed_ = print(on_terminal_ ? out_.painted(yellow, line) : line);
  in_line_ = true;
}

void answer_printer::print_content(std::string_view text) {
  if (text.empty()) return;
  printed_ = print(text);
  in_line_ = !text.ends_with('\n');
}

}  // namespace bitnet::host
