#include "commands/conversation.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "basic/json.hpp"
#include "session/saved_chat.hpp"

namespace bitnet::host {

// Truncates the session to the prefix shared with `ids`; `rest` receives the tokens to evaluate.
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

result<conversation::answer> conversation::ask(std::vector<chat_message> more,
                                               generation_setup& setup, answer_printer& to) {
  const std::size_t before = messages_.size();
  messages_.insert(messages_.end(), std::make_move_iterator(more.begin()),
                   std::make_move_iterator(more.end()));
  const auto give_up = [&](failure why) {
    messages_.resize(before);
    return std::unexpected(std::move(why));
  };
  auto prompt = chat_ids(model_, form_, messages_);
  if (!prompt) return give_up(prompt.error());
  if (prompt->ids.empty()) return give_up({exit_code::usage, "the message is empty"});
  setup.answer_to(prompt->chat.get());
  token_list rest;
  if (auto done = rewind(prompt->ids, rest); !done) return give_up(done.error());
  if (auto opened = to.open(*prompt, form_); !opened) return give_up(opened.error());
  auto done =
      generate(session_, rest, setup, [&](std::string_view piece) { return to.take(piece); });
  to.finish();  // printed() has its error
  if (!done) return give_up(done.error());
  answer out{*std::move(done), prompt->left_out, {}};
  const auto first = messages_.begin() + (is_system(messages_.front()) ? 1 : 0);
  messages_.erase(first, first + static_cast<std::ptrdiff_t>(out.dropped));
  held_ = prompt->ids;
  held_.insert(held_.end(), out.done.ids.begin(), out.done.ids.end());
  held_.resize(std::min<uint64_t>(held_.size(), bitnet_session_length(session_)));
  if (auto kept = remember(*prompt, to, out); !kept) return std::unexpected(kept.error());
  return out;
}

// Adds the answer to the messages; with tools in separate parts, since its calls need them.
result<void> conversation::remember(const chat_prompt& prompt, const answer_printer& printed,
                                    answer& to) {
  chat_message said{"assistant", prompt.begun + to.done.text};
  if (!form_.tools.empty()) {
    auto whole = message_of(printed.answer());
    if (!whole) return std::unexpected(whole.error());
    said.content = member(*whole, "content");
    for (const nlohmann::json& one : list_of(*whole, "tool_calls"))
      to.calls.push_back({member(one, "id"), member(one["function"], "name")});
    whole->erase("role");
    whole->erase("content");
    if (!whole->empty()) said.more = json_text(*whole);
  }
  messages_.push_back(std::move(said));
  return {};
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
