// bitnet eval: measures how well a model predicts a text or answers questions.
#include <fmt/format.h>

#include <filesystem>

#include "basic/json.hpp"
#include "commands/commands.hpp"
#include "commands/eval_commands.hpp"

namespace bitnet::host {
namespace {

struct eval_measure {
  std::string_view name;
  result<int> (*run)(const invocation& in, const std::string& wanted);
  std::string_view takes;  // options that not every measure has, separated by blanks
};
constexpr eval_measure measures[] = {
    {"ppl", eval_ppl, " file ctx-size chunks "},
    {"kld", eval_kld, " file ctx-size chunks save-logits compare "},
    {"choice", eval_choice, " file ctx-size "},
};

result<const eval_measure*> measure_in(const invocation& in) {
  if (in.positionals.empty()) return fail(exit_code::usage, "needs a measure: ppl, kld or choice");
  const std::string& word = in.positionals.front();
  for (const eval_measure& one : measures)
    if (one.name == word) return &one;
  return fail(exit_code::usage,
              fmt::format("has the measures ppl, kld and choice; found '{}'", word));
}

}  // namespace

result<int> eval_command(const invocation& in) {
  const auto which = measure_in(in);
  if (!which) return std::unexpected(which.error());
  for (const char* one : {"chunks", "save-logits", "compare"})
    if (in.set.flagged(one) &&
        (*which)->takes.find(fmt::format(" {} ", one)) == std::string_view::npos)
      return fail(exit_code::usage, fmt::format("{} takes no --{}", (*which)->name, one));
  if (in.set.integer("chunks") == 0)
    return fail(exit_code::usage, "--chunks expects at least 1, or -1 for all, found 0");
  std::vector<std::string> rest(in.positionals.begin() + 1, in.positionals.end());
  std::string model = in.set.text("model");
  if (!in.set.flagged("model") && !rest.empty()) {
    model = rest.front();
    rest.erase(rest.begin());
  }
  if (!rest.empty())
    return fail(exit_code::usage,
                fmt::format("unexpected '{}'; eval takes a measure and one model", rest.front()));
  return (*which)->run(in, model);
}

nlohmann::ordered_json eval_report(const char* measure, const std::string& file,
                                   bitnet_runtime* runtime, const bitnet_model* model) {
  const bitnet_model_info info = describe(model);
  nlohmann::ordered_json out = {{"measure", measure},
                                {"model_filename", std::filesystem::path(file).filename().string()},
                                {"model_type", info.name},
                                {"model_n_params", info.n_parameters}};
  if (const auto report = runtime_report(runtime)) out["device"] = member(*report, "device");
  out["version"] = bitnet_version();
  return out;
}

std::string eval_line(const nlohmann::ordered_json& content) {
  return content.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace bitnet::host
