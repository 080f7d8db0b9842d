// bitnet verify-receipt: whether a receipt says the truth.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "commands/commands.hpp"
#include "commands/prompt.hpp"
#include "library/json.hpp"
#include "library/receipts.hpp"
#include "library/replay.hpp"
#include "model_files.hpp"
#include "terminal/output.hpp"
#include "text/json_members.hpp"
#include "text/printable.hpp"
#include "text_input.hpp"

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

result<json> verdict_of(const std::string& receipt, const bitnet_receipt_check& check) {
  library_error err;
  std::string text;
  const bitnet_status status = fetch(
      [&](char* out, uint64_t capacity, uint64_t* needed) {
        return bitnet_receipt_verify(borrowed(receipt), &check, out, capacity, needed, &err);
      },
      text);
  if (status != BITNET_OK) return fail(exit_code::usage, err.message);
  return parse_json(text);
}

const json& predicate_in(const json& verdict) {
  return text::at(text::at(verdict, "statement"), "predicate");
}

// Names of the ancestor's that the library does not know: they follow from the selected device.
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

// The prompt that the user gives for a replay, in tokens.
result<std::optional<token_list>> prompt_given(const invocation& in, const std::string& model) {
  auto ids = given_ids(in);
  if (!ids) return std::unexpected(ids.error());
  if (*ids) return std::optional<token_list>(**ids);
  auto text = given_prompt(in, {});
  if (!text) return std::unexpected(text.error());
  if (!*text) return std::optional<token_list>();
  const auto vocabulary = open_vocabulary(model);
  if (!vocabulary) return std::unexpected(vocabulary.error());
  auto tokens = tokenize(vocabulary->get(), **text,
                         BITNET_TOKENIZE_MODEL_BOS | BITNET_TOKENIZE_PARSE_SPECIAL);
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

// A line for each finding, then the verdict.
std::string verdict_lines(const json& verdict) {
  std::string out;
  for (const json& one : list_of(verdict, "findings"))
    out += fmt::format("{} {}: {}: {}\n", member(one, "level"), member(one, "rule"),
                       member(one, "field"), member(one, "text"));
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

}  // namespace

result<int> verify_receipt_command(const invocation& in) {
  const auto file = receipt_file(in);
  if (!file) return std::unexpected(file.error());
  const auto receipt = read_file(*file, longest_receipt_file);
  if (!receipt) return fail(exit_code::usage, receipt.error().message);
  std::string model;
  if (in.set.flagged("model")) {
    auto found = find_model(in.set.text("model"), in.variables);
    if (!found) return fail(exit_code::usage, found.error().message);
    model = *std::move(found);
  }
  auto verdict = verdict_of(*receipt, check_of(in.set, model));
  if (!verdict) return std::unexpected(verdict.error());
  check_names(*verdict);
  if (in.set.flag("replay") && verdict->value("valid", false))
    if (auto done = add_replay(in, *verdict); !done) return std::unexpected(done.error());
  if (auto done = print(in.set.flag("json") ? json_line(*verdict)
                                            : text::printable_lines(verdict_lines(*verdict)));
      !done)
    return std::unexpected(done.error());
  return code_of(*verdict);
}

}  // namespace bitnet::host
