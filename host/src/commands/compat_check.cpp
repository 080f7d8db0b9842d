// bitnet compat-check: reports in a few lines whether this program reads a model file.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "commands/commands.hpp"
#include "library/weight_checks.hpp"
#include "model_files/find_model.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t longest_value = 70;  // characters of a metadata value

std::string value_of(const json& content) {
  return text::printable(content.is_string() ? content.get<std::string>() : json_text(content),
                         longest_value);
}

// The first metadata keys by name.
ordered_json first_keys(const json& metadata, int64_t limit) {
  ordered_json out = ordered_json::object();
  for (const auto& [key, content] : metadata.items()) {
    if (static_cast<int64_t>(out.size()) >= limit) break;
    out[key] = content;
  }
  return out;
}

ordered_json answer_of(const json& content, const std::optional<json>& weights) {
  const json format = content.value("format", json::object());
  const json problems = list_of(content, "problems");
  const bool suspicious = weights && has_suspicious(*weights);
  ordered_json out = {{"file", member(content, "file")},
                      {"status", !problems.empty() ? "incompatible"
                                 : suspicious      ? "suspicious"
                                                   : "compatible"},
                      {"container", member(format, "container")}};
  for (const char* key : {"version", "alignment"})
    if (format.contains(key)) out[key] = format[key];
  if (content.contains("architecture")) out["architecture"] = content["architecture"];
  out["n_tensors"] = list_of(content, "tensors").size();
  out["n_kv"] = content.value("metadata", json::object()).size();
  out["problems"] = problems;
  if (weights) out["weights"] = *weights;
  return out;
}

std::string answer_text(const ordered_json& answer) {
  std::string out;
  for (const char* key :
       {"file", "status", "container", "version", "architecture", "n_tensors", "n_kv"})
    if (answer.contains(key)) out += fmt::format("{:<13} {}\n", key, value_of(answer[key]));
  for (const ordered_json& one : answer["problems"])
    out += fmt::format("problem       {}\n",
                       text::printable(one.is_string() ? one.get<std::string>() : ""));
  if (answer.contains("weights")) out += weights_text(answer["weights"], false);
  if (!answer.contains("metadata")) return out;
  out += "\nmetadata\n";
  for (const auto& [key, content] : answer["metadata"].items())
    out += fmt::format("  {:<44} {}\n", text::printable(key), value_of(content));
  return out;
}

}  // namespace

result<int> compat_check_command(const invocation& in) {
  const model_and_rest words = split_positionals(in);
  if (!words.rest.empty())
    return fail(exit_code::usage, fmt::format("takes one file, found also '{}'", words.rest[0]));
  const auto file = find_model(words.model, in.variables);
  if (!file) return std::unexpected(file.error());
  bitnet_model_options options = model_options(in.set);
  set_activations(in.set, options);
  const auto content = inspected_model(*file, options);
  if (!content) return std::unexpected(content.error());
  const bool can_run = list_of(*content, "problems").empty();
  std::optional<json> weights;
  if (can_run && (in.set.flag("strict") || in.set.flag("strict-mode"))) {
    auto checked = checked_weights(*file, options, in.set.text("gate"));
    if (!checked) return std::unexpected(checked.error());
    weights = std::move(*checked);
  }
  ordered_json answer = answer_of(*content, weights);
  if (in.set.flag("show-kv"))
    answer["metadata"] =
        first_keys(content->value("metadata", json::object()), in.set.integer("kv-limit"));
  if (auto done = print(in.set.flag("json") ? json_line(answer)
                                            : text::printable_lines(answer_text(answer)));
      !done)
    return std::unexpected(done.error());
  if (!can_run) return exit_code::model;
  return weights && has_suspicious(*weights) ? exit_code::suspicious : exit_code::ok;
}

}  // namespace bitnet::host
