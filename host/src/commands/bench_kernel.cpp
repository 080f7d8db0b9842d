// bench --kernel measures one op alone on the selected backend; bench --list lists its kernels.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "basic/output.hpp"
#include "commands/commands.hpp"
#include "commands/figures.hpp"
#include "plan/kernel_aliases.hpp"
#include "process/interrupt.hpp"
#include "text/items.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

// Limits the multiply-adds of one run, so that wide runs of slow kernels end.
constexpr double most_macs = 64e9;

// Names of ops elsewhere: I2_S weights reach a backend as ternary2.
constexpr std::pair<std::string_view, std::string_view> known_as[] = {
    {"matmul_i2s", "linear_ternary.ternary2"},
};

struct kernel {
  std::string id, level;
  uint32_t op = 0, format = 0;
  bool runs = false;  // the first of its op, format and stem runs; others need another setting

  // The id without the instruction set or API at its end.
  [[nodiscard]] std::string_view stem() const {
    return std::string_view(id).substr(0, std::min(id.rfind('.'), id.size()));
  }
};

struct device : measured_device {
  std::vector<kernel> kernels;
};

struct shape {
  uint64_t rows, inputs;
  uint64_t scale_group;  // 0: one scale
};

struct trial_closer {
  void operator()(bitnet_trial* t) const noexcept { bitnet_trial_close(t); }
};
using trial_handle = std::unique_ptr<bitnet_trial, trial_closer>;

struct kernel_measurement {
  std::string kernel;
  shape of;
  uint32_t n = 0, matrices = 0;
  uint64_t bytes = 0;              // of weights, per call; 0: unknown
  bool by_backend = false;         // timed by the backend in the kernel, else around the run
  std::vector<double> samples_ns;  // per call

  [[nodiscard]] double gbps() const { return static_cast<double>(bytes) / median(samples_ns); }
  [[nodiscard]] double gmacs() const {
    return static_cast<double>(of.rows) * static_cast<double>(of.inputs) * n / median(samples_ns);
  }
};

std::string text_of(const shape& s) {
  return fmt::format("{}x{}", s.rows, s.inputs);
}

result<std::vector<shape>> shapes_of(const std::string& text, uint64_t scale_group) {
  std::vector<shape> out;
  for (const std::string_view one : bitnet::text::items(text)) {
    const std::size_t x = std::min(one.find('x'), one.size());
    const auto rows = parse_integer(one.substr(0, x));
    const auto inputs = parse_integer(one.substr(std::min(x + 1, one.size())));
    if (!rows || !inputs || *rows < 1 || *inputs < 1)
      return fail(exit_code::usage,
                  fmt::format("--shape expects ROWSxINPUTS, such as 6912x2560; found '{}'", text));
    out.push_back({static_cast<uint64_t>(*rows), static_cast<uint64_t>(*inputs), scale_group});
  }
  return out;
}

result<device> selected_device(const invocation& in, bitnet_runtime* runtime) {
  library_error err;
  const bitnet_status status = bitnet_runtime_select(runtime, &err);
  in.out.note(selection_line(runtime));
  if (status != BITNET_OK) return failed(status, err, stage::work);
  auto report = runtime_report(runtime);
  if (!report) return std::unexpected(report.error());
  device out;
  static_cast<measured_device&>(out) = device_in(*report, report->value("device", ""));
  for (const auto& backend : report->value("backends", nlohmann::json::array())) {
    if (backend.value("name", "") != out.backend) continue;
    for (const auto& k : backend.value("kernels", nlohmann::json::array())) {
      kernel one{k.value("id", ""), k.value("level", ""), k.value("op", 0U), k.value("format", 0U),
                 true};
      one.runs = std::ranges::none_of(out.kernels, [&](const kernel& other) {
        return other.op == one.op && other.format == one.format && other.stem() == one.stem();
      });
      out.kernels.push_back(std::move(one));
    }
  }
  return out;
}

// Finds the kernels that a name of BitNet-rs means.
result<std::vector<kernel>> chosen_by(const kernel_alias& alias, const device& on) {
  if (!alias.instead.empty())
    return fail(exit_code::usage, fmt::format("{}: {}", alias.name, alias.instead));
  std::vector<kernel> out;
  std::string seen;  // instruction sets of the same product
  for (const kernel& k : on.kernels) {
    if (k.stem() == alias.stem)
      seen += (seen.empty() ? "" : ", ") + k.id.substr(k.stem().size() + 1);
    if (names(alias, k.id) && k.runs) out.push_back(k);
  }
  if (!out.empty()) return out;
  return fail(exit_code::usage,
              fmt::format("{} is {} in another form than {} has here ({}); try {}", alias.name,
                          alias.stem, on.backend, seen.empty() ? "none" : seen, alias.how));
}

// Finds the kernels of `wanted`: complete ids, leading words of ids, or names of BitNet-rs.
result<std::vector<kernel>> chosen(const device& on, const std::string& wanted) {
  std::vector<kernel> out;
  for (std::string_view name : text::items(wanted)) {
    if (const kernel_alias* alias = find_kernel_alias(name)) {
      auto meant = chosen_by(*alias, on);
      if (!meant) return meant;
      std::ranges::move(*meant, std::back_inserter(out));
      continue;
    }
    const auto* other =
        std::ranges::find(known_as, name, &std::pair<std::string_view, std::string_view>::first);
    if (other != std::end(known_as)) name = other->second;
    const kernel* idle = nullptr;
    bool found = false;
    for (const kernel& k : on.kernels) {
      if (k.id != name && !k.id.starts_with(std::string(name) + ".")) continue;
      if (!k.runs) idle = &k;
      if (!k.runs) continue;
      found = true;
      out.push_back(k);
    }
    if (found) continue;
    if (idle != nullptr)
      return fail(exit_code::usage,
                  fmt::format("{} does not run here: {} has a better form of it; a setting chooses "
                              "another, such as BITNET_CPU_ISA for cpu",
                              idle->id, on.backend));
    return fail(exit_code::usage,
                fmt::format("backend {} has no kernel '{}'; bitnet bench --list names them",
                            on.backend, name));
  }
  return out;
}

result<trial_handle> open_trial(bitnet_runtime* runtime, const kernel& k, const shape& s,
                                uint32_t n, uint32_t matrices) {
  const bitnet_trial_options options{sizeof options, k.op, k.format,     n, s.rows, s.inputs,
                                     matrices,       0,    s.scale_group};
  bitnet_trial* trial = nullptr;
  library_error err;
  const bitnet_status status = bitnet_trial_open(runtime, &options, &trial, &err);
  if (status == BITNET_INVALID_ARGUMENT || status == BITNET_UNSUPPORTED)  // a usage error
    return fail(exit_code::usage, err.message);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return trial_handle(trial);
}

result<bitnet_trial_result> run_trial(bitnet_trial* trial) {
  bitnet_trial_result out{};
  out.struct_size = sizeof out;
  library_error err;
  const bitnet_status status = bitnet_trial_run(trial, &out, &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return out;
}

// How many matrices fill `megabytes`, within reason.
uint32_t matrices_for(int64_t megabytes, uint64_t matrix_bytes, const shape& s, uint32_t n) {
  if (matrix_bytes == 0) return 1;
  const double wanted = static_cast<double>(megabytes) * 1e6 / static_cast<double>(matrix_bytes);
  const double bearable =
      most_macs / (static_cast<double>(s.rows) * static_cast<double>(s.inputs) * n);
  return static_cast<uint32_t>(std::clamp(std::min(std::ceil(wanted), bearable), 1.0, 65536.0));
}

result<kernel_measurement> time_kernel(const invocation& in, bitnet_runtime* runtime,
                                       const kernel& k, const shape& s, uint32_t n) {
  auto trial = open_trial(runtime, k, s, 1, 1);
  if (!trial) return std::unexpected(trial.error());
  auto first = run_trial(trial->get());
  if (!first) return std::unexpected(first.error());
  kernel_measurement out;
  out.of = s;
  out.n = n;
  out.bytes = first->bytes / first->calls;
  out.matrices = matrices_for(in.set.integer("ceiling-mb"), out.bytes, s, n);
  trial->reset();
  trial = open_trial(runtime, k, s, n, out.matrices);
  if (!trial) return std::unexpected(trial.error());
  const int64_t repetitions = in.set.integer("repetitions");
  for (int64_t i = in.set.flag("warmup") ? -1 : 0; i < repetitions; ++i) {
    if (interrupt::requested()) return fail(exit_code::interrupted, "interrupted");
    auto ran = run_trial(trial->get());
    if (!ran) return std::unexpected(ran.error());
    if (i < 0) continue;
    out.kernel = ran->kernel;
    out.by_backend = ran->time_ns != 0;
    out.samples_ns.push_back(static_cast<double>(out.by_backend ? ran->time_ns : ran->step_ns) /
                             static_cast<double>(ran->calls));
  }
  return out;
}

ordered_json as_json(const kernel_measurement& m, const device& on, uint32_t threads,
                     const ceilings& limit) {
  ordered_json out = {{"kernel", m.kernel}, {"backend", on.backend}};
  if (!on.arch.empty()) out["device"] = on.arch;
  if (!on.name.empty()) out["device_name"] = on.name;
  if (on.host_threads) out["n_threads"] = threads;
  out["shape"] = text_of(m.of);
  if (m.of.scale_group != 0) out["scale_group"] = m.of.scale_group;
  out["n"] = m.n;
  out["matrices"] = m.matrices;
  out["timed_by"] = m.by_backend ? "backend" : "step";
  out["median_ns"] = median(m.samples_ns);
  out["stddev_ns"] = deviation(m.samples_ns);
  out["samples_ns"] = m.samples_ns;
  if (m.bytes != 0) {
    out["weight_bytes"] = m.bytes;
    out["gbps"] = m.gbps();
    if (limit.known()) out["pct_of_stream"] = 100 * m.gbps() / limit.best();
  }
  out["gmacs"] = m.gmacs();
  if (limit.known()) out["stream"] = limit.json();
  out["version"] = bitnet_version();
  return out;
}

std::string as_markdown(const std::vector<kernel_measurement>& all, const device& on,
                        uint32_t threads, const ceilings& limit) {
  std::string out =
      "| kernel | backend | device | threads | shape | n | us, median | GB/s | % of stream | "
      "GMAC/s |\n"
      "| --- | --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |\n";
  for (const kernel_measurement& m : all) {
    const bool counted = m.bytes != 0;
    out += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {:.1f} ± {:.1f} | {} | {} | {:.1f} |\n", m.kernel,
        on.backend, on.arch, on.host_threads ? fmt::to_string(threads) : "", text_of(m.of), m.n,
        median(m.samples_ns) / 1e3, deviation(m.samples_ns) / 1e3,
        counted ? fmt::format("{:.1f}", m.gbps()) : "",
        counted && limit.known() ? fmt::format("{:.0f}", 100 * m.gbps() / limit.best()) : "",
        m.gmacs());
  }
  out += "\n";
  if (limit.known()) out += limit.line();
  if (!on.name.empty()) out += fmt::format("device: {} {}\n", on.arch, on.name);
  if (std::ranges::any_of(all, [](const kernel_measurement& m) { return !m.by_backend; }))
    out += "the backend measures no times: these are of whole runs\n";
  return out + fmt::format("build: bitnet {}\n", bitnet_version());
}

// The shapes and widths of --shape and --n.
struct workload {
  std::vector<shape> shapes;
  std::vector<uint32_t> widths;  // tokens per step
};

result<workload> workload_of(const invocation& in) {
  for (const char* other : {"model", "n-prompt", "n-depth", "parallel", "shared-prefix", "head"})
    if (in.set.flagged(other))
      return fail(exit_code::usage,
                  fmt::format("--{} measures a model; --kernel needs none", other));
  if (!in.positionals.empty())
    return fail(exit_code::usage,
                fmt::format("unexpected '{}'; --kernel needs no model", in.positionals.front()));
  auto shapes =
      shapes_of(in.set.text("shape"), static_cast<uint64_t>(in.set.integer("scale-group")));
  if (!shapes) return std::unexpected(shapes.error());
  std::vector<uint32_t> widths = {1, 512};  // a generation step, and a prompt step
  if (in.set.flagged("n-gen")) {
    auto given = token_counts(in.set, "n-gen");
    if (!given) return std::unexpected(given.error());
    widths = *given;
  }
  std::erase(widths, 0U);
  if (widths.empty()) return fail(exit_code::usage, "nothing to measure: --n is 0");
  return workload{*std::move(shapes), std::move(widths)};
}

result<void> print_kernels(const invocation& in, const std::vector<kernel_measurement>& measured,
                           const device& on, uint32_t threads, const ceilings& limit) {
  std::vector<ordered_json> rows;
  rows.reserve(measured.size());
  for (const kernel_measurement& m : measured) rows.push_back(as_json(m, on, threads, limit));
  const std::string& format = in.set.text("output-format");
  auto done =
      print(format == "md" ? text::printable_lines(as_markdown(measured, on, threads, limit))
                           : rows_as(format, rows));
  return done ? write_report(in, rows) : done;
}

}  // namespace

result<int> bench_kernels(const invocation& in) {
  const auto asked = workload_of(in);
  if (!asked) return std::unexpected(asked.error());
  auto runtime = open_runtime(in);
  if (!runtime) return std::unexpected(runtime.error());
  auto on = selected_device(in, runtime->get());
  if (!on) return std::unexpected(on.error());
  auto kernels = chosen(*on, in.set.text("kernel"));
  if (!kernels) return std::unexpected(kernels.error());

  const interrupt::scope until_measured;
  // Report what cannot be measured now, not after the first minute.
  uint32_t threads = 1;
  for (const kernel& k : *kernels)
    for (const shape& s : asked->shapes) {
      auto trial = open_trial(runtime->get(), k, s, 1, 1);
      if (!trial) return std::unexpected(trial.error());
      auto ran = run_trial(trial->get());
      if (!ran) return std::unexpected(ran.error());
      threads = ran->n_threads;
    }
  ceilings limit(in.set.integer("ceiling-mb"), *on, threads);
  std::vector<kernel_measurement> measured;
  int code = exit_code::ok;
  for (const kernel& k : *kernels)
    for (const shape& s : asked->shapes)
      for (const uint32_t n : asked->widths) {
        if (code != exit_code::ok) continue;
        auto one = time_kernel(in, runtime->get(), k, s, n);
        if (one)
          measured.push_back(*std::move(one));
        else if (one.error().exit_code == exit_code::interrupted)
          code = exit_code::interrupted;
        else
          return std::unexpected(one.error());
      }
  limit.measure_again();
  if (measured.empty()) return code;
  if (auto done = print_kernels(in, measured, *on, threads, limit); !done)
    return std::unexpected(done.error());
  return code;
}

result<int> list_kernels(const invocation& in) {
  auto runtime = open_runtime(in);
  if (!runtime) return std::unexpected(runtime.error());
  auto on = selected_device(in, runtime->get());
  if (!on) return std::unexpected(on.error());
  const std::string& format = in.set.text("output-format");
  std::string text;
  if (format == "md") {
    text = "| kernel | backend | level | runs |\n| --- | --- | --- | --- |\n";
    for (const kernel& k : on->kernels)
      text += text::printable_lines(
          fmt::format("| {} | {} | {} | {} |\n", k.id, on->backend, k.level, k.runs ? "yes" : ""));
  } else {
    std::vector<ordered_json> rows;
    rows.reserve(on->kernels.size());
    for (const kernel& k : on->kernels)
      rows.push_back({{"kernel", k.id},
                      {"backend", on->backend},
                      {"op", k.op},
                      {"format", k.format},
                      {"level", k.level},
                      {"runs", k.runs}});
    text = rows_as(format, rows);
  }
  if (auto done = print(text); !done) return std::unexpected(done.error());
  return exit_code::ok;
}

}  // namespace bitnet::host
