// bitnet verify-receipt: checks whether a receipt's claims are true.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "basic/text_input.hpp"
#include "batch/line_reader.hpp"
#include "commands/commands.hpp"
#include "commands/prompt.hpp"
#include "model_files/find_model.hpp"
#include "receipts/receipts.hpp"
#include "receipts/replay.hpp"
#include "text/json_members.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;

constexpr uint64_t longest_receipt_file = uint64_t{16} << 20;  // the library's bound
constexpr int gate_missed = 3;

result<std::string> receipt_file(const invocation& in) {
  const std::string& path = in.set.text("path");
  if (path.empty() && in.positionals.size() == 1) return in.positionals.front();
  if (!path.empty() && in.positionals.empty()) return path;
  return fail(exit_code::usage,
              path.empty() && in.positionals.empty()
                  ? std::string("needs a receipt, such as `bitnet verify-receipt answer.json`")
                  : std::string("takes one receipt: name it once"));
}

bitnet_receipt_check check_of(const settings& set, const std::string& model) {
  bitnet_receipt_check out{};
  bitnet_receipt_check_defaults(&out, sizeof out);
  out.allow_unsigned = set.flag("allow-unsigned") ? 1 : 0;
  if (set.given("receipt-key")) out.key_file = set.text("receipt-key").c_str();
  if (set.given("trusted-keys")) out.trusted_keys = set.text("trusted-keys").c_str();
  if (!model.empty()) out.model = model.c_str();
  out.skip_plugins = set.flag("skip-plugins") ? 1 : 0;
  out.require_gpu_kernels = set.flag("require-gpu-kernels") ? 1 : 0;
  out.require_fused = static_cast<float>(set.real("require-fused"));
  return out;
}

// `unreadable`: it failed because the text is not a receipt at all.
result<json> verdict_of(const std::string& receipt, const bitnet_receipt_check& check,
                        bool& unreadable) {
  library_error err;
  std::string text;
  const bitnet_status status = fetch(
      [&](char* out, uint64_t capacity, uint64_t* needed) {
        return bitnet_receipt_verify(borrowed(receipt), &check, out, capacity, needed, &err);
      },
      text);
  unreadable = status == BITNET_BAD_DATA;
  if (status != BITNET_OK) return fail(exit_code::usage, err.message);
  return parse_json(text);
}

const json& predicate_in(const json& verdict) {
  return text::at(text::at(verdict, "statement"), "predicate");
}

// Checks BitNet-rs's names, which the library does not know; they follow from the selected device.
void check_names(json& verdict) {
  const json& predicate = predicate_in(verdict);
  if (!predicate.is_object() || !verdict.value("valid", false)) return;
  const std::string selected = member(text::at(predicate, "selection"), "device");
  json wanted = names_of_device("", "");
  for (const json& one : list_of(predicate, "devices"))
    if (member(one, "device") == selected)
      wanted = names_of_device(member(one, "driver_version"), member(one, "arch"));
  json wrong = json::array();
  for (const auto& [name, value] : wanted.items())
    if (predicate.contains(name) && predicate[name] != value)
      wrong.push_back({{"level", "error"},
                       {"rule", "names"},
                       {"field", name},
                       {"text", fmt::format("the device comes to {}", value.dump())}});
  for (json& one : wrong) verdict["findings"].push_back(std::move(one));
  if (!wrong.empty()) verdict["valid"] = false;
}

// The tokens of the prompt that the user gives for a replay.
result<std::optional<token_list>> prompt_given(const invocation& in, const std::string& model) {
  auto ids = given_ids(in);
  if (!ids || ids->has_value()) return ids;
  const auto given = given_prompt(in, {});
  if (!given) return std::unexpected(given.error());
  const std::optional<std::string>& text = *given;
  if (!text) return std::optional<token_list>();
  const auto vocabulary = open_vocabulary(in, model);
  if (!vocabulary) return std::unexpected(vocabulary.error());
  auto tokens =
      tokenize(vocabulary->get(), *text, BITNET_TOKENIZE_MODEL_BOS | BITNET_TOKENIZE_PARSE_SPECIAL);
  if (!tokens) return std::unexpected(tokens.error());
  return std::optional<token_list>(*std::move(tokens));
}

json replay_json(const replay& r) {
  json out = {{"verdict", name_of(r.verdict)}};
  if (!r.why.empty()) out["why"] = r.why;
  if (r.first_different)
    out["first_different"] = {{"place", *r.first_different}, {"was", r.was}, {"is", r.is}};
  return out;
}

result<void> add_replay(const invocation& in, json& verdict) {
  const json& predicate = predicate_in(verdict);
  const std::string wanted =
      in.set.flagged("model") ? in.set.text("model") : member(text::at(predicate, "model"), "path");
  auto file = find_model(wanted, in.variables);
  if (!file) return std::unexpected(file.error());
  auto prompt = prompt_given(in, *file);
  if (!prompt) return std::unexpected(prompt.error());
  auto done = replay_receipt(in, predicate, *file, *prompt);
  if (!done) return std::unexpected(done.error());
  verdict["replay"] = replay_json(*done);
  return {};
}

// "error counters: kernels[0].calls: ..."; there is no field if the text is not a receipt.
std::string finding_line(const json& one) {
  const std::string field = member(one, "field");
  return fmt::format("{} {}: {}{}{}\n", member(one, "level"), member(one, "rule"), field,
                     field.empty() ? "" : ": ", member(one, "text"));
}

// A line per finding, then the verdict.
std::string verdict_lines(const json& verdict) {
  std::string out;
  for (const json& one : list_of(verdict, "findings")) out += finding_line(one);
  const json& replayed = text::at(verdict, "replay");
  if (replayed.is_object()) {
    out += fmt::format("replay: {}", member(replayed, "verdict"));
    if (const std::string why = member(replayed, "why"); !why.empty()) out += ": " + why;
    out += "\n";
  }
  const json& predicate = predicate_in(verdict);
  const std::string signer = member(verdict, "signed_by");
  if (!verdict.value("valid", false)) return out + "invalid\n";
  return out + fmt::format("valid: {} tokens by {} on {}, {}\n",
                           any_member(predicate, "tokens_generated"),
                           member(text::at(predicate, "model"), "name"),
                           member(text::at(predicate, "selection"), "device"),
                           signer.empty() ? "not signed" : "signed by " + signer);
}

int code_of(const json& verdict) {
  if (!verdict.value("valid", false)) return exit_code::failure;
  const std::string replayed = member(text::at(verdict, "replay"), "verdict");
  if (replayed == name_of(replay_verdict::different)) return exit_code::failure;
  if (!verdict.value("gates_passed", false)) return gate_missed;
  return replayed == name_of(replay_verdict::not_comparable) ? exit_code::no_comparison
                                                             : exit_code::ok;
}

// Checks that the options request for each receipt.
struct asking {
  const invocation& in;
  bitnet_receipt_check check;
};

// Adds the checks that the library does not make.
result<void> complete(const asking& asked, json& verdict) {
  check_names(verdict);
  if (asked.in.set.flag("replay") && verdict.value("valid", false))
    return add_replay(asked.in, verdict);
  return {};
}

result<int> judge_one(const asking& asked, const std::string& receipt) {
  bool unreadable = false;
  auto verdict = verdict_of(receipt, asked.check, unreadable);
  if (!verdict) return std::unexpected(verdict.error());
  if (auto done = complete(asked, *verdict); !done) return std::unexpected(done.error());
  if (auto done = print(asked.in.set.flag("json") ? json_line(*verdict)
                                                  : text::printable_lines(verdict_lines(*verdict)));
      !done)
    return std::unexpected(done.error());
  return code_of(*verdict);
}

// ---- a receipt per line ------------------------------------------------------------------------

// Whether the file has more lines after a first one that is a complete object. The receipt of `run`
// is one line, and in a receipt laid out over several lines the first has an open brace.
bool has_lines(std::string_view text) {
  const std::size_t end = text.find('\n');
  return end != std::string_view::npos &&
         text.find_first_not_of(" \t\r\n", end) != std::string_view::npos &&
         json::accept(text.substr(0, end));
}

// The finding for a line that is not a receipt.
json no_receipt(const std::string& why) {
  return {{"valid", false},
          {"gates_passed", true},
          {"findings", {{{"level", "error"}, {"rule", "form"}, {"field", ""}, {"text", why}}}}};
}

struct tally {
  uint64_t n = 0, n_bad = 0;
  uint64_t first_bad = 0;  // number of that line
  int code = exit_code::ok;

  // A false claim outranks a missed gate, which outranks an incomparable receipt.
  void add(uint64_t line, int of_line) {
    constexpr int worst_first[] = {exit_code::failure, gate_missed, exit_code::no_comparison};
    ++n;
    if (of_line == exit_code::ok) return;
    if (n_bad++ == 0) first_bad = line;
    for (const int one : worst_first)
      if (code == one || of_line == one) {
        code = one;
        return;
      }
  }
};

std::string lines_of(const json& verdict, uint64_t number) {
  std::string out;
  for (const json& one : list_of(verdict, "findings"))
    if (member(one, "level") != "note")
      out += fmt::format("line {}: {}", number, finding_line(one));
  const json& replayed = text::at(verdict, "replay");
  const std::string found = member(replayed, "verdict");
  if (replayed.is_object() && found != name_of(replay_verdict::byte_equal))
    out += fmt::format("line {}: replay: {}: {}\n", number, found, member(replayed, "why"));
  return out;
}

result<void> judge_line(const asking& asked, const batch::input_line& line, tally& all) {
  json verdict;
  bool unreadable = false;
  if (!line.fault.empty()) {
    verdict = no_receipt(line.fault);
  } else if (auto found = verdict_of(line.text, asked.check, unreadable)) {
    verdict = *std::move(found);
    if (auto done = complete(asked, verdict); !done) return done;
  } else if (unreadable) {
    verdict = no_receipt(found.error().message);
  } else {
    return std::unexpected(found.error());
  }
  all.add(line.number, code_of(verdict));
  verdict["line"] = line.number;
  return print(asked.in.set.flag("json") ? json_line(verdict)
                                         : text::printable_lines(lines_of(verdict, line.number)));
}

// Judges a text in memory.
result<void> judge_text(const asking& asked, std::string_view text, tally& all) {
  for (uint64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    batch::input_line line{number, std::string(text.substr(0, end)), ""};
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.text.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (auto ok = judge_line(asked, line, all); !ok) return ok;
  }
  return {};
}

// Judges a file that is longer than a single receipt may be.
result<void> judge_file(const asking& asked, const std::string& file, tally& all) {
  auto from = batch::line_reader::open(file);
  if (!from) return std::unexpected(from.error());
  while (true) {
    const auto taken = from->take();
    if (!taken) return std::unexpected(taken.error());
    if (const auto& line = *taken; line) {
      if (line->number == 1 && !line->fault.empty())
        return fail(exit_code::usage, fmt::format("{}: {}", file, line->fault));
      if (auto ok = judge_line(asked, *line, all); !ok) return ok;
    } else if (!from->wants_more()) {
      return {};
    } else if (auto ok = from->read_more(); !ok) {
      return ok;
    }
  }
}

result<int> end_of_lines(const asking& asked, const result<void>& read, const tally& all) {
  if (!read) return std::unexpected(read.error());
  if (asked.in.set.flag("json")) return all.code;
  const std::string end =
      all.n_bad == 0
          ? fmt::format("valid: {} receipts\n", all.n)
          : fmt::format("{} of {} receipts are not as they should be; the first is in line {}\n",
                        all.n_bad, all.n, all.first_bad);
  if (auto done = print(end); !done) return std::unexpected(done.error());
  return all.code;
}

}  // namespace

result<int> verify_receipt_command(const invocation& in) {
  const auto file = receipt_file(in);
  if (!file) return std::unexpected(file.error());
  std::string model;
  if (in.set.flagged("model")) {
    auto found = find_model(in.set.text("model"), in.variables);
    if (!found) return fail(exit_code::usage, found.error().message);
    model = *std::move(found);
  }
  const asking asked{in, check_of(in.set, model)};
  const auto receipt = read_file(*file, longest_receipt_file);
  if (!receipt && receipt.error().number != EFBIG)
    return fail(exit_code::usage, receipt.error().message);
  tally all;
  if (!receipt) return end_of_lines(asked, judge_file(asked, *file, all), all);
  if (has_lines(*receipt)) return end_of_lines(asked, judge_text(asked, *receipt, all), all);
  return judge_one(asked, *receipt);
}

}  // namespace bitnet::host
