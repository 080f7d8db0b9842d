// bitnet inspect: shows a model file's contents, and whether it would run.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "commands/commands.hpp"
#include "library/left_out.hpp"
#include "library/weight_checks.hpp"
#include "model_files/find_model.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;

constexpr std::size_t longest_shown = 70;  // characters of a metadata value

std::string value_text(const json& content, std::size_t limit = text::no_limit) {
  return text::printable(content.is_string() ? content.get<std::string>() : json_text(content),
                         limit);
}

std::string shown(const json& content) {
  return value_text(content, longest_shown);
}

void add_members(std::string& out, const char* title, const json& members) {
  if (!members.is_object() || members.empty()) return;
  out += fmt::format("\n{}\n", title);
  for (const auto& [key, content] : members.items()) {
    out += fmt::format("  {:<44} {}\n", value_text(key), shown(content));
  }
}

// A line per type, since there are many tensors.
void add_tensors(std::string& out, const json& tensors) {
  struct total {
    uint64_t count = 0;
    uint64_t bytes = 0;
  };
  std::map<std::string, total> types;
  for (const json& one : tensors) {
    total& t = types[shown(one.value("type", json("?")))];
    ++t.count;
    t.bytes += one.value("bytes", uint64_t{0});
  }
  out += fmt::format("\ntensors ({})\n", tensors.size());
  for (const auto& [type, t] : types) {
    out += fmt::format("  {:<12} {:>6} tensors {:>14} bytes\n", type, t.count, t.bytes);
  }
}

void add_readings(std::string& out, const json& readings) {
  if (!readings.is_array() || readings.empty()) return;
  out += "\nread as\n";
  for (const json& one : readings) {
    out += fmt::format("  {:>6} {}\n", one.value("tensors", uint64_t{0}),
                       value_text(one.value("as", json(""))));
  }
}

void add_chat(std::string& out, const json& chat) {
  if (!chat.is_object()) return;
  out += fmt::format("\nchat form\n  {}: {}\n", value_text(chat.value("form", json("?"))),
                     value_text(chat.value("why", json(""))));
}

std::string as_text(const json& content, bool all_weights) {
  std::string out = fmt::format("file         {}\n", shown(content.value("file", json(""))));
  if (content.contains("architecture")) {
    out += fmt::format("architecture {}\n", shown(content["architecture"]));
  }
  add_members(out, "format", content.value("format", json::object()));
  add_members(out, "model", content.value("model", json::object()));
  add_members(out, "this machine", content.value("host", json::object()));
  add_members(out, "metadata", content.value("metadata", json::object()));
  add_tensors(out, content.value("tensors", json::array()));
  add_members(out, "tensors of type 42", content.value("type_42", json::object()));
  add_members(out, "rotated weights", content.value("hadamard", json::object()));
  add_readings(out, content.value("readings", json::array()));
  add_chat(out, content.value("chat", json()));
  if (const json members = content.value("left_out_members", json::array()); !members.empty()) {
    out += fmt::format("\nleft out of this folder\n{}", left_out_text(members, "  "));
  }
  if (content.contains("weights")) out += weights_text(content["weights"], all_weights);
  const json problems = content.value("problems", json::array());
  out += problems.empty() ? "\nThis model can run.\n" : "\nThis model cannot run:\n";
  for (const json& one : problems) out += fmt::format("  {}\n", value_text(one));
  return out;
}

}  // namespace

result<json> inspected_model(const std::string& file, const bitnet_model_options& options) {
  library_error err;
  std::string report;
  const bitnet_status status = fetch(
      [&](char* out, uint64_t capacity, uint64_t* needed) {
        return bitnet_inspect(file.c_str(), &options, out, capacity, needed, &err);
      },
      report);
  if (status != BITNET_OK) return failed(status, err, stage::model);
  return parse_json(report);
}

result<int> inspect_command(const invocation& in) {
  const model_and_rest words = split_positionals(in);
  if (!words.rest.empty()) {
    return fail(exit_code::usage, fmt::format("takes one file, found also '{}'", words.rest[0]));
  }
  auto file = find_model(words.model, in.variables);
  if (!file) return std::unexpected(file.error());
  bitnet_model_options options = model_options(in.set);
  set_activations(in.set, options);
  auto content = inspected_model(*file, options);
  if (!content) return std::unexpected(content.error());
  const bool can_run = content->value("problems", json::array()).empty();
  const bool strict = in.set.flag("strict-mode");
  if (in.set.flag("stats") || strict) {
    auto weights = checked_weights(*file, options, in.set.text("gate"));
    if (weights)
      (*content)["weights"] = std::move(*weights);
    else if (can_run)
      return std::unexpected(weights.error());
  }
  if (auto done = print(in.set.flag("json")
                            ? json_line(*content)
                            : text::printable_lines(as_text(*content, in.set.flag("stats"))));
      !done) {
    return std::unexpected(done.error());
  }
  if (!can_run) return exit_code::model;
  const bool suspicious = strict && has_suspicious(content->value("weights", json::object()));
  return suspicious ? exit_code::suspicious : exit_code::ok;
}

}  // namespace bitnet::host
