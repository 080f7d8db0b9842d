#include "model/model.hpp"

#include "api/edge.hpp"
#include "api/model_signature.hpp"
#include "api/objects.hpp"
#include "base/environment.hpp"
#include "base/wording.hpp"
#include "inspect/inspect.hpp"
#include "inspect/weights.hpp"

using bitnet::api::copy_text;
using bitnet::api::guarded;
using bitnet::api::judge_of;
using bitnet::api::load_options_of;
using bitnet::api::missing;
using bitnet::api::of_no_kind;

std::unexpected<bitnet::failure> bitnet::api::of_no_kind(const std::string& option,
                                                         const char* kinds, uint32_t found) {
  return fail(
      BITNET_INVALID_ARGUMENT,
      fmt::format("{} must be {}, found {}; use a constant of bitnet.h", option, kinds, found));
}

bitnet::result<bitnet::model::load_options> bitnet::api::load_options_of(
    const bitnet_model_options& o) {
  bitnet::model::load_options out;
  out.vocabulary_only = o.vocabulary_only != 0;
  if (o.i2s_layout > BITNET_I2S_LAYOUT_QK256)
    return of_no_kind(say(word::i2s_layout), "A, B, C or QK256", o.i2s_layout);
  out.i2s_layout = o.i2s_layout;
  if (o.tl1_tiles > BITNET_TL1_TILES_PRETUNED)
    return of_no_kind(say(word::tl1_tiles), "GENERATED or PRETUNED", o.tl1_tiles);
  out.tl1_tiles = o.tl1_tiles == BITNET_TL1_TILES_PRETUNED ? bitnet::formats::tl1_tiles::pretuned
                                                           : bitnet::formats::tl1_tiles::generated;
  if (o.activations > BITNET_ACTIVATIONS_FLOAT)
    return of_no_kind("activations", "AUTO, ROW, GROUP_32, GROUP_64, GROUP_128 or FLOAT",
                      o.activations);
  out.activations = static_cast<bitnet::model::activations>(o.activations);
  if (o.load_mode > BITNET_LOAD_COPIED)
    return of_no_kind("load_mode", "AUTO, MAPPED or COPIED", o.load_mode);
  switch (o.activation) {
    case BITNET_ACTIVATION_AUTO:
      break;
    case BITNET_ACTIVATION_RELU2:
      out.gate = bitnet::model::activation::relu2;
      break;
    case BITNET_ACTIVATION_SILU:
      out.gate = bitnet::model::activation::silu;
      break;
    default:
      return of_no_kind("activation", "AUTO, RELU2 or SILU", o.activation);
  }
  return out;
}

namespace {

std::optional<bitnet::engine::pack_cache> pack_cache_of(const bitnet_model_options& o,
                                                        bitnet_runtime& runtime) {
  if (o.pack_cache == nullptr || *o.pack_cache == '\0' || bitnet::environment::caches_rejected())
    return std::nullopt;
  bitnet::engine::pack_cache_options options;
  options.folder = o.pack_cache;
  if (o.pack_cache_max_bytes != 0) options.max_bytes = o.pack_cache_max_bytes;
  options.note = [&runtime](uint32_t level, const std::string& text) {
    runtime.services.log(level, "model", text);
  };
  return bitnet::engine::pack_cache(std::move(options));
}

void note_signature(const bitnet::signature::verified& of, bitnet_runtime& runtime) {
  const std::string subject = of.by.subject.empty() ? "" : fmt::format(", {}", of.by.subject);
  runtime.services.log(BITNET_LOG_INFO, "model",
                       fmt::format("signed by the key {}{}: {} file{}", of.by.key, subject,
                                   of.files, of.files == 1 ? "" : "s"));
}

bitnet::result<bitnet::engine::kv_budget> kv_budget_of(const bitnet_model_options& o) {
  using bitnet::kv::eviction;
  switch (o.kv_eviction) {
    case BITNET_EVICT_LRU:
      return bitnet::engine::kv_budget{o.kv_budget_bytes, eviction::lru};
    case BITNET_EVICT_FIFO:
      return bitnet::engine::kv_budget{o.kv_budget_bytes, eviction::fifo};
    case BITNET_EVICT_LFU:
      return bitnet::engine::kv_budget{o.kv_budget_bytes, eviction::lfu};
    default:
      return of_no_kind("kv_eviction", "LRU, FIFO or LFU", o.kv_eviction);
  }
}

}  // namespace

void bitnet_model_defaults(bitnet_model_options* options, uint32_t size) {
  bitnet::api::give_defaults({}, options, size);
}

bitnet_status bitnet_model_open(bitnet_runtime* runtime, const char* path,
                                const bitnet_model_options* options, bitnet_model** out,
                                bitnet_error* err) {
  return guarded(err, "bitnet_model_open", [&]() -> bitnet::result<void> {
    if (path == nullptr || out == nullptr) return missing("path or out");
    const auto taken = bitnet::api::take_options(options, bitnet_model_defaults);
    if (!taken) return std::unexpected(taken.error());
    const bitnet_model_options& o = *taken;
    auto load_options = load_options_of(o);
    if (!load_options) return std::unexpected(load_options.error());
    const auto budget = kv_budget_of(o);
    if (!budget) return std::unexpected(budget.error());
    auto split = bitnet::api::split_options_of(o);
    if (!split) return std::unexpected(split.error());
    if (runtime == nullptr && !load_options->vocabulary_only) return missing("runtime");

    const auto judge = judge_of(o, path);
    if (!judge) return std::unexpected(judge.error());
    load_options->judge = judge->get();
    auto loaded = bitnet::model::model::load(path, *load_options);
    if (!loaded) return std::unexpected(loaded.error());
    auto m = std::make_unique<bitnet_model>(std::move(*loaded), runtime);
    if (*judge != nullptr) {
      m->signature = (*judge)->outcome();
      if (runtime != nullptr) note_signature(*m->signature, *runtime);
    }
    if (!load_options->vocabulary_only) {
      if (const std::string ignored = m->model.ignored(); !ignored.empty())
        runtime->services.log(BITNET_LOG_INFO, "model", fmt::format("not used: {}", ignored));
      for (const std::string& one : m->model.left_out())
        runtime->services.log(BITNET_LOG_INFO, "model", fmt::format("not used: {}", one));
      const bitnet::api::steady steady(runtime->switching);
      auto choice = runtime->choose();
      if (!choice) return std::unexpected(choice.error());
      bitnet::engine::engine::progress progress;
      if (o.progress != nullptr)
        progress = [&o](uint64_t done, uint64_t total) {
          return o.progress(o.progress_user, done, total) == 0;
        };
      m->split = *std::move(split);
      m->budget = *budget;
      m->copies = o.load_mode == BITNET_LOAD_COPIED;
      m->engines = std::make_unique<bitnet::engine::model_engines>(
          m->model, pack_cache_of(o, *runtime), *budget,
          [&self = *m](const bitnet::select::choice& wanted) { return self.place(wanted); },
          o.tune != 0, m->copies);
      auto engine = m->engines->on(*choice, progress);
      if (!engine) return std::unexpected(engine.error());
      m->engines->set_current(std::move(*engine));
      const std::lock_guard lock(runtime->mutex);
      runtime->models.push_back(m.get());
    }
    *out = m.release();
    return {};
  });
}

bitnet_model::~bitnet_model() {
  if (!engines) return;
  const bitnet::api::steady steady(runtime->switching);
  const std::lock_guard lock(runtime->mutex);
  std::erase(runtime->models, this);
}

void bitnet_model_close(bitnet_model* model) {
  delete model;
}

bitnet_status bitnet_inspect(const char* path, const bitnet_model_options* options, char* out,
                             uint64_t capacity, uint64_t* needed, bitnet_error* err) {
  return guarded(err, "bitnet_inspect", [&]() -> bitnet::result<void> {
    if (path == nullptr) return missing("path");
    const auto o = bitnet::api::take_options(options, bitnet_model_defaults);
    if (!o) return std::unexpected(o.error());
    auto load_options = load_options_of(*o);
    if (!load_options) return std::unexpected(load_options.error());
    return bitnet::api::give_changing_text(
        fmt::format("file {} {} {} {} {} {} {}", o->vocabulary_only, o->i2s_layout, o->activation,
                    o->activations, o->tl1_tiles, bitnet::api::signature_words(*o), path),
        out, capacity, needed, [&]() -> bitnet::result<std::string> {
          const auto judge = judge_of(*o, path);
          if (!judge) return std::unexpected(judge.error());
          load_options->judge = judge->get();
          return bitnet::inspect::inspect(path, *load_options);
        });
  });
}

bitnet_status bitnet_inspect_weights(const char* path, const bitnet_model_options* options,
                                     const char* rules, char* out, uint64_t capacity,
                                     uint64_t* needed, bitnet_error* err) {
  return guarded(err, "bitnet_inspect_weights", [&]() -> bitnet::result<void> {
    if (path == nullptr) return missing("path");
    const auto o = bitnet::api::take_options(options, bitnet_model_defaults);
    if (!o) return std::unexpected(o.error());
    auto load_options = load_options_of(*o);
    if (!load_options) return std::unexpected(load_options.error());
    const std::string wanted = rules == nullptr ? "auto" : rules;
    return bitnet::api::give_changing_text(
        fmt::format("weights {} {} {} {}", o->i2s_layout, wanted, bitnet::api::signature_words(*o),
                    path),
        out, capacity, needed, [&]() -> bitnet::result<std::string> {
          const auto judge = judge_of(*o, path);
          if (!judge) return std::unexpected(judge.error());
          load_options->judge = judge->get();
          return bitnet::inspect::inspect_weights(path, *load_options, wanted);
        });
  });
}

bitnet_status bitnet_model_describe(const bitnet_model* model, bitnet_model_info* out,
                                    bitnet_error* err) {
  return guarded(err, "bitnet_model_describe", [&]() -> bitnet::result<void> {
    if (model == nullptr || out == nullptr) return missing("model or out");
    const auto& shape = model->model.shape();
    const auto& tokens = model->model.tokens();
    const auto id = [](std::optional<int32_t> token) {
      return token ? static_cast<uint32_t>(*token) : BITNET_NONE;
    };
    bitnet_model_info info{};
    info.n_vocab = tokens.size();
    info.n_context = shape.n_context;
    info.n_layers = shape.n_layers;
    info.n_embedding = shape.n_embedding;
    info.n_heads = shape.n_heads;
    info.n_kv_heads = shape.n_kv_heads;
    info.head_dim = shape.head_dim;
    info.n_feed_forward = shape.n_feed_forward;
    info.add_bos = tokens.adds_bos() ? 1 : 0;
    info.bos = id(tokens.bos());
    info.eos = id(tokens.eos());
    info.eot = id(tokens.eot());
    info.unknown = id(tokens.unknown());
    info.padding = id(tokens.padding());
    const auto& infill = tokens.infill();
    info.fim_pre = id(infill.pre);
    info.fim_suf = id(infill.suf);
    info.fim_mid = id(infill.mid);
    info.fim_pad = id(infill.pad);
    info.fim_rep = id(infill.rep);
    info.fim_sep = id(infill.sep);
    for (const auto& w : model->model.weights()) {
      info.n_parameters += static_cast<uint64_t>(w.ne[0]) * static_cast<uint64_t>(w.ne[1]);
      info.weight_bytes += w.data_bytes;
    }
    copy_text(info.architecture, shape.architecture);
    copy_text(info.name, shape.name);
    return bitnet::api::give_result(info, out);
  });
}
