#include "session/shadowing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "basic/json.hpp"
#include "settings/value.hpp"
#include "text/items.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;

constexpr std::size_t most_shown = 60;
constexpr float largest_tolerance = 1e6F;

std::unexpected<failure> wrong(std::string_view expected, std::string_view found) {
  return fail(exit_code::usage,
              fmt::format("--shadow expects {}, found '{}{}'", expected,
                          found.substr(0, most_shown), found.size() > most_shown ? "..." : ""));
}

result<void> read_key(std::string_view item, shadow_wish& out) {
  const auto equals = item.find('=');
  const std::string_view key = item.substr(0, equals);
  if (equals == std::string_view::npos ||
      (key != "share" && key != "waiting" && key != "tolerance"))
    return wrong("share=S, waiting=N or tolerance=T behind its first name", item);
  const std::string_view text = item.substr(equals + 1);
  if (key != "waiting") {
    const bool is_share = key == "share";
    const float number = static_cast<float>(parse_real(text).value_or(-1));
    if (is_share && !(number > 0 && number <= 1))
      return wrong("a share of the rows above 0 and at most 1", text);
    if (!(number >= 0 && number <= largest_tolerance))
      return wrong(fmt::format("a tolerance from 0 to {}", largest_tolerance), text);
    (is_share ? out.share : out.tolerance) = number;
    return {};
  }
  const auto waiting = parse_integer(text);
  if (!waiting || *waiting < 1 || *waiting > most_waiting_rows)
    return wrong(fmt::format("from 1 to {} waiting rows", most_waiting_rows), text);
  out.waiting = static_cast<uint32_t>(*waiting);
  return {};
}

json object_in(const json& from, const char* key) {
  const auto found = from.is_object() ? from.find(key) : from.end();
  return found == from.end() || !found->is_object() ? json::object() : *found;
}

uint64_t count_in(const json& from, const char* key) {
  const auto found = from.is_object() ? from.find(key) : from.end();
  if (found == from.end() || !found->is_number_integer()) return 0;
  return static_cast<uint64_t>(std::max<int64_t>(found->get<int64_t>(), 0));
}

double real_in(const json& from, const char* key) {
  const auto found = from.is_object() ? from.find(key) : from.end();
  return found == from.end() || !found->is_number() ? 0 : found->get<double>();
}

// "; the first op that differs is ..."
std::string op_text(const json& report) {
  const json op = object_in(report, "first_op");
  if (op.empty()) return "";
  if (member(op, "op").empty())
    return fmt::format("; no op differs over {} tokens", count_in(op, "tokens"));
  const std::string place = member(op, "at");
  return fmt::format("; the first op that differs is {}{}, number {} of {}", member(op, "op"),
                     place.empty() ? "" : fmt::format(" ({})", place), count_in(op, "index") + 1,
                     count_in(op, "of"));
}

}  // namespace

result<shadow_wish> read_shadow(std::string_view text) {
  const auto items = text::items(text);
  shadow_wish out;
  out.device = items.front();
  if (out.device.empty() || out.device.find('=') != std::string::npos)
    return wrong("the name of a backend or device first, as in cuda,share=0.1", text);
  for (std::size_t i = 1; i < items.size(); ++i)
    if (auto ok = read_key(items[i], out); !ok) return std::unexpected(ok.error());
  return out;
}

uint64_t rows_left(const json& report) {
  const json rows = object_in(report, "rows");
  const uint64_t done = count_in(rows, "compared") + count_in(rows, "dropped");
  const uint64_t offered = count_in(rows, "offered");
  return offered > done ? offered - done : 0;
}

bool has_differed(const json& report) {
  return count_in(report, "same_bytes") < count_in(object_in(report, "rows"), "compared");
}

std::string shadow_line(const json& report) {
  const json rows = object_in(report, "rows"), device = object_in(report, "device");
  const json kl = object_in(report, "kl");
  std::string out = fmt::format(
      "shadow {}: {} of {} rows compared, {} with the same top token, {} byte-equal; KL mean "
      "{:.3g}, "
      "max {:.3g}; {} dropped",
      member(device, "selected"), count_in(rows, "compared"), count_in(rows, "seen"),
      count_in(report, "same_top"), count_in(report, "same_bytes"), real_in(kl, "mean"),
      real_in(kl, "max"), count_in(rows, "dropped"));
  if (const uint64_t left = rows_left(report); left != 0) out += fmt::format(", {} left", left);
  out += op_text(report);
  if (const std::string why = member(report, "error"); !why.empty())
    out += fmt::format("; it ended early: {}", why);
  return out;
}

}  // namespace bitnet::host
