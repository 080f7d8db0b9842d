#include "commands/bench_facts.hpp"

#include <fmt/format.h>

#include "library/json.hpp"
#include "library/splitting.hpp"
#include "model_files.hpp"

namespace bitnet::host {
namespace {

facts facts_of(const invocation& in, const engine& all, const nlohmann::json& session,
               const nlohmann::json& runtime) {
  return {describe(all.model.get()),
          all.file,
          in.set.text("head"),
          session.value("tuning", ""),
          device_in(runtime, session.value("device", "")),
          session.value("threads", uint64_t{0}),
          session.value("kv", nlohmann::json::object()).value("max_context", uint64_t{0}),
          has_places(runtime) ? threads_text(runtime) : "",
          layers_text(session, member(runtime, "device"), false),
          {},
          {}};
}

}  // namespace

kernel_uses uses_in(const nlohmann::json& session_report) {
  kernel_uses out;
  for (const auto& k : session_report.value("kernels", nlohmann::json::array())) {
    out[k.value("id", "")] = {k.value("calls", uint64_t{0}), k.value("time_ns", uint64_t{0}),
                              k.value("bytes", uint64_t{0})};
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
  ordered_json out = {{"model_filename", file},
                      {"model_type", model.name},
                      {"model_size", model.weight_bytes},
                      {"model_n_params", model.n_parameters},
                      {"backend", device.backend}};
  if (!device.arch.empty()) out["device"] = device.arch;
  if (!device.name.empty()) out[device.host_threads ? "cpu_info" : "gpu_info"] = device.name;
  if (device.host_threads) out["n_threads"] = threads;
  if (!places.empty()) out["thread_places"] = places;
  if (!layers.empty()) out["layers"] = layers;
  if (pages) out["large_page_bytes"] = pages->own + pages->files;
  if (max_context != 0) out["max_context"] = max_context;
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
  return out;
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
