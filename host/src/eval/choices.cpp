#include "eval/choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "openai/body.hpp"
#include "text/json_members.hpp"

namespace bitnet::host::eval {
namespace {

using nlohmann::json;
using read_item = std::expected<choice_item, std::string>;
using text_list = std::expected<std::vector<std::string>, std::string>;

constexpr std::size_t most_endings = 64;

std::unexpected<std::string> wrong(std::string why) {
  return std::unexpected(std::move(why));
}

text_list texts_of(const json& from, const char* name) {
  if (!from.is_array() || from.size() < 2 || from.size() > most_endings)
    return wrong(fmt::format("'{}' is no list of 2 to {} texts", name, most_endings));
  std::vector<std::string> out;
  for (const json& one : from) {
    if (!one.is_string() || one.get_ref<const std::string&>().empty())
      return wrong(fmt::format("'{}' has an element that is no text, or an empty one", name));
    out.push_back(one.get<std::string>());
  }
  return out;
}

// A number from 0, possibly quoted, as in HellaSwag's files.
std::optional<std::size_t> index_of(const json& from) {
  if (from.is_number_unsigned()) return from.get<std::size_t>();
  if (!from.is_string()) return std::nullopt;
  const auto& text = from.get_ref<const std::string&>();
  std::size_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return value;
}

read_item read_hellaswag(const json& line) {
  choice_item out;
  out.context = text::text_at(line, "ctx");
  if (out.context.empty()) return wrong("'ctx' is no text, or an empty one");
  auto endings = texts_of(text::at(line, "endings"), "endings");
  if (!endings) return wrong(endings.error());
  out.endings = *std::move(endings);
  const auto label = index_of(text::at(line, "label"));
  if (!label || *label >= out.endings.size())
    return wrong(fmt::format("'label' is no number from 0 to {}, which names an ending",
                             out.endings.size() - 1));
  out.label = *label;
  return out;
}

read_item read_arc(const json& line) {
  choice_item out;
  const std::string question = text::text_at(line, "question");
  if (question.empty()) return wrong("'question' is no text, or an empty one");
  out.context = fmt::format("Question: {}\nAnswer:", question);
  const json& choices = text::at(line, "choices");
  auto endings = texts_of(text::at(choices, "text"), "choices.text");
  if (!endings) return wrong(endings.error());
  out.endings = *std::move(endings);
  auto labels = texts_of(text::at(choices, "label"), "choices.label");
  if (!labels) return wrong(labels.error());
  if (labels->size() != out.endings.size())
    return wrong(
        fmt::format("'choices' has {} texts and {} labels", out.endings.size(), labels->size()));
  const std::string key = text::text_at(line, "answerKey");
  const auto found = std::ranges::find(*labels, key);
  if (found == labels->end()) return wrong("'answerKey' is no element of 'choices.label'");
  if (std::find(found + 1, labels->end(), key) != labels->end())
    return wrong("'choices.label' has the answer's label twice");
  out.label = static_cast<std::size_t>(found - labels->begin());
  return out;
}

bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

}  // namespace

read_item read_choice_item(std::string_view text) {
  const auto line = openai::parse_object(text, "the line");
  if (!line) return wrong(line.error().message);
  if (line->contains("ctx") || line->contains("endings")) return read_hellaswag(*line);
  if (line->contains("question") || line->contains("choices")) return read_arc(*line);
  return wrong(
      "it has neither 'ctx', 'endings' and 'label' nor 'question', 'choices' and 'answerKey'");
}

std::string joined(const choice_item& item, std::size_t ending) {
  const std::string& behind = item.endings[ending];
  const bool apart = is_blank(item.context.back()) || is_blank(behind.front());
  return item.context + (apart ? "" : " ") + behind;
}

std::size_t common_prefix(std::span<const bitnet_token> a, std::span<const bitnet_token> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

std::size_t characters_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::size_t chosen(const choice_score& score, bool normalised) {
  std::size_t best = 0;
  const auto value = [&](std::size_t i) {
    return normalised ? score.logprobs[i] / score.lengths[i] : score.logprobs[i];
  };
  for (std::size_t i = 1; i < score.logprobs.size(); ++i)
    if (value(i) > value(best)) best = i;
  return best;
}

choice_summary summary_of(std::span<const choice_item> items,
                          std::span<const choice_score> scores) {
  choice_summary out;
  out.right.of = out.right_normalised.of = items.size();
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (chosen(scores[i], false) == items[i].label) ++out.right.n;
    if (chosen(scores[i], true) == items[i].label) ++out.right_normalised.n;
    out.random += 1.0 / static_cast<double>(items[i].endings.size());
  }
  out.random /= static_cast<double>(items.size());
  return out;
}

}  // namespace bitnet::host::eval
