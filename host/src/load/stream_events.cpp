#include "load/stream_events.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "text/json_members.hpp"
#include "text/printable.hpp"

namespace bitnet::host::load {
namespace {

using nlohmann::json;

constexpr std::size_t longest_message = 200;  // of an error of the server

bool is_text(const json& of, const char* key) {
  const json& member = text::at(of, key);
  return member.is_string() && !member.get_ref<const std::string&>().empty();
}

// Whether a choice has text: text of completions; content, thinking or calls of chats.
bool has_text(const json& choice) {
  if (is_text(choice, "text")) return true;
  const json& delta = text::at(choice, "delta");
  if (is_text(delta, "content") || is_text(delta, "reasoning_content")) return true;
  const json& calls = text::at(delta, "tool_calls");
  return calls.is_array() && !calls.empty();
}

std::size_t count_at(const json& usage, const char* key) {
  const json& n = text::at(usage, key);
  return n.is_number_unsigned() ? n.get<uint64_t>() : 0;
}

}  // namespace

std::expected<std::vector<std::string>, std::string> stream_events::take(std::string_view bytes) {
  std::vector<std::string> out;
  for (const char c : bytes) {
    const bool ends = c == '\n' || c == '\r';
    if (c == '\n' && after_cr_) {
      after_cr_ = false;
      continue;
    }
    after_cr_ = c == '\r';
    if (ends) {
      take_line(line_, out);
      line_.clear();
    } else if (line_.size() + data_.size() >= longest_event) {
      return std::unexpected(fmt::format("an event of more than {} bytes", longest_event));
    } else {
      line_ += c;
    }
  }
  return out;
}

void stream_events::take_line(std::string_view line, std::vector<std::string>& out) {
  constexpr std::string_view field = "data";
  if (line.empty()) {
    if (has_data_) out.push_back(std::move(data_));
    data_.clear();
    has_data_ = false;
    return;
  }
  if (!line.starts_with(field)) return;
  line.remove_prefix(field.size());
  if (!line.empty() && line.front() != ':') return;  // another field
  if (!line.empty()) line.remove_prefix(1);
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (has_data_) data_ += '\n';
  has_data_ = true;
  data_ += line;
}

stream_chunk read_chunk(std::string_view data) {
  stream_chunk out;
  if (data == "[DONE]") {
    out.is_end = true;
    return out;
  }
  const json chunk = text::json_of(data);
  if (!chunk.is_object()) {
    out.error =
        fmt::format("a chunk that is no JSON object: {}", text::printable(data, longest_message));
    return out;
  }
  if (const json& error = text::at(chunk, "error"); !error.is_null()) {
    const std::string message = text::text_at(error, "message");
    out.error = text::printable(message.empty() ? data : message, longest_message);
    return out;
  }
  const json& choices = text::at(chunk, "choices");
  if (choices.is_array())
    for (const json& choice : choices) out.has_text = out.has_text || has_text(choice);
  const json& usage = text::at(chunk, "usage");
  out.n_prompt = count_at(usage, "prompt_tokens");
  out.n_generated = count_at(usage, "completion_tokens");
  return out;
}

}  // namespace bitnet::host::load
