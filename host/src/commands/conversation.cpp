#include "commands/conversation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "library/saved_chat.hpp"

namespace bitnet::host {
namespace {

// Room that a prompt leaves for its answer, as a part of the context.
constexpr uint64_t room_for_answer(uint64_t capacity) {
  return std::min<uint64_t>(64, capacity / 8);
}

bool is_system(const chat_message& one) {
  return one.role == "system";
}

}  // namespace

// Drops the oldest messages, but never the system prompt or the last one, until the rest fits.
result<chat_prompt> conversation::fit(std::size_t& dropped) {
  const uint64_t capacity = bitnet_session_capacity(session_);
  for (;;) {
    auto prompt = chat_ids(model_, template_, messages_);
    if (!prompt) return prompt;
    const uint64_t size = prompt->ids.size();
    if (size + room_for_answer(capacity) <= capacity) return prompt;
    const auto first = messages_.begin() + (is_system(messages_.front()) ? 1 : 0);
    if (first + 1 == messages_.end()) {
      return fail(exit_code::failure,
                  fmt::format("the message has {} tokens, and the context {}; shorten it, or start "
                              "with a larger -c",
                              size, capacity));
    }
    // A turn is a question and its answer.
    const auto last = first + std::min<std::ptrdiff_t>(2, messages_.end() - first - 1);
    dropped += static_cast<std::size_t>(last - first);
    messages_.erase(first, last);
  }
}

// Keeps what the session and `ids` have in common; `rest` is what is still to evaluate.
result<void> conversation::rewind(const token_list& ids, token_list& rest) {
  const auto [mine, theirs] = std::ranges::mismatch(held_, ids);
  // The session needs at least one token to continue from.
  const auto common =
      std::min<uint64_t>(static_cast<uint64_t>(mine - held_.begin()), ids.size() - 1);
  library_error err;
  const bitnet_status status = bitnet_session_truncate(session_, common, &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  held_.resize(common);
  rest.assign(ids.begin() + static_cast<std::ptrdiff_t>(common), ids.end());
  return {};
}

result<conversation::answer> conversation::ask(const std::string& text, const generation_plan& plan,
                                               const std::function<bool(std::string_view)>& sink) {
  answer out;
  messages_.push_back({"user", text});
  const auto give_up = [&](failure why) {
    messages_.pop_back();
    return std::unexpected(std::move(why));
  };
  auto prompt = fit(out.dropped);
  if (!prompt) return give_up(prompt.error());
  if (prompt->ids.empty()) return give_up({exit_code::usage, "the message is empty"});
  token_list rest;
  if (auto done = rewind(prompt->ids, rest); !done) return give_up(done.error());
  auto done = generate(session_, rest, plan, after(prompt->begun, sink));
  if (!done) return give_up(done.error());
  out.done = *std::move(done);
  held_ = std::move(prompt->ids);
  held_.insert(held_.end(), out.done.ids.begin(), out.done.ids.end());
  held_.resize(std::min<uint64_t>(held_.size(), bitnet_session_length(session_)));
  messages_.push_back({"assistant", prompt->begun + out.done.text});
  return out;
}

void conversation::set_system(std::optional<std::string> text) {
  if (!messages_.empty() && is_system(messages_.front())) messages_.erase(messages_.begin());
  if (text) messages_.insert(messages_.begin(), {"system", *std::move(text)});
}

std::optional<std::string> conversation::system() const {
  if (messages_.empty() || !is_system(messages_.front())) return std::nullopt;
  return messages_.front().content;
}

void conversation::clear() {
  std::erase_if(messages_, [](const chat_message& one) { return !is_system(one); });
}

std::string conversation::to_json() const {
  return write_saved_chat(messages_);
}

result<void> conversation::from_json(const std::string& text) {
  auto read = read_saved_chat(text);
  if (!read) return std::unexpected(read.error());
  messages_ = *std::move(read);
  return {};
}

}  // namespace bitnet::host
