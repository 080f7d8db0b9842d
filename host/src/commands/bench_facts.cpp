#include "commands/bench_facts.hpp"

#include <fmt/format.h>

#include "basic/json.hpp"
#include "model_files/find_model.hpp"
#include "session/splitting.hpp"
#include "settings/value.hpp"

namespace bitnet::host {
namespace {

// A number if the text is one, since llama-bench has numbers there.
ordered_json number_or_text(const std::string& text) {
  const auto number = parse_integer(text);
  return number ? ordered_json(*number) : ordered_json(text);
}

// Columns without a meaning here, such as main_gpu, are left out.
ordered_json llama_settings(const settings& set) {
  const std::string& strict_cpus = set.text("cpu-strict");
  return {{"n_batch", set.integer("batch-size")},
          {"n_ubatch", step_size(set)},
          {"cpu_mask", set.text("cpu-mask")},
          {"cpu_strict", strict_cpus == "on" || strict_cpus == "1"},
          {"poll", set.integer("poll")},
          {"type_k", set.text("cache-type-k")},
          {"type_v", set.text("cache-type-v")},
          {"n_gpu_layers", number_or_text(set.text("n-gpu-layers"))},
          {"split_mode", set.text("split-mode")},
          {"tensor_split", set.text("tensor-split")},
          {"use_mmap", set.text("load-mode") != "none"},
          {"embeddings", false}};
}

ordered_json own_settings_of(const invocation& in, const nlohmann::json& runtime,
                             const measured_device& device) {
  ordered_json out = {{"backend_requested", in.set.text("device")},
                      {"backend_selected", member(runtime, "device")},
                      {"precision", in.set.text("precision")},
                      {"deterministic", in.set.flag("deterministic")},
                      {"spec_type", in.set.text("spec-type")}};
  const auto put = [&](const char* key, const std::string& text) {
    if (!text.empty()) out[key] = text;
  };
  put("device_pci", device.pci);
  put("driver", device.driver);
  put("abi", device.abi);
  return out;
}

facts facts_of(const invocation& in, const engine& all, const nlohmann::json& session,
               const nlohmann::json& runtime) {
  facts out;
  out.model = describe(all.model.get());
  out.file = all.file;
  out.head = in.set.text("head");
  out.tuning = session.value("tuning", "");
  out.device = device_in(runtime, session.value("device", ""));
  out.threads = session.value("threads", uint64_t{0});
  out.max_context = session.value("kv", nlohmann::json::object()).value("max_context", uint64_t{0});
  out.places = has_places(runtime) ? threads_text(runtime) : "";
  out.layers = layers_text(session, member(runtime, "device"), false);
  out.settings = llama_settings(in.set);
  out.own_settings = own_settings_of(in, runtime, out.device);
  out.machine = measure::machine_facts(doctor::system_tree());
  return out;
}

}  // namespace

kernel_uses uses_in(const nlohmann::json& session_report) {
  kernel_uses out;
  for (const auto& k : session_report.value("kernels", nlohmann::json::array())) {
    kernel_use& use = out[k.value("id", "")];  // summed over all devices
    use.calls += k.value("calls", uint64_t{0});
    use.time_ns += k.value("time_ns", uint64_t{0});
    use.bytes += k.value("bytes", uint64_t{0});
  }
  return out;
}

void add_difference(kernel_uses& to, const kernel_uses& before, const kernel_uses& after) {
  for (const auto& [id, now] : after) {
    const auto old = before.find(id);
    const kernel_use was = old == before.end() ? kernel_use{} : old->second;
    if (now.calls == was.calls) continue;
    to[id].calls += now.calls - was.calls;
    to[id].time_ns += now.time_ns - was.time_ns;
    to[id].bytes += now.bytes - was.bytes;
  }
}

uint64_t bytes_of(const kernel_uses& all) {
  uint64_t bytes = 0;
  for (const auto& [id, use] : all) bytes += use.bytes;
  return bytes;
}

ordered_json facts::json() const {
  ordered_json out = ordered_json::object();
  if (machine.contains("cpu_info")) out["cpu_info"] = machine["cpu_info"];
  if (!device.name.empty()) out[device.host_threads ? "cpu_info" : "gpu_info"] = device.name;
  out["backends"] = device.backend;
  out["model_filename"] = file;
  out["model_type"] = model.name;
  out["model_size"] = model.weight_bytes;
  out["model_n_params"] = model.n_parameters;
  for (const char* key : {"n_batch", "n_ubatch"}) out[key] = settings.at(key);
  if (device.host_threads) out["n_threads"] = threads;
  out.update(settings);
  return out;
}

ordered_json facts::own_json() const {
  ordered_json out = {{"backend", device.backend}};
  out.update(own_settings);
  if (!device.arch.empty()) out["device"] = device.arch;
  out["head"] = head;
  if (!tuning.empty()) out["tuning"] = tuning;
  if (!places.empty()) out["thread_places"] = places;
  if (!layers.empty()) out["layers"] = layers;
  if (pages) out["large_page_bytes"] = pages->own + pages->files;
  if (max_context != 0) out["max_context"] = max_context;
  for (const auto& [key, fact] : machine.items())
    if (key != "cpu_info") out[key] = fact;
  out.update(load.json());
  return out;
}

std::string facts::cells() const {
  return fmt::format("| {} | {:.2f} MiB | {:.2f} M | {} | {} |", model.name,
                     static_cast<double>(model.weight_bytes) / (1 << 20),
                     static_cast<double>(model.n_parameters) / 1e6, device.backend,
                     device.host_threads ? fmt::to_string(threads) : "");
}

std::string facts::lines() const {
  std::string out = fmt::format("device: {} {}\n", device.arch, device.name);
  if (!layers.empty()) out += fmt::format("layers: {}\n", layers);
  if (!places.empty()) out += fmt::format("threads: {}\n", places);
  if (pages) out += fmt::format("large pages at the end: {}\n", text_of(*pages));
  if (max_context != 0) out += fmt::format("free memory: a context of {} tokens\n", max_context);
  if (!tuning.empty()) out += fmt::format("tuned: {}\n", tuning);
  return out + measure::machine_line(machine) + load.line();
}

result<bench_engine> open_bench(const invocation& in, const std::string& wanted, uint32_t context,
                                bool profile) {
  auto all = open_silently(in, wanted, context, profile);
  if (!all) return std::unexpected(all.error());
  auto opened = session_report(all->session.get());
  if (!opened) return std::unexpected(opened.error());
  auto choice = runtime_report(all->runtime.get());
  if (!choice) return std::unexpected(choice.error());
  auto about = facts_of(in, *all, *opened, *choice);
  return bench_engine{*std::move(all), std::move(about)};
}

greedy::greedy(uint32_t n_tokens, const bitnet_speculation* ahead) {
  bitnet_sampling_defaults(&sampling_, sizeof sampling_);
  sampling_.temperature = 0;
  sampling_.ignore_eos = 1;
  options_.struct_size = sizeof options_;
  options_.max_tokens = static_cast<int32_t>(n_tokens);
  options_.sampling = &sampling_;
  options_.speculation = ahead;
}

token_list random_tokens(std::mt19937& random, std::size_t n, uint32_t n_vocab) {
  token_list out(n);
  for (bitnet_token& id : out) id = static_cast<bitnet_token>(random() % n_vocab);
  return out;
}

}  // namespace bitnet::host
