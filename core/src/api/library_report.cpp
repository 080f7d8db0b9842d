// bitnet_analyze_library: the JSON of plugin/analysis.
#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "api/edge.hpp"
#include "plugin/analysis/analysis.hpp"

namespace {

using bitnet::api::guarded;
using bitnet::api::missing;
using bitnet::plugin::library_analysis;
using nlohmann::ordered_json;

bitnet::failure failure_of_file(const bitnet::plugin::defect& d) {
  return bitnet::plugin::failure_of_named(d, "name a shared object", BITNET_BAD_DATA);
}

// Leaves out unknown values.
void put(ordered_json& to, const char* key, const std::string& text) {
  if (!text.empty()) to[key] = text;
}

ordered_json describe_form(const library_analysis& a) {
  ordered_json out = {{"bits", a.bits},
                      {"byte_order", a.big_endian ? "big" : "little"},
                      {"machine", a.machine},
                      {"for_this_machine", a.for_this_machine}};
  put(out, "soname", a.soname);
  put(out, "build_id", a.build_id);
  out["stripped"] = a.stripped;
  out["symbols"] = a.symbols;
  out["exported"] = a.exported;
  return out;
}

ordered_json describe_groups(const library_analysis& a) {
  ordered_json out;
  for (std::size_t i = 0; i < a.groups.size(); ++i) {
    const bitnet::plugin::grouped_symbols& group = a.groups[i];
    out[std::string(bitnet::plugin::symbol_group_keys[i])] = {
        {"count", group.count}, {"defined", group.defined}, {"names", group.names}};
  }
  return out;
}

ordered_json describe_backend(const library_analysis& a) {
  const bitnet::plugin::identity note = a.note.value_or(bitnet::plugin::identity{});
  ordered_json out;
  put(out, "name", note.name);
  put(out, "version", note.version);
  put(out, "vendor", note.vendor);
  put(out, "license", note.license);
  put(out, "class", note.device_class);
  put(out, "compiler", note.compiler);
  put(out, "abi", note.abi);
  out["abi_spoken"] = bitnet::plugin::check_abi(note).has_value();
  put(out, "entry", a.entry);
  if (!a.manifest.empty()) {
    out["manifest"] = a.manifest.string();
    put(out, "manifest_license", a.manifest_license);
  }
  return out;
}

void describe_dependencies(const library_analysis& a, ordered_json& out) {
  out["needed"] = a.needed;
  if (!a.libraries_known) return;
  ordered_json found = ordered_json::array();
  ordered_json absent = ordered_json::array();
  for (const bitnet::plugin::needed_library& one : a.libraries) {
    const bool is_here = !one.file.empty() || one.loaded;
    ordered_json& row = (is_here ? found : absent).emplace_back();
    row["name"] = one.name;
    put(row, "needed_by", one.needed_by);
    put(row, "file", one.file.string());
    if (one.fault) row["fault"] = one.fault->reason;
  }
  out["present"] = std::move(found);
  out["missing"] = std::move(absent);
}

std::string library_json(const char* file, const library_analysis& a) {
  ordered_json out = {{"file", file}, {"bytes", a.size_bytes}, {"format", describe_form(a)}};
  out["groups"] = describe_groups(a);
  out["inference"] = a.inference;
  out["formats"] = a.formats;
  out["accelerators"] = a.accelerators;
  if (a.note) out["backend"] = describe_backend(a);
  describe_dependencies(a, out);
  out["versions"] = a.versions;
  if (const auto glibc = a.versions.find("GLIBC"); glibc != a.versions.end())
    out["min_glibc"] = glibc->second;
  put(out, "cpu_baseline", a.cpu_baseline);
  out["loadable"] = a.problems.empty();
  ordered_json problems = ordered_json::array();
  for (const bitnet::plugin::defect& one : a.problems)
    problems.push_back({{"code", bitnet::plugin::code_text(one.code)},
                        {"text", one.reason},
                        {"hint", one.advice()}});
  out["problems"] = std::move(problems);
  return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

bitnet_status bitnet_analyze_library(const char* path, uint64_t n_names, char* out,
                                     uint64_t capacity, uint64_t* needed, bitnet_error* err) {
  return guarded(err, "bitnet_analyze_library", [&]() -> bitnet::result<void> {
    if (path == nullptr) return missing("path");
    return bitnet::api::give_changing_text(
        fmt::format("library {} {}", n_names, path), out, capacity, needed,
        [&]() -> bitnet::result<std::string> {
          const auto found = bitnet::plugin::analyze_file(path, n_names);
          if (!found) return std::unexpected(failure_of_file(found.error()));
          return library_json(path, *found);
        });
  });
}
