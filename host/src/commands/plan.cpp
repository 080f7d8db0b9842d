// bitnet plan: shows which kernels a model's programs run here, op by op, and why.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "commands/commands.hpp"
#include "files/new_file.hpp"
#include "model_files/find_model.hpp"
#include "plan/file.hpp"
#include "plan/making.hpp"
#include "session/planning.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;

// ---- why ---------------------------------------------------------------------------------------

// The request explains the device that it names; dividing the model explains the others.
std::string why_device(const invocation& in, const json& choice, const plans::part& of) {
  if (in.plan != nullptr) return "the plan " + in.set.text("plan") + " has it there";
  if (of.device == member(choice, "device"))
    return fmt::format("selected for the request {} ({})", member(choice, "requested"),
                       member(choice, "requested_by"));
  for (const char* const name : {"tensor-split", "n-gpu-layers"})
    if (in.set.given(name))
      return fmt::format("--{} {} ({})", name, in.set.text(name), in.set.origin(name));
  return "layers for which the selected device has no room";
}

void explain_parts(const invocation& in, bitnet_runtime* runtime, plans::plan& what) {
  const auto choice = runtime_report(runtime);
  if (!choice) return;
  for (plans::part& one : what.parts) {
    one.why = why_device(in, *choice, one);
    for (const json& backend : list_of(*choice, "backends"))
      if (member(backend, "name") == one.backend) plans::explain(one, list_of(backend, "kernels"));
  }
}

// ---- as text -----------------------------------------------------------------------------------

std::string joined_ids(const std::vector<std::string>& ids) {
  return ids.empty() ? "-" : fmt::format("{}", fmt::join(ids, "+"));
}

std::string ops_text(const plans::part& of) {
  std::string out = fmt::format("  {:<18} {:>7} {:<10} {:>12}  {:<44} {}\n", "op", "layers",
                                "level", "bytes", "kernel", "why");
  for (const plans::row& one : of.rows) {
    out += fmt::format("  {:<18} {:>7} {:<10} {:>12}  {:<44} {}\n", one.op,
                       one.layers ? text_of(*one.layers) : "-", one.level, one.weight_bytes,
                       joined_ids(one.token), one.why);
    if (one.prompt != one.token)
      out += fmt::format("  {:<18} {:>7} {:<10} {:>12}  {:<44} {}\n", "", "", "", "",
                         joined_ids(one.prompt), "in steps of a prompt");
  }
  return out;
}

std::string plan_text(const plans::plan& what) {
  std::string out =
      fmt::format("model {} ({}, {} layers, {} parameters)\n", what.model.name,
                  what.model.architecture, what.model.n_layers, what.model.n_parameters);
  for (const std::string& one : what.forms) out += fmt::format("form {}\n", one);
  for (const plans::part& one : what.parts) {
    out += fmt::format("\n{}: {}; {}\n", one.device, plans::section_text(one), one.why);
    out += ops_text(one);
  }
  return out;
}

// ---- as JSON -----------------------------------------------------------------------------------

json row_json(const plans::row& of) {
  json out = {{"op", of.op}, {"n_ops", of.n_ops}, {"weight_bytes", of.weight_bytes}};
  if (of.layers) out["layers"] = {{"first", of.layers->first}, {"last", of.layers->last}};
  if (of.n_covered != 0) out["covers"] = of.n_covered;
  if (!of.formats.empty()) out["formats"] = of.formats;
  if (!of.level.empty()) out["level"] = of.level;
  if (!of.token.empty()) out["kernels"] = of.token;
  if (!of.prompt.empty()) out["prompt_kernels"] = of.prompt;
  if (!of.why.empty()) out["why"] = of.why;
  return out;
}

json plan_json(const plans::plan& what) {
  json out = {{"model",
               {{"name", what.model.name},
                {"architecture", what.model.architecture},
                {"layers", what.model.n_layers},
                {"parameters", what.model.n_parameters},
                {"fingerprint", what.model.fingerprint}}},
              {"parts", json::array()}};
  if (!what.forms.empty()) out["forms"] = what.forms;
  for (const plans::part& of : what.parts) {
    json one = {{"device", of.device},
                {"backend", of.backend},
                {"embedding", of.embedding},
                {"head", of.head},
                {"layers", {{"first", of.first_layer}, {"count", of.n_layers}}},
                {"ops", json::array()}};
    if (!of.why.empty()) one["why"] = of.why;
    for (const plans::row& r : of.rows) one["ops"].push_back(row_json(r));
    out["parts"].push_back(std::move(one));
  }
  return out;
}

result<void> save_plan(const std::string& target, const plans::plan& what) {
  const auto rejected = [&](const files::problem& problem) {
    return fail(exit_code::failure, fmt::format("cannot write {}: {}", target, problem.text));
  };
  auto file = files::new_file::create(target);
  if (!file) return rejected(file.error());
  if (auto ok = file->write(plans::write_plan(what)); !ok) return rejected(ok.error());
  if (auto ok = file->finish(); !ok) return rejected(ok.error());
  return {};
}

}  // namespace

result<int> plan_command(const invocation& in) {
  const model_and_rest words = split_positionals(in);
  if (!words.rest.empty())
    return fail(exit_code::usage,
                fmt::format("plan takes one model, and '{}' is another word", words.rest.front()));
  const std::string target = in.set.text("save");
  if (in.set.flagged("save") && target.empty())
    return fail(exit_code::usage, "--save expects the name of a file");
  if (!target.empty())
    if (auto fine = check_is_no_model(target); !fine) return std::unexpected(fine.error());
  auto file = find_model(words.model, in.variables);
  if (!file) return std::unexpected(file.error());
  auto runtime = open_runtime(in);
  if (!runtime) return std::unexpected(runtime.error());
  auto model =
      open_model(in, runtime->get(), *file, static_cast<uint32_t>(in.set.integer("ctx-size")));
  if (!model) return std::unexpected(model.error());
  auto what = plan_of_model(in, model->get(), *file);
  if (!what) return std::unexpected(what.error());
  explain_parts(in, runtime->get(), *what);
  if (!target.empty())
    if (auto saved = save_plan(target, *what); !saved) return std::unexpected(saved.error());
  const auto shown = print(in.set.flag("json") ? json_line(plan_json(*what))
                                               : text::printable_lines(plan_text(*what)));
  if (!shown) return std::unexpected(shown.error());
  return exit_code::ok;
}

}  // namespace bitnet::host
