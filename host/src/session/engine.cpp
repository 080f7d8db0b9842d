#include "session/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "basic/json.hpp"
#include "bitnet/abi/host.h"
#include "library/kv_types.hpp"
#include "library/placing.hpp"
#include "model_files/find_model.hpp"
#include "plan/pins.hpp"
#include "process/interrupt.hpp"
#include "session/planning.hpp"
#include "session/shadow.hpp"
#include "session/splitting.hpp"
#include "terminal/progress.hpp"

namespace bitnet::host {
namespace {

void on_log(void* user, uint32_t level, const char* text) {
  const std::string message = text;
  const console& out = *static_cast<const console*>(user);
  switch (level) {
    case BITNET_LOG_ERROR:
      out.error(message);
      break;
    case BITNET_LOG_WARN:
      out.warning(message);
      break;
    case BITNET_LOG_INFO:
      out.detail(message);
      break;
    default:
      out.debug(message);
      break;
  }
}

uint32_t level_for(const console& out) {
  if (out.wants(log_level::debug)) return BITNET_LOG_DEBUG;
  if (out.wants(log_level::detail)) return BITNET_LOG_INFO;
  return out.wants(log_level::warning) ? BITNET_LOG_WARN : BITNET_LOG_ERROR;
}

int32_t on_opening(void* user, uint64_t done, uint64_t total) {
  static_cast<progress_bar*>(user)->update(done, total);
  return interrupt::requested() ? 1 : 0;
}

// "none" is llama.cpp's word for the CPU.
std::string device_request(const settings& set) {
  const std::string& wanted = set.text("device");
  return wanted == "none" ? "cpu" : wanted;
}

// Commands without these options do not use the output head.
bool uses_head(const settings& set) {
  return set.has("head");
}

// Whether the output head must have no second form.
bool only_full_head(const settings& set) {
  return set.flag("low-memory") || set.text("head") == "full";
}

// The folder for packed weights; "": none.
std::string pack_cache(const invocation& in) {
  if (!in.set.flag("pack-cache") || only_full_head(in.set)) return "";
  const auto home = in.variables.cache_home();
  return home ? (*home / "bitnet/packed").string() : "";
}

uint32_t pooling_named(std::string_view name) {
  return name == "mean"   ? BITNET_POOLING_MEAN
         : name == "last" ? BITNET_POOLING_LAST
         : name == "cls"  ? BITNET_POOLING_CLS
                          : BITNET_POOLING_MODEL;
}

uint32_t products_in(std::string_view name) {
  return name == "f16"    ? BITNET_PRODUCTS_F16
         : name == "bf16" ? BITNET_PRODUCTS_BF16
                          : BITNET_PRODUCTS_F32;
}

// The library's default context, if --ctx-size is absent and the model was trained for as much.
constexpr uint32_t default_context = 4096;

bool shifts_context(const settings& set) {
  return set.has("context-shift") && set.flag("context-shift");
}

}  // namespace

bitnet_session_options session_options(const settings& set, uint32_t n_context, bool profile,
                                       bool embeddings) {
  bitnet_session_options options{};
  bitnet_session_defaults(&options, sizeof options);
  options.n_context = n_context;
  options.n_batch = step_size(set);
  options.kv_k = kv_type_named(set.text("cache-type-k")).id;
  options.kv_v = kv_type_named(set.text("cache-type-v")).id;
  options.window = static_cast<uint32_t>(set.integer("sliding-window"));
  options.window_keep = static_cast<uint32_t>(set.integer("keep"));
  if (options.window == 0 && shifts_context(set)) {
    options.window = n_context != 0 ? n_context : default_context;
    options.n_context = 0;  // the model's trained length
  }
  options.profile = profile ? 1 : 0;
  if (!embeddings) {
    options.deterministic = set.flag("deterministic") ? 1 : 0;
    options.low_memory = only_full_head(set) ? 1 : 0;
    options.precision = products_in(set.text("precision"));
  } else {
    options.embeddings = 1;
    options.pooling = pooling_named(set.text("pooling"));
  }
  return options;
}

namespace {

// The division of layers among devices, from options or a plan.
struct cut {
  layer_count layers;
  std::vector<float> shares;
  bool whole_only = false;
};
result<cut> cut_of(const invocation& in) {
  if (in.plan != nullptr) {
    const auto pins = plans::pins_of(*in.plan);
    if (!pins) return std::unexpected(pins.error());
    if (pins->all_layers) return cut{{BITNET_GPU_LAYERS_ALL, 0}, pins->shares};
    return cut{{BITNET_GPU_LAYERS_COUNT, pins->n_layers}, pins->shares};
  }
  const auto layers = read_gpu_layers(in.set.text("n-gpu-layers"));
  if (!layers) return std::unexpected(layers.error());
  auto shares = read_shares(in.set.text("tensor-split"));
  if (!shares) return std::unexpected(shares.error());
  return cut{*layers, *std::move(shares), in.set.text("split-mode") == "none"};
}

// A failure while loading; with --plan it means that the plan cannot be kept.
std::unexpected<failure> not_loaded(const invocation& in, failure why) {
  if (in.plan != nullptr &&
      (why.exit_code == exit_code::unavailable || why.exit_code == exit_code::out_of_memory))
    return fail(exit_code::not_kept,
                fmt::format("the plan {} cannot be kept to: {}", in.set.text("plan"), why.message));
  return std::unexpected(std::move(why));
}

template <class Call>
result<nlohmann::json> fetch_json(Call call) {
  library_error err;
  std::string text;
  const bitnet_status status =
      fetch([&](char* out, uint64_t capacity,
                uint64_t* needed) { return call(out, capacity, needed, &err); },
            text);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return parse_json(text);
}

}  // namespace

result<runtime_handle> open_runtime(const invocation& in, bool fresh) {
  bitnet_runtime_options options{};
  bitnet_runtime_defaults(&options, sizeof options);
  const bool by_plan = in.plan != nullptr;
  const auto pins = by_plan ? plans::pins_of(*in.plan) : plans::pins{};
  if (!pins) return std::unexpected(pins.error());
  const std::string device = by_plan ? pins->backend : device_request(in.set);
  const std::string& origin = in.set.origin(by_plan ? "plan" : "device");
  std::vector<const char*> dirs;
  for (const std::string& one : in.set.list("backend-dir")) dirs.push_back(one.c_str());
  // A backend without a fast head uses the exact one; the kernels' ids show that.
  std::vector<const char*> params;
  if (uses_head(in.set) && in.set.text("head") == "fast") params.push_back("*.head=fast");
  if (in.set.text("hugepages") == "off") params.push_back("*.hugepages=off");
  if (in.set.has("low-memory") && in.set.flag("low-memory")) params.push_back("*.copies=off");
  for (const std::string& one : pins->params) params.push_back(one.c_str());
  options.backend_params = params.data();
  options.n_backend_params = static_cast<uint32_t>(params.size());
  options.n_threads = static_cast<uint32_t>(std::max<int64_t>(in.set.integer("threads"), 0));
  options.poll = static_cast<uint32_t>(in.set.integer("poll"));
  if (in.set.given("cpu-mask")) options.cpu_mask = in.set.text("cpu-mask").c_str();
  const std::string& strict_cpus = in.set.text("cpu-strict");
  options.cpu_strict = strict_cpus == "on" || strict_cpus == "1" ? 1 : 0;
  options.device = device.c_str();
  options.requested_by = origin.c_str();
  options.require_first = by_plan || in.set.flag("require-backend") ? 1 : 0;
  options.allow_fallback = in.set.flag("allow-fallback") ? 1 : 0;
  options.probe_wait_ms = static_cast<uint32_t>(in.set.integer("probe-wait"));
  if (in.set.given("probe-cache")) options.probe_cache = in.set.text("probe-cache").c_str();
  options.probe_fresh = fresh ? 1 : 0;
  options.manifest_dirs = dirs.data();
  options.n_manifest_dirs = static_cast<uint32_t>(dirs.size());
  const std::string& allowed = in.set.text("allow-backends");
  const std::string& keys = in.set.text("trusted-keys");
  options.allowed_backends = allowed.c_str();
  options.trusted_keys = keys.c_str();
  options.require_signature = in.set.flag("require-signature") ? 1 : 0;
  options.allow_fake = in.set.flag("allow-fake") ? 1 : 0;
  options.strict_mode = in.set.flag("strict-mode") ? 1 : 0;
  options.user_backends = in.set.flag("user-backends") ? 1 : 0;
  options.log_level = level_for(in.out);
  options.log = on_log;
  options.log_user = const_cast<console*>(&in.out);  // the callback only reads it
  if (in.trace != nullptr) {
    options.trace = timeline::timeline::on_event;
    options.trace_user = in.trace;
    options.trace_times = 1;
  }

  library_error err;
  bitnet_runtime* runtime = nullptr;
  const bitnet_status status = bitnet_runtime_open(&options, &runtime, &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return runtime_handle(runtime);
}

namespace {

void set_signature(const settings& set, bitnet_model_options& options) {
  options.signature = set.text("model-signature").c_str();
  options.signature_key = set.text("model-key").c_str();
  options.signature_ca = set.text("model-ca").c_str();
}

}  // namespace

bitnet_model_options model_options(const settings& set) {
  bitnet_model_options options{};
  bitnet_model_defaults(&options, sizeof options);
  const std::string& layout = set.text("i2s-layout");
  options.i2s_layout =
      layout == "qk256" ? BITNET_I2S_LAYOUT_QK256 : static_cast<uint32_t>(layout.front() - 'a');
  options.tl1_tiles =
      set.text("tl1-tiles") == "pretuned" ? BITNET_TL1_TILES_PRETUNED : BITNET_TL1_TILES_GENERATED;
  const std::string& activation = set.text("activation");
  options.activation = activation == "relu2"  ? BITNET_ACTIVATION_RELU2
                       : activation == "silu" ? BITNET_ACTIVATION_SILU
                                              : BITNET_ACTIVATION_AUTO;
  set_signature(set, options);
  return options;
}

void set_activations(const settings& set, bitnet_model_options& options) {
  const std::string& activations = set.text("activations");
  options.activations = activations == "row"        ? BITNET_ACTIVATIONS_ROW
                        : activations == "group32"  ? BITNET_ACTIVATIONS_GROUP_32
                        : activations == "group64"  ? BITNET_ACTIVATIONS_GROUP_64
                        : activations == "group128" ? BITNET_ACTIVATIONS_GROUP_128
                        : activations == "float"    ? BITNET_ACTIVATIONS_FLOAT
                                                    : BITNET_ACTIVATIONS_AUTO;
}

void set_kv_budget(const settings& set, bitnet_model_options& options) {
  options.kv_budget_bytes = static_cast<uint64_t>(set.integer("kv-budget")) << 20;
  const std::string& policy = set.text("kv-eviction");
  options.kv_eviction = policy == "fifo"  ? BITNET_EVICT_FIFO
                        : policy == "lfu" ? BITNET_EVICT_LFU
                                          : BITNET_EVICT_LRU;
}

namespace {

// Loads the model with `options`, without comparing kernels with the plan.
result<model_handle> load_model(const invocation& in, bitnet_runtime* runtime,
                                const std::string& file, uint32_t n_context,
                                bitnet_model_options options) {
  const auto cut = cut_of(in);
  if (!cut) return std::unexpected(cut.error());
  options.gpu_layers = cut->layers.how;
  options.n_gpu_layers = cut->layers.n;
  options.split_mode = cut->whole_only ? BITNET_SPLIT_NONE : BITNET_SPLIT_LAYER;
  options.tensor_split = cut->shares.data();
  options.n_tensor_split = static_cast<uint32_t>(cut->shares.size());
  const bitnet_session_options planned =
      session_options(in.set, n_context, false, !uses_head(in.set));
  options.planned = &planned;
  set_activations(in.set, options);
  std::string cache;  // folder of packed heads
  if (uses_head(in.set)) {
    cache = pack_cache(in);
    options.pack_cache_max_bytes = static_cast<uint64_t>(in.set.integer("pack-cache-size")) << 30;
  }
  options.pack_cache = cache.c_str();
  set_kv_budget(in.set, options);
  const std::string& load = in.set.text("load-mode");
  options.load_mode = load == "none"   ? BITNET_LOAD_COPIED
                      : load == "mmap" ? BITNET_LOAD_MAPPED
                                       : BITNET_LOAD_AUTO;
  library_error err;
  bitnet_model* model = nullptr;
  bitnet_status status = BITNET_OK;
  {
    const interrupt::scope until_loaded;
    progress_bar bar(in.out, "loading");
    options.progress = on_opening;
    options.progress_user = &bar;
    status = bitnet_model_open(runtime, file.c_str(), &options, &model, &err);
  }
  // A broken or forged file is found before a backend is probed, so there is no selection to
  // report.
  const int code = exit_code_of(status, stage::model);
  const bool by_signature =
      status == BITNET_REJECTED && std::string_view(err.domain) == "signature";
  if (code != exit_code::model && code != exit_code::usage && !by_signature)
    in.out.note(selection_line(runtime));
  if (status != BITNET_OK) return not_loaded(in, failed(status, err, stage::model).error());
  return model_handle(model);
}

}  // namespace

result<model_handle> open_model(const invocation& in, bitnet_runtime* runtime,
                                const std::string& file, uint32_t n_context, bool tune) {
  bitnet_model_options options = model_options(in.set);
  options.tune = tune ? 1 : 0;
  auto model = load_model(in, runtime, file, n_context, options);
  if (!model) return model;
  if (auto ok = check_plan(in, model->get(), file); !ok) return std::unexpected(ok.error());
  return model;
}

result<model_handle> open_vocabulary(const invocation& in, const std::string& file) {
  bitnet_model_options options{};
  bitnet_model_defaults(&options, sizeof options);
  set_signature(in.set, options);
  options.vocabulary_only = 1;
  library_error err;
  bitnet_model* model = nullptr;
  const bitnet_status status = bitnet_model_open(nullptr, file.c_str(), &options, &model, &err);
  if (status != BITNET_OK) return failed(status, err, stage::model);
  return model_handle(model);
}

uint32_t step_size(const settings& set) {
  return static_cast<uint32_t>(std::min(set.integer("batch-size"), set.integer("ubatch-size")));
}

result<session_handle> open_session(const invocation& in, bitnet_model* model, uint32_t n_context,
                                    bool profile) {
  const bitnet_session_options options =
      session_options(in.set, n_context, profile, !uses_head(in.set));
  library_error err;
  bitnet_session* session = nullptr;
  const bitnet_status status = bitnet_session_open(model, &options, &session, &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return session_handle(session);
}

result<scheduler_handle> open_scheduler(const invocation& in, bitnet_model* model,
                                        uint32_t n_context, uint32_t max_sequences, bool embeddings,
                                        uint64_t kv_bytes) {
  const bitnet_session_options sequences = session_options(in.set, n_context, false, embeddings);
  bitnet_scheduler_options options{};
  bitnet_scheduler_defaults(&options, sizeof options);
  options.max_sequences = max_sequences;
  options.sequences = &sequences;
  options.kv_bytes =
      kv_bytes != 0 ? kv_bytes : static_cast<uint64_t>(in.set.integer("kv-budget")) << 20;
  library_error err;
  bitnet_scheduler* scheduler = nullptr;
  const bitnet_status status = bitnet_scheduler_open(model, &options, &scheduler, &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return scheduler_handle(scheduler);
}

namespace {

// Asks for the report only if the line is wanted.
void note_room(const console& out, bitnet_session* session) {
  if (!out.wants(log_level::detail)) return;
  const auto report = session_report(session);
  if (!report) return;
  const auto tokens =
      report->value("kv", nlohmann::json::object()).value("max_context", uint64_t{0});
  if (tokens != 0) out.detail(fmt::format("free memory: a context of {} tokens", tokens));
}

// Notes where threads run and how much memory is in large pages.
void note_places(const console& out, bitnet_runtime* runtime) {
  if (!out.wants(log_level::detail)) return;
  const auto report = runtime_report(runtime);
  if (!report) return;
  if (const std::string threads = threads_text(*report); !threads.empty())
    out.detail(fmt::format("threads: {}", threads));
  if (const auto pages = large_pages_now())
    out.detail(fmt::format("large pages: {}", text_of(*pages)));
}

}  // namespace

void note_layers(const console& out, bitnet_runtime* runtime, bitnet_session* session) {
  const auto report = session_report(session);
  if (!report) return;
  // If the selected device has all layers, skip the report of all backends: it would delay the
  // start.
  const auto parts = list_of(*report, "parts");
  if (out.verbosity() < 4 && parts.size() == 1 &&
      selection_line(runtime).ends_with("selected=" + any_member(*report, "backend")))
    return;
  const auto choice = runtime_report(runtime);
  if (!choice) return;
  if (const std::string layers =
          layers_text(*report, member(*choice, "device"), out.verbosity() >= 4);
      !layers.empty())
    out.note(fmt::format("layers: {}", layers));
}

result<model_handle> open_draft(const invocation& in, bitnet_runtime* runtime) {
  if (!in.set.has("model-draft") || in.set.text("model-draft").empty()) return model_handle{};
  auto file = find_model(in.set.text("model-draft"), in.variables);
  if (!file) return std::unexpected(file.error());
  bitnet_model_options options = model_options(in.set);
  options.signature = nullptr;
  // A plan belongs to the main model, not to the draft model.
  return load_model(in, runtime, *file, static_cast<uint32_t>(in.set.integer("ctx-size")), options);
}

result<engine> open_silently(const invocation& in, const std::string& wanted, uint32_t n_context,
                             bool profile) {
  engine all;
  auto file = find_model(wanted, in.variables);
  if (!file) return std::unexpected(file.error());
  all.file = *std::move(file);
  auto runtime = open_runtime(in);
  if (!runtime) return std::unexpected(runtime.error());
  all.runtime = *std::move(runtime);
  auto model = open_model(in, all.runtime.get(), all.file, n_context);
  if (!model) return std::unexpected(model.error());
  all.model = *std::move(model);
  if (auto draft = open_draft(in, all.runtime.get()); !draft)
    return std::unexpected(draft.error());
  else
    all.draft = *std::move(draft);
  auto session = open_session(in, all.model.get(), n_context, profile);
  if (!session) return std::unexpected(session.error());
  all.session = *std::move(session);
  auto shadow = open_shadow(in, all.model.get(), n_context);
  if (!shadow) return std::unexpected(shadow.error());
  all.shadow = *std::move(shadow);
  if (auto ok = give_shadow(all.session.get(), all.shadow.get()); !ok)
    return std::unexpected(ok.error());
  return all;
}

result<engine> open_engine(const invocation& in, const std::string& wanted) {
  auto all = open_silently(in, wanted, static_cast<uint32_t>(in.set.integer("ctx-size")),
                           in.set.flag("perf"));
  if (!all) return all;
  note_layers(in.out, all->runtime.get(), all->session.get());
  note_room(in.out, all->session.get());
  note_places(in.out, all->runtime.get());
  return all;
}

std::string selection_line(bitnet_runtime* runtime) {
  std::string text;
  const bitnet_status status = fetch(
      [&](char* out, uint64_t capacity, uint64_t* needed) {
        return bitnet_runtime_selection_line(runtime, out, capacity, needed, nullptr);
      },
      text);
  return status == BITNET_OK ? text : "";
}

result<nlohmann::json> runtime_report(bitnet_runtime* runtime) {
  return fetch_json([&](char* out, uint64_t capacity, uint64_t* needed, bitnet_error* err) {
    return bitnet_runtime_report(runtime, out, capacity, needed, err);
  });
}

result<nlohmann::json> session_report(bitnet_session* session) {
  return fetch_json([&](char* out, uint64_t capacity, uint64_t* needed, bitnet_error* err) {
    return bitnet_session_report(session, out, capacity, needed, err);
  });
}

result<nlohmann::json> scheduler_report(bitnet_scheduler* scheduler) {
  return fetch_json([&](char* out, uint64_t capacity, uint64_t* needed, bitnet_error* err) {
    return bitnet_scheduler_report(scheduler, out, capacity, needed, err);
  });
}

}  // namespace bitnet::host
