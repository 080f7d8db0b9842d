// bitnet doctor: reports the machine, the devices that can compute, and what to do first.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "basic/text_input.hpp"
#include "commands/commands.hpp"
#include "commands/crossval_search.hpp"
#include "doctor/report.hpp"
#include "process/interrupt.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A driver takes seconds to start; a software driver may take minutes, and its probe continues.
constexpr auto longest_wait = std::chrono::seconds(10);

// The selection, and the backends' results so far.
result<json> examined_backends(const invocation& in) {
  auto runtime = open_runtime(in, in.set.flag("fresh"));
  if (!runtime) return std::unexpected(runtime.error());
  library_error err;
  const bitnet_status chosen = bitnet_runtime_select(runtime->get(), &err);
  if (chosen == BITNET_INVALID_ARGUMENT) return failed(chosen, err, stage::work);
  const std::string problem = err.message;
  if (const bitnet_status asked = bitnet_runtime_probe(runtime->get(), &err); asked != BITNET_OK)
    return failed(asked, err, stage::work);
  constexpr uint32_t look_ms = 100;
  const auto end = std::chrono::steady_clock::now() + longest_wait;
  while (bitnet_runtime_wait_probes(runtime->get(), look_ms, &err) == BITNET_TIMEOUT &&
         std::chrono::steady_clock::now() < end)
    if (interrupt::requested()) return fail(exit_code::interrupted, "");
  auto report = runtime_report(runtime->get());
  if (report && chosen != BITNET_OK) (*report)["problem"] = problem;
  return report;
}

// Beside the program (in a build tree or a moved prefix), else at the install path.
std::array<fs::path, 2> places_of_hints() {
  const auto below = fs::path(BITNET_DATA_DIR) / "bitnet/hardware-hints.yaml";
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return {program.parent_path().parent_path() / below.relative_path(),
          fs::path(BITNET_INSTALL_PREFIX) / below};
}

constexpr uint64_t longest_hints = 65'536;  // bytes

// Without hints, devices are listed only.
doctor::hardware_hints read_hints(const console& out) {
  for (const fs::path& file : places_of_hints()) {
    const auto text = read_usual_text_file(file.string(), longest_hints);
    if (!text && text.error().number == ENOENT) continue;
    auto hints = text ? doctor::parse_hints(*text, file.string())
                      : fail(exit_code::failure, text.error().message);
    if (hints) return *std::move(hints);
    out.warning(hints.error().message);
    return {};
  }
  out.warning(
      fmt::format("{} is missing, so that devices are listed without advice; reinstall the "
                  "package bitnet",
                  places_of_hints().back().string()));
  return {};
}

std::vector<doctor::cache_place> cache_places(const invocation& in) {
  const auto home = in.variables.cache_home();
  fs::path probes = in.set.text("probe-cache");
  if (probes.empty() && home) probes = *home / "bitnet/probe";
  if (in.set.text("probe-cache").empty() && in.variables.rights() == privilege::root)
    probes = "/var/cache/bitnet/probe";
  return {{"probes", probes}, {"weights", home ? *home / "bitnet/packed" : fs::path()}};
}

// Tests replace the system's files with a tree of their own. Ignored with raised privileges.
fs::path system_root(const environment& variables) {
  if (variables.rights() == privilege::raised) return "/";
  return variables.get("BITNET_MACHINE_ROOT").value_or("/");
}

// Lists the builds that `bitnet crossval` would use. Skipped with raised privileges, as there.
nlohmann::ordered_json other_engines(const invocation& in) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  if (in.variables.rights() == privilege::raised) return out;
  const find_report searched = search_build(in);
  if (!searched.found.found) return out;
  const crossval::build& found = *searched.found.found;
  out.push_back({{"name", found.flavour()}, {"library", found.library}, {"cuda", found.cuda}});
  return out;
}

}  // namespace

result<int> doctor_command(const invocation& in) {
  if (!in.positionals.empty())
    return fail(exit_code::usage, fmt::format("doctor takes no '{}'", in.positionals.front()));
  auto runtime = examined_backends(in);
  if (!runtime) return std::unexpected(runtime.error());
  const auto hints = read_hints(in.out);
  auto report = doctor::examine(doctor::system_tree(system_root(in.variables)),
                                {hints, *runtime, cache_places(in)});
  report["other_engines"] = other_engines(in);
  // JSON keeps the report's order; paths may have bytes that are not UTF-8.
  const std::string shown =
      in.set.flag("json")
          ? report.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"
          : text::printable_lines(doctor::report_text(report));
  if (auto done = print(shown); !done) return std::unexpected(done.error());
  return exit_code::ok;
}

}  // namespace bitnet::host
