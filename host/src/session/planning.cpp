#include "session/planning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "basic/json.hpp"
#include "basic/text_input.hpp"
#include "model_files/fingerprint.hpp"
#include "plan/comparing.hpp"
#include "plan/file.hpp"
#include "plan/forms.hpp"
#include "plan/making.hpp"
#include "process/interrupt.hpp"
#include "text/ascii.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;

constexpr std::size_t most_reported = 8;  // differences

// Runs a greedy step of `n` tokens. Any ids do, since shapes choose the kernels.
result<void> run_step(bitnet_session* session, std::size_t n) {
  const token_list ids(n, 0);
  bitnet_sampling greedy{};
  bitnet_sampling_defaults(&greedy, sizeof greedy);
  greedy.temperature = 0;
  bitnet_generation how{};
  bitnet_generation_defaults(&how, sizeof how);
  how.sampling = &greedy;
  how.max_tokens = 1;
  bitnet_generation_result done{};
  done.struct_size = sizeof done;
  library_error err;
  bitnet_status status = bitnet_session_truncate(session, 0, &err);
  if (status == BITNET_OK)
    status = bitnet_generate(session, ids.data(), ids.size(), &how, &done, &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return {};
}

uint64_t calls_of(const json& kernel) {
  const auto found = kernel.find("calls");
  return found != kernel.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

// The kernels in `now` with more calls than in `before`.
json kernels_since(const json& before, json now) {
  for (json& one : now) {
    const auto was = std::ranges::find_if(before, [&](const json& b) {
      return member(b, "id") == member(one, "id") && member(b, "op") == member(one, "op") &&
             member(b, "device") == member(one, "device");
    });
    if (was != before.end()) one["calls"] = calls_of(one) - std::min(calls_of(one), calls_of(*was));
  }
  return now;
}

result<json> program_of(bitnet_session* session) {
  library_error err;
  std::string text;
  const bitnet_status status = fetch(
      [&](char* out, uint64_t capacity, uint64_t* needed) {
        return bitnet_session_program(session, out, capacity, needed, &err);
      },
      text);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return parse_json(text);
}

plans::identity identity_of(const bitnet_model* model, const std::string& file,
                            const std::vector<plans::part>& parts) {
  const bitnet_model_info info = describe(model);
  plans::identity out{.name = info.name, .architecture = info.architecture};
  for (const plans::part& one : parts) out.n_layers += one.n_layers;
  out.n_parameters = info.n_parameters;
  out.fingerprint = fingerprint_of(file);
  return out;
}

bool sets(const std::vector<std::string>& forms, const plans::form& one) {
  const std::string begin = fmt::format("{}.{}=", one.backend, one.setting);
  return std::ranges::any_of(forms, [&](const std::string& f) { return f.starts_with(begin); });
}

// Backend settings that choose kernels: those of --plan, then those of the environment. The cpu's
// instruction set follows from the kernels, so it is left out.
std::vector<std::string> forms_now(const invocation& in, const std::vector<plans::part>& parts) {
  std::vector<std::string> out = in.plan == nullptr ? std::vector<std::string>() : in.plan->forms;
  for (const plans::form& one : plans::all_forms()) {
    const bool runs = std::ranges::find(parts, one.backend, &plans::part::backend) != parts.end();
    if (one.backend == "cpu" || !runs || sets(out, one)) continue;
    std::string name = fmt::format("BITNET_{}_{}", one.backend, one.setting);
    std::ranges::transform(name, name.begin(), upper_ascii);
    if (const auto value = in.variables.get(name))
      out.push_back(fmt::format("{}.{}={}", one.backend, one.setting, *value));
  }
  return out;
}

}  // namespace

result<std::optional<plans::plan>> given_plan(const settings& set) {
  if (!set.has("plan") || set.text("plan").empty()) return std::nullopt;
  for (const char* const name : {"device", "n-gpu-layers", "split-mode", "tensor-split", "matrix"})
    if (set.has(name) && set.given(name) && set.overrides(name, "plan"))
      return fail(exit_code::usage,
                  fmt::format("the plan of {} says which device has which layers, and so does {}; "
                              "leave one of them out",
                              set.origin("plan"), set.origin(name)));
  const std::string& file = set.text("plan");
  const auto text = read_text_file(file, plans::longest_plan);
  if (!text) return fail(exit_code::usage, fmt::format("--plan: {}", text.error().message));
  auto read = plans::read_plan(*text, file);
  if (!read) return std::unexpected(read.error());
  return *std::move(read);
}

result<plans::plan> plan_of_model(const invocation& in, bitnet_model* model,
                                  const std::string& file) {
  constexpr uint32_t enough = 2 * plan_prompt;
  const uint32_t trained = describe(model).n_context;
  const uint32_t context = trained == 0 ? enough : std::min(enough, trained);
  auto session = open_session(in, model, context, false);
  if (!session) return std::unexpected(session.error());
  const interrupt::scope until_counted(session->get());
  const auto program = program_of(session->get());
  if (!program) return std::unexpected(program.error());
  json counted[2];
  // The generated token needs a place in the context, too.
  const uint32_t prompt = std::min({plan_prompt, step_size(in.set), std::max(context, 2U) - 1});
  const uint32_t sizes[] = {1, prompt};
  for (std::size_t i = 0; i < 2; ++i) {
    if (auto ok = run_step(session->get(), sizes[i]); !ok) return std::unexpected(ok.error());
    const auto report = session_report(session->get());
    if (!report) return std::unexpected(report.error());
    counted[i] = list_of(*report, "kernels");
  }
  plans::plan out;
  out.parts = plans::parts_of(*program, counted[0], kernels_since(counted[0], counted[1]));
  out.model = identity_of(model, file, out.parts);
  out.forms = forms_now(in, out.parts);
  return out;
}

result<void> check_plan(const invocation& in, bitnet_model* model, const std::string& file) {
  if (in.plan == nullptr) return {};
  const auto had = plan_of_model(in, model, file);
  if (!had) return std::unexpected(had.error());
  const auto places = plans::differences(*in.plan, *had);
  if (places.empty()) return {};
  std::string message = "the plan " + in.set.text("plan") + " cannot be kept to";
  for (std::size_t i = 0; i < std::min(places.size(), most_reported); ++i)
    message += (i == 0 ? ": " : "; ") + places[i];
  if (places.size() > most_reported)
    message += fmt::format("; and {} more places", places.size() - most_reported);
  return fail(exit_code::not_kept, std::move(message));
}

}  // namespace bitnet::host
