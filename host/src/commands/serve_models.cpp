#include "commands/serve_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "basic/json.hpp"
#include "commands/commands.hpp"
#include "library/kv_types.hpp"
#include "model_files/find_model.hpp"
#include "model_files/fingerprint.hpp"
#include "models/model_folder.hpp"
#include "serve/served_model.hpp"
#include "session/shadow.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;
using load_clock = std::chrono::steady_clock;

// The library's defaults.
constexpr uint32_t usual_context = 4096;
constexpr uint32_t usual_parallel = 32;

uint32_t context_of(const settings& set) {
  return static_cast<uint32_t>(set.integer("ctx-size"));
}

// ---- which models ------------------------------------------------------------------------------

// The models that the user named, else the demo model.
std::vector<std::string> named_models(const invocation& in) {
  if (in.set.flagged("model")) return in.set.each_text("model");
  if (!in.positionals.empty()) return in.positionals;
  if (in.set.text("model").empty() && !in.set.text("models-dir").empty()) return {};
  return {in.set.text("model")};
}

result<void> check_only_one(const invocation& in) {
  for (const char* const name : {"alias", "model-draft", "model-signature", "plan", "shadow"})
    if (!in.set.text(name).empty())
      return fail(
          exit_code::usage,
          fmt::format("--{} is for a server of one model; leave it out, or give one model", name));
  return {};
}

result<void> check_names(const std::vector<model_source>& models) {
  for (auto one = models.begin(); one != models.end(); ++one)
    if (const auto other =
            std::find_if(one + 1, models.end(), [&](const auto& x) { return x.name == one->name; });
        other != models.end())
      return fail(exit_code::usage, fmt::format("two models are named '{}': {} and {}; rename one",
                                                one->name, one->file, other->file));
  return {};
}

std::string name_of(const invocation& in, const std::string& file) {
  const std::string& alias = in.set.text("alias");
  return alias.empty() ? std::filesystem::path(file).stem().string() : alias;
}

// ---- what one needs ----------------------------------------------------------------------------

uint64_t count_in(const json& of, const char* key) {
  const auto found = of.find(key);
  return found != of.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

uint64_t bytes_of_type(const std::string& name, uint64_t values) {
  const kv_type& type = kv_type_named(name);
  return values * type.bytes / type.elements;
}

// Bytes of keys and values per token, as if each layer had some; too much for recurrent layers.
uint64_t kv_bytes_of_token(const settings& set, const json& model) {
  const uint64_t values =
      count_in(model, "layers") * count_in(model, "kv_heads") * count_in(model, "head_dim");
  return bytes_of_type(set.text("cache-type-k"), values) +
         bytes_of_type(set.text("cache-type-v"), values);
}

result<model_need> need_of(const settings& set, uint32_t n_parallel, const std::string& file) {
  bitnet_model_options reading = model_options(set);
  reading.signature = reading.signature_key = reading.signature_ca = nullptr;  // checked at load
  const auto read = inspected_model(file, reading);
  if (!read) return std::unexpected(read.error());
  const json model = read->value("model", json::object());
  const json host = read->value("host", json::object());
  const uint64_t trained = count_in(model, "context");
  const uint64_t wanted = context_of(set) != 0 ? context_of(set) : usual_context;
  const uint64_t context = trained == 0 ? wanted : std::min(wanted, trained);
  const uint64_t states = count_in(model.value("recurrent", json::object()), "state_bytes");
  const uint64_t one = context * kv_bytes_of_token(set, model) + 2 * states;
  return model_need{.weights = count_in(model, "weight_bytes"),
                    .least_kv = one,
                    .most_kv = one * (n_parallel == 0 ? usual_parallel : n_parallel),
                    .free = count_in(host, "memory_free_bytes")};
}

// ---- loading one -------------------------------------------------------------------------------

// Computes a token, so that a device that hangs is found before the server is ready.
result<void> check_answers(const invocation& in, bitnet_model* model) {
  constexpr uint32_t context = 64;
  constexpr bitnet_token any = 0;
  const auto session = open_session(in, model, context, false);
  if (!session) return std::unexpected(session.error());
  library_error err;
  const bitnet_status status = bitnet_session_eval(session->get(), &any, 1, 0, nullptr, 0, &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return {};
}

result<model_facts> facts_of(const invocation& in, bitnet_runtime* runtime,
                             const request_defaults& requests, const model_source& source) {
  using std::chrono::system_clock;
  const auto began = load_clock::now();
  model_facts out;
  auto model = open_model(in, runtime, source.file, context_of(in.set));
  if (!model) return std::unexpected(model.error());
  out.model = *std::move(model);
  if (auto ok = check_answers(in, out.model.get()); !ok) return std::unexpected(ok.error());
  auto draft = open_draft(in, runtime);
  if (!draft) return std::unexpected(draft.error());
  out.draft = *std::move(draft);
  out.info = describe(out.model.get());
  out.name = source.name;
  out.fingerprint = fingerprint_of(source.file);
  out.created =
      std::chrono::duration_cast<std::chrono::seconds>(system_clock::now().time_since_epoch())
          .count();
  out.load_seconds = std::chrono::duration<double>(load_clock::now() - began).count();
  out.defaults = requests.wish;
  out.defaults.speculation.draft = out.draft.get();
  auto shadow = open_shadow(in, out.model.get(), context_of(in.set));
  if (!shadow) return std::unexpected(shadow.error());
  out.shadow = *std::move(shadow);
  out.open_scheduler = [&in, n_parallel = requests.n_parallel](bitnet_model* of, bool embeds,
                                                               uint64_t kv_bytes) {
    return open_scheduler(in, of, context_of(in.set), n_parallel, embeds, kv_bytes);
  };
  return out;
}

}  // namespace

result<model_table_options> given_models(const invocation& in) {
  model_table_options out;
  if (auto wish = given_shadow(in.set); !wish) return std::unexpected(wish.error());
  if (in.set.flagged("model") && !in.positionals.empty())
    return fail(exit_code::usage,
                fmt::format("-m names the model, and so does '{}'; give one", in.positionals[0]));
  for (const std::string& wanted : named_models(in)) {
    auto file = find_model(wanted, in.variables);
    if (!file) return std::unexpected(file.error());
    out.models.push_back({name_of(in, *file), *std::move(file)});
  }
  out.folder = in.set.text("models-dir");
  if (!out.folder.empty())
    if (const auto readable = models_in(out.folder); !readable)
      return std::unexpected(readable.error());
  out.any_name = out.models.size() == 1 && out.folder.empty();
  if (!out.any_name)
    if (auto ok = check_only_one(in); !ok) return std::unexpected(ok.error());
  if (auto ok = check_names(out.models); !ok) return std::unexpected(ok.error());
  out.most_loaded = static_cast<std::size_t>(in.set.integer("models-max"));
  out.memory = static_cast<uint64_t>(in.set.integer("models-memory")) << 20;
  out.kv_bytes = static_cast<uint64_t>(in.set.integer("kv-budget")) << 20;
  out.loads_on_demand = in.set.flag("models-autoload");
  return out;
}

model_loader loader_of(const invocation& in, bitnet_runtime* runtime,
                       const request_defaults& requests) {
  return {.measure = [&in, n = requests.n_parallel](
                         const model_source& source) { return need_of(in.set, n, source.file); },
          .load = [&in, runtime, &requests](const model_source& source, uint64_t kv_bytes)
              -> result<std::unique_ptr<loaded_model>> {
            auto facts = facts_of(in, runtime, requests, source);
            if (!facts) return std::unexpected(facts.error());
            facts->kv_bytes = kv_bytes;
            return served_model::open(*std::move(facts));
          },
          .on_note = [&in](const std::string& text) { in.out.note(text); }};
}

}  // namespace bitnet::host
