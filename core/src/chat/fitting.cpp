#include "chat/fitting.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bitnet::chat {
namespace {

constexpr uint64_t room_for_answer(uint64_t context) {
  return std::min<uint64_t>(64, context / 8);
}

// The numbers of messages that can be left out, ascending, from 0. A tool's result stays in the
// turn that asked for it.
std::vector<std::size_t> choices(std::span<const std::string_view> roles, std::size_t first) {
  std::vector<std::size_t> out{0};
  for (std::size_t i = first + 1; i < roles.size(); ++i)
    if (roles[i] == "user" || (i + 1 == roles.size() && roles[i] != "tool"))
      out.push_back(i - first);
  return out;
}

}  // namespace

std::size_t kept_at_front(std::span<const std::string_view> roles) {
  return !roles.empty() && (roles.front() == "system" || roles.front() == "developer") ? 1 : 0;
}

result<prompt> fit(std::span<const std::string_view> roles, uint64_t context,
                   const prompt_maker& make) {
  const std::size_t first = kept_at_front(roles);
  const auto without = [&](std::size_t n) -> result<prompt> {
    auto ids = make(n);
    if (!ids) return std::unexpected(ids.error());
    return prompt{*std::move(ids), n};
  };
  const auto fits = [&](const prompt& one) {
    return context == 0 || one.ids.size() + room_for_answer(context) <= context;
  };
  auto whole = without(0);
  if (!whole || fits(*whole)) return whole;

  // Doubles the step, then bisects, so that a long history is not rendered once per turn.
  const auto all = choices(roles, first);
  std::size_t too_little = 0;  // indices of `all`
  std::size_t step = 1;
  prompt found = *std::move(whole);
  while (!fits(found) && too_little + 1 < all.size()) {
    const std::size_t next = std::min(too_little + step, all.size() - 1);
    auto tried = without(all[next]);
    if (!tried) return tried;
    found = *std::move(tried);
    if (fits(found)) {
      step = next;
      break;
    }
    too_little = next;
    step *= 2;
  }
  if (!fits(found))
    return fail(
        BITNET_CONTEXT_FULL,
        fmt::format("the message has {} tokens, and the context {}; shorten it, or take a larger "
                    "context",
                    found.ids.size(), context));
  for (std::size_t enough = step; too_little + 1 < enough;) {
    const std::size_t middle = too_little + (enough - too_little) / 2;
    auto tried = without(all[middle]);
    if (!tried) return tried;
    if (fits(*tried)) {
      found = *std::move(tried);
      enough = middle;
    } else {
      too_little = middle;
    }
  }
  return found;
}

result<prompt> fit(std::string_view form, const source& from, std::span<const message> messages,
                   bool parse_special_in_messages, uint64_t context) {
  std::vector<std::string_view> roles;
  for (const message& one : messages) roles.push_back(one.role);
  const std::size_t first = kept_at_front(roles);
  return fit(roles, context, [&](std::size_t n) -> result<std::vector<tokenizer::token>> {
    std::vector<message> kept(messages.begin(), messages.end());
    const auto begin = kept.begin() + static_cast<std::ptrdiff_t>(first);
    if (n > 0) kept.erase(begin, begin + static_cast<std::ptrdiff_t>(n));
    const auto text = format(form, from, kept);
    if (!text) return std::unexpected(text.error());
    return encode(from.tokens(), *text, parse_special_in_messages);
  });
}

}  // namespace bitnet::chat
