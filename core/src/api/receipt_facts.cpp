#include "api/receipt_facts.hpp"

#include <fmt/core.h>

#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/kernels_json.hpp"
#include "api/parts_json.hpp"
#include "api/scheduler_objects.hpp"
#include "base/processor.hpp"
#include "compute/kv_types.hpp"
#include "gguf/types.hpp"
#include "json/reading.hpp"
#include "plugin/codes/text.hpp"
#include "plugin/manifest/manifest.hpp"
#include "receipt/derived.hpp"
#include "receipt/digest.hpp"
#include "receipt/randomness.hpp"

namespace bitnet::api {
namespace {

using json::value;

// Writes the shortest decimal: 0.8, not 0.800000011920929. Infinity, the bias that forbids a token,
// becomes null, since JSON has none.
value short_number(float x) {
  if (!std::isfinite(x)) return nullptr;
  return value::parse(fmt::format("{}", x), nullptr, false);
}

template <class T>
value parameter_value(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return short_number(x);
  else
    return x;
}

std::string time_text() {
  using namespace std::chrono;
  const auto now = floor<seconds>(system_clock::now());
  const auto day = floor<days>(now);
  const year_month_day date(day);
  const hh_mm_ss time(now - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count());
}

double ms(uint64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

// ---- the host ----------------------------------------------------------------------------------

value host_json(bitnet_runtime& runtime) {
  utsname system{};
  ::uname(&system);
  value out = {{"os", fmt::format("{} {}", system.sysname, system.release)},
               {"machine", system.machine}};
  if (const std::string cpu = processor_name(); !cpu.empty())
    out["cpu"] = plugin::printable(cpu, 200);
  out["threads"] = runtime.services.parallel_width();
  out["version"] = BITNET_VERSION;
#if defined(__clang__)
  out["compiler"] = "clang " __clang_version__;
#else
  out["compiler"] = "gcc " __VERSION__;
#endif
  out["build_type"] = BITNET_BUILD_TYPE;
  return out;
}

uint64_t peak_memory() {
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) != 0) return 0;
  return static_cast<uint64_t>(used.ru_maxrss) * 1024;
}

// ---- the selection -----------------------------------------------------------------------------

value selection_json(const select::report& from) {
  value out = {{"requested", from.requested},
               {"requested_by", from.requested_by},
               {"detected", from.detected},
               {"selected", from.selected.empty() ? "none" : from.selected}};
  if (!from.selected_device.empty()) out["device"] = from.selected_device;
  if (from.fell_back) out["fallback"] = true;
  if (std::ranges::any_of(from.backends, &select::backend_report::fake)) out["fake"] = true;
  out["rejected"] = value::array();
  for (const select::backend_report& b : from.backends)
    if (b.name != from.selected)
      out["rejected"].push_back({{"name", b.name}, {"code", b.code}, {"reason", b.reason}});
  return out;
}

// The members of every receipt in order, still empty where unknown.
value blank_facts(bitnet_runtime& runtime) {
  value out = {{"schema_version", "1.0.0"},
               {"receipt_id", receipt::random_digits(16)},
               {"timestamp", time_text()},
               {"status", "ok"},
               {"compute_path", "none"}};
  {
    const std::lock_guard lock(runtime.mutex);
    runtime.catch_up();
    out["backend"] = runtime.report.selected.empty() ? "none" : runtime.report.selected;
    out["backend_summary"] = runtime.report.line();
    out["selection"] = selection_json(runtime.report);
  }
  out["deterministic"] = false;
  out["tokens_generated"] = 0U;
  out["tokens_per_second"] = 0U;
  for (const char* list : {"kernels", "kernel_stats", "devices", "plugins", "gates"})
    out[list] = value::array();
  out["coverage"] = receipt::to_json(receipt::coverage());
  out["memory"] = {{"rss_peak_bytes", peak_memory()}};
  out["host"] = host_json(runtime);
  out["environment"] = {{"BITNET_VERSION", BITNET_VERSION}, {"OS", out["host"]["os"]}};
  out["commit_sha"] = nullptr;
  out["model_sha"] = nullptr;
  out["driver_version"] = nullptr;
  out["tokens_per_sec"] = 0U;
  out["gate_wall_time_ms"] = nullptr;
  return out;
}

// ---- what ran ----------------------------------------------------------------------------------

result<value> plugin_json(const engine::device_use& on, const receipt::remembered_sums& sums) {
  const plugin::trusted_file& file = *on.library;
  const auto& id = file.identity;
  const auto sum = sums.of({file.fd.get(), id.size_bytes,
                            fmt::format("{}:{}:{}:{}:{}", id.device, id.inode, id.size_bytes,
                                        id.modified_ns, id.changed_ns),
                            file.path});
  if (!sum) return std::unexpected(sum.error());
  value out = {{"name", on.backend}, {"version", on.version}};
  if (!on.build_id.empty()) out["build_id"] = on.build_id;
  out["path"] = file.path.string();
  out["bytes"] = id.size_bytes;
  out["sha256"] = *sum;
  return out;
}

value device_json(const engine::device_use& on, uint64_t place, uint64_t plugin) {
  value out = {{"place", place},      {"backend", on.backend},
               {"device", on.device}, {"class", plugin::class_name(on.about.device_class)},
               {"fake", false},       {"plugin", plugin}};
  const auto put = [&](const char* name, std::string text) {
    if (!text.empty()) out[name] = std::move(text);
  };
  put("name", plugin::printable_array(on.about.name));
  put("uuid", plugin::printable_array(on.about.uuid));
  put("pci_address", plugin::printable_array(on.about.pci_address));
  put("arch", plugin::printable_array(on.about.arch));
  put("driver_version", plugin::printable_array(on.about.driver_version));
  return out;
}

// Adds devices, plugins, counters and derived facts. A loaded copy of a backend is one plugin,
// however many devices it has.
result<void> add_what_ran(value& out, const std::vector<engine::device_use>& ran,
                          const receipt::remembered_sums& sums) {
  std::vector<const plugin::trusted_file*> copies;
  for (uint64_t place = 0; place < ran.size(); ++place) {
    const engine::device_use& on = ran[place];
    auto at = std::ranges::find(copies, on.library.get());
    if (at == copies.end()) {
      auto plugin = plugin_json(on, sums);
      if (!plugin) return std::unexpected(std::move(plugin.error()));
      out["plugins"].push_back(*std::move(plugin));
      at = copies.insert(at, on.library.get());
    }
    out["devices"].push_back(device_json(on, place, static_cast<uint64_t>(at - copies.begin())));
    for (value& row : kernels_json({on})) {
      row["place"] = place;
      out["kernel_stats"].push_back(std::move(row));
    }
  }
  const std::string selected = receipt::text_in(out["selection"], "device");
  out["kernels"] = receipt::kernel_ids(out["kernel_stats"]);
  out["coverage"] = receipt::to_json(receipt::coverage_of(out["kernel_stats"], selected));
  out["compute_path"] = receipt::compute_path(out["kernel_stats"], out["devices"]);
  for (const value& device : out["devices"])
    if (receipt::text_in(device, "device") == selected)
      out["driver_version"] = json::member(device, "driver_version");
  return {};
}

// ---- the model ---------------------------------------------------------------------------------

result<value> model_json(const model::model& m, const receipt::remembered_sums& sums) {
  value files = value::array();
  for (const model::model::source_file& file : m.files()) {
    const auto sum = sums.of({file.descriptor, file.bytes, file.identity, file.path});
    if (!sum) return std::unexpected(sum.error());
    files.push_back(
        {{"name", file.path.filename().string()}, {"bytes", file.bytes}, {"sha256", *sum}});
  }
  if (auto ok = m.check_file(); !ok) return std::unexpected(std::move(ok.error()));
  const model::hyperparameters& shape = m.shape();
  std::vector<std::string> types;
  uint64_t parameters = 0;
  uint64_t bytes = 0;
  for (const model::weight& w : m.weights()) {
    parameters += static_cast<uint64_t>(w.ne[0]) * static_cast<uint64_t>(w.ne[1]);
    bytes += w.data_bytes;
    if (std::string type = gguf::type_name(w.source_type);
        std::ranges::find(types, type) == types.end())
      types.push_back(std::move(type));
  }
  value out = {{"name", shape.name.empty() && !files.empty() ? files[0]["name"].get<std::string>()
                                                             : shape.name},
               {"path", m.files().empty() ? "" : m.files().front().path.string()},
               {"digest", receipt::model_sum(files)}};
  out["files"] = std::move(files);
  out["arch"] = shape.architecture;
  out["quant"] = types;
  out["parameters"] = parameters;
  out["context"] = shape.n_context;
  out["layers"] = shape.n_layers;
  out["vocabulary"] = m.tokens().size();
  out["weight_bytes"] = bytes;
  return out;
}

// The signer against whose signature the model was verified.
value signature_json(const signature::verified& of) {
  value out = {{"key", of.by.key}, {"digest", of.digest}};
  if (!of.by.certificate.empty()) out["certificate"] = of.by.certificate;
  if (!of.by.subject.empty()) out["subject"] = of.by.subject;
  return out;
}

// Computed once per model: each answer of a scheduler may have a receipt, and a tokenizer has
// megabytes.
void find_sums(const bitnet_model& of) {
  std::call_once(of.sums_once, [&] {
    receipt::sha256 tokenizer;
    of.model.feed_tokenizer([&](std::span<const std::byte> piece) { tokenizer.add(piece); });
    of.tokenizer_sum = tokenizer.hex();
    const std::string_view text = of.model.tokens().chat_template();
    if (text.empty()) return;
    receipt::sha256 form;
    form.add(text);
    of.template_sum = form.hex();
  });
}

void add_sums(value& out, const bitnet_model& of) {
  find_sums(of);
  out["tokenizer"] = {{"kind", of.model.tokens().kind()}, {"sha256", of.tokenizer_sum}};
  out["template"] = value::object();
  if (!of.template_sum.empty()) out["template"]["sha256"] = of.template_sum;
}

// ---- the answer --------------------------------------------------------------------------------

value sampling_json(const answer_record& of) {
  const sampling::parameters& s = of.sampling;
  value out;
#define BITNET_RECEIPT_PARAMETER(type, name, ...) out[#name] = parameter_value<type>(s.name);
  BITNET_SAMPLING_PARAMETERS(BITNET_RECEIPT_PARAMETER)
#undef BITNET_RECEIPT_PARAMETER
  out["ignore_eos"] = of.ignore_eos;
  out["logit_bias"] = value::array();
  for (const auto& [token, bias] : s.logit_bias)
    out["logit_bias"].push_back({{"token", token}, {"bias", short_number(bias)}});
  out["dry_breakers"] = of.dry_breakers;
  return out;
}

value constraints_json(const answer_record& of) {
  value out = {{"stop_strings", of.n_stop_strings},
               {"stop_tokens", of.stop_tokens},
               {"reasoning_budget", of.reasoning_budget}};
  if (!of.grammar_sum.empty()) out["grammar_sha256"] = of.grammar_sum;
  if (!of.schema_sum.empty()) out["json_schema_sha256"] = of.schema_sum;
  return out;
}

const char* stop_word(uint32_t reason) {
  constexpr const char* words[] = {"none",  "length",  "eos",       "string",
                                   "token", "context", "cancelled", "grammar"};
  return reason < std::size(words) ? words[reason] : words[0];
}

value tokens_json(const char* what, const std::string& salt, const std::vector<int32_t>& ids,
                  bool with_tokens) {
  value out = {{"tokens", ids.size()}, {"sha256", receipt::token_sum(salt, what, ids)}};
  if (with_tokens) out["ids"] = ids;
  return out;
}

void add_answer(value& out, const answer_record& of, bool with_tokens) {
  out["tokens_requested"] = of.max_tokens;
  out["tokens_generated"] = of.output.size();
  out["tokens_per_second"] = receipt::tokens_per_second(of.output.size(), ms(of.generate_ns));
  out["tokens_per_sec"] = out["tokens_per_second"];
  out["sampling"] = sampling_json(of);
  out["constraints"] = constraints_json(of);
  out["seed"] = of.sampling.seed;
  out["stop"] = stop_word(of.stop_reason);
  const std::string salt = receipt::random_digits(32);
  out["salt"] = salt;
  out["prompt"] = tokens_json("prompt", salt, of.prompt, with_tokens);
  out["output"] = tokens_json("output", salt, of.output, with_tokens);
  out["prompt_sha256"] = out["prompt"]["sha256"];
  out["output_token_sha256"] = out["output"]["sha256"];
  out["timings"] = {{"prompt_tokens", of.n_evaluated},
                    {"prompt_ms", ms(of.prompt_ns)},
                    {"generated_tokens", of.output.size()},
                    {"generate_ms", ms(of.generate_ns)},
                    {"wall_ms", ms(of.wall_ns)}};
}

// Adds the options of the session or scheduler.
void add_wishes(value& out, const bitnet_session_options& asked) {
  out["deterministic"] = asked.deterministic != 0;
  out["precision"] = asked.precision == BITNET_PRODUCTS_F16    ? "f16"
                     : asked.precision == BITNET_PRODUCTS_BF16 ? "bf16"
                                                               : "f32";
}

// Keys and values: their types, bytes and window.
struct kv_facts {
  uint32_t dtype_k, dtype_v;
  uint64_t bytes;
  uint32_t window, window_keep;
};

void add_kv(value& out, const kv_facts& kv, const bitnet_session_options& asked) {
  out["kv"] = {{"dtype_k", compute::find_kv_type(kv.dtype_k)->name},
               {"dtype_v", compute::find_kv_type(kv.dtype_v)->name},
               {"bytes", kv.bytes},
               {"window", kv.window},
               {"keep", kv.window_keep},
               {"low_memory", asked.low_memory != 0}};
  out["memory"]["kv_bytes"] = kv.bytes;
}

void add_session(value& out, bitnet_session& session, const sequence::session::usage& usage) {
  out["batch"] = {{"n_context", session.session->capacity()},
                  {"n_batch", session.session->batch()},
                  {"sequences", 1U},
                  {"steps", usage.steps},
                  {"tokens", usage.tokens}};
  add_wishes(out, session.asked);
  add_kv(out, {usage.dtype_k, usage.dtype_v, usage.kv_bytes, usage.window, usage.window_keep},
         session.asked);
  out["parts"] = parts_json(session.session->owner());
  if (session.session->n_moves() != 0) out["moves"] = moves_json(session.session->moves());
}

// Requests share steps: lists the request's own part beside the totals of its steps.
value batch_json(const serving::async_engine::facts& on, const serving::request_record::counts& n) {
  const double mean =
      n.steps == 0 ? 0 : static_cast<double>(n.sequences) / static_cast<double>(n.steps);
  return {{"n_context", on.limits.n_context},
          {"n_batch", on.limits.max_tokens},
          {"sequences", n.most_sequences},
          {"steps", n.steps},
          {"tokens", n.own_tokens},
          {"step_tokens", n.step_tokens},
          {"mean_sequences", mean}};
}

void add_scheduler(value& out, const serving::async_engine& engine, const request_notes& notes,
                   const serving::request_record::counts& counted) {
  const serving::async_engine::facts on = engine.describe();
  out["batch"] = batch_json(on, counted);
  add_wishes(out, notes.sequences);
  add_kv(out,
         {on.dtype_k, on.dtype_v, on.block_bytes * on.limits.n_blocks, on.limits.window,
          on.limits.window_keep},
         notes.sequences);
  out["parts"] = parts_json(*engine.headed_for());
  for (const serving::async_engine::move& m : engine.last_moves())
    out["moves"].push_back(
        {{"from", m.from}, {"to", m.to}, {"why", m.why}, {"method", "recompute"}});
}

// Facts of every answer: model, kernels, tokens and times.
result<value> answer_facts(bitnet_model& of, const answer_record& answer,
                           const std::vector<engine::device_use>& ran, bool with_tokens) {
  bitnet_runtime& runtime = *of.runtime;
  const bool cancelled =
      answer.status == BITNET_CANCELLED || answer.stop_reason == BITNET_STOP_CANCELLED;
  value out = answer.status == BITNET_OK || cancelled
                  ? blank_facts(runtime)
                  : failed_facts(runtime, {answer.status, answer.message});
  if (cancelled) out["status"] = "cancelled";
  if (auto ok = add_what_ran(out, ran, runtime.sums); !ok)
    return std::unexpected(std::move(ok.error()));
  auto model = model_json(of.model, runtime.sums);
  if (!model) return model;
  out["model"] = *std::move(model);
  if (of.signature) out["model"]["signature"] = signature_json(*of.signature);
  const value& files = out["model"]["files"];
  if (!files.empty()) out["model_sha"] = files[0]["sha256"];
  add_sums(out, of);
  add_answer(out, answer, with_tokens);
  return out;
}

// The record of one choice. Prompt tokens found in the cache cost nothing and are not counted.
answer_record answer_of(const request_notes& notes, serving::request_record::choice&& one) {
  answer_record out = notes.asked;
  out.sampling.seed += one.number;
  out.output = std::move(one.tokens);
  out.stop_reason = one.stop_reason;
  out.status = one.why.status;
  out.message = std::move(one.why.message);
  const uint64_t unknown = one.used.prompt_tokens - one.used.cached_tokens;
  out.n_evaluated = std::min(unknown, one.counted.own_tokens);
  out.prompt_ns = one.used.prompt_ns;
  out.generate_ns = one.used.generate_ns;
  out.wall_ns = one.used.queue_ns + one.used.prompt_ns + one.used.generate_ns;
  return out;
}

}  // namespace

json::value failed_facts(bitnet_runtime& runtime, const failure& why) {
  value out = blank_facts(runtime);
  out["status"] = "failed";
  out["failure"] = {{"status", why.status}, {"message", plugin::printable(why.message, 2000)}};
  return out;
}

result<json::value> session_facts(bitnet_session& session, bool with_tokens) {
  const auto usage = session.session->report();
  if (!usage) return std::unexpected(usage.error());
  if (!session.answer.any)
    return fail(BITNET_INVALID_ARGUMENT,
                "the session has generated nothing: a receipt is of an answer");
  auto out = answer_facts(*session.model, session.answer, usage->ran, with_tokens);
  if (out) add_session(*out, session, *usage);
  return out;
}

result<json::value> request_facts(bitnet_request& request, uint32_t choice, bool with_tokens) {
  if (!request.notes)
    return fail(BITNET_INVALID_ARGUMENT,
                "the request was submitted without `receipt`: nothing was noted for one");
  const request_notes& notes = *request.notes;
  if (choice >= notes.ended.size())
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("choice {}: the request has {}", choice, notes.ended.size()));
  const auto engine = request.engine.lock();
  if (!engine)
    return fail(BITNET_INVALID_ARGUMENT,
                "its scheduler is closed: ask for receipts before bitnet_scheduler_close");
  auto one = notes.ended[choice] ? notes.computed->ended(*notes.ended[choice]) : std::nullopt;
  if (!one)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("choice {} has not ended: take its events until its end", choice));
  const serving::request_record::counts counted = one->counted;
  const uint64_t queue_ns = one->used.queue_ns;
  auto out =
      answer_facts(*notes.model, answer_of(notes, *std::move(one)), counted.ran, with_tokens);
  if (!out) return out;
  add_scheduler(*out, *engine, notes, counted);
  (*out)["timings"]["queue_ms"] = ms(queue_ns);
  return out;
}

}  // namespace bitnet::api
