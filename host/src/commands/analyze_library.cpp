// bitnet analyze-library: describes a shared object by its bytes alone.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "commands/commands.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;

// Adds a line " name value" if the value is known.
void add_fact(std::string& out, std::string_view name, const std::string& value) {
  if (!value.empty()) out += fmt::format("  {:<13} {}\n", name, value);
}

std::string joined_texts(const json& list) {
  std::string out;
  for (const json& one : list)
    out += (out.empty() ? "" : ", ") + (one.is_string() ? one.get<std::string>() : std::string());
  return out;
}

// Adds "Llama symbols: 42 found" and the names, as BitNet-rs prints it.
void add_group(std::string& out, std::string_view title, const json& group) {
  const auto count = group.value("count", uint64_t{0});
  const json names = list_of(group, "names");
  out += fmt::format("{:<17} {} found\n", title, count);
  for (const json& one : names) out += fmt::format("  - {}\n", one.get<std::string>());
  if (!names.empty() && names.size() < count) out += "  ...\n";
}

void add_groups(std::string& out, const json& report) {
  const json groups = report.value("groups", json::object());
  const auto of = [&](const char* key) { return groups.value(key, json::object()); };
  add_group(out, "Bitnet symbols:", of("bitnet"));
  out += '\n';
  add_group(out, "Llama symbols:", of("llama"));
  out += '\n';
  add_group(out, "CUDA symbols:", of("cuda"));
  out += fmt::format("  Inference: {}\n\n", member(report, "inference"));
  add_group(out, "Quantization:", of("quantization"));
  const std::string formats = joined_texts(list_of(report, "formats"));
  out += fmt::format("  - Detected: {}\n", formats.empty() ? "none, by names" : formats);
}

void add_backend(std::string& out, const json& report) {
  out += "\nBitNet backend ABI\n";
  const json backend = report.value("backend", json());
  if (!backend.is_object()) {
    out += "  no identity note: no bitnet backend\n";
    return;
  }
  add_fact(out, "name",
           fmt::format("{} {} of {}", member(backend, "name"), member(backend, "version"),
                       member(backend, "vendor")));
  add_fact(out, "class", member(backend, "class"));
  add_fact(out, "licence", member(backend, "license"));
  const std::string entry = member(backend, "entry");
  add_fact(out, "entry", entry.empty() ? "none" : entry);
  add_fact(
      out, "ABI",
      fmt::format("{}{}", member(backend, "abi"),
                  backend.value("abi_spoken", false) ? "" : ", which this bitnet does not speak"));
  add_fact(out, "compiler", member(backend, "compiler"));
  add_fact(out, "manifest", member(backend, "manifest"));
}

void add_form(std::string& out, const json& report) {
  const json format = report.value("format", json::object());
  out += "\nfile\n";
  add_fact(out, "machine",
           fmt::format("{}, {}-bit, {}-endian{}", member(format, "machine"),
                       any_member(format, "bits"), member(format, "byte_order"),
                       format.value("for_this_machine", false) ? "" : ", not this machine"));
  add_fact(out, "soname", member(format, "soname"));
  add_fact(out, "build id", member(format, "build_id"));
  add_fact(out, "symbols",
           fmt::format("{} names, {} exported{}", any_member(format, "symbols"),
                       any_member(format, "exported"),
                       format.value("stripped", false) ? ", stripped" : ""));
  add_fact(out, "glibc",
           member(report, "min_glibc").empty()
               ? ""
               : fmt::format("{} or newer", member(report, "min_glibc")));
  add_fact(out, "processor",
           member(report, "cpu_baseline").empty()
               ? "not noted"
               : fmt::format("{} or newer", member(report, "cpu_baseline")));
}

void add_library(std::string& out, const json& row) {
  const std::string by = member(row, "needed_by");
  const std::string file = member(row, "file");
  out += fmt::format("  {:<28} {}{}\n", member(row, "name"), file.empty() ? "missing" : file,
                     by.empty() ? "" : fmt::format(" (for {})", by));
}

void add_libraries(std::string& out, const json& report) {
  out += "\nneeds\n";
  if (!report.contains("present")) {
    for (const json& one : list_of(report, "needed"))
      out += fmt::format("  {}\n", one.get<std::string>());
    if (list_of(report, "needed").empty()) out += "  nothing\n";
    return;
  }
  const json present = list_of(report, "present");
  const json missing = list_of(report, "missing");
  for (const json& one : missing) add_library(out, one);
  for (const json& one : present) add_library(out, one);
  if (present.empty() && missing.empty()) out += "  nothing\n";
}

std::string library_text(const json& report) {
  const std::string file = member(report, "file");
  std::string out = fmt::format("Library: {}\n", file.substr(file.rfind('/') + 1));
  add_groups(out, report);
  add_backend(out, report);
  add_form(out, report);
  add_libraries(out, report);
  const json problems = list_of(report, "problems");
  out += problems.empty() ? "\nThis library can be loaded here.\n"
                          : "\nThis library cannot be loaded here:\n";
  for (const json& one : problems) {
    out += fmt::format("  {} {}\n", member(one, "code"), member(one, "text"));
    if (const std::string hint = member(one, "hint"); !hint.empty())
      out += fmt::format("    -> {}\n", hint);
  }
  return out;
}

}  // namespace

result<int> analyze_library_command(const invocation& in) {
  if (in.positionals.size() != 1)
    return fail(exit_code::usage,
                in.positionals.empty()
                    ? std::string("needs the path of a library, such as "
                                  "`bitnet analyze-library libllama.so`")
                    : fmt::format("takes one library, found also '{}'", in.positionals[1]));
  const std::string& path = in.positionals.front();
  const auto most_names = static_cast<uint64_t>(in.set.integer("symbols"));
  library_error err;
  std::string text;
  const bitnet_status status = fetch(
      [&](char* out, uint64_t capacity, uint64_t* needed) {
        return bitnet_analyze_library(path.c_str(), most_names, out, capacity, needed, &err);
      },
      text);
  if (status == BITNET_BAD_DATA || status == BITNET_NOT_FOUND)
    return fail(exit_code::usage, err.message);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  const auto report = parse_json(text);
  if (!report) return std::unexpected(report.error());
  if (auto done = print(in.set.flag("json") ? json_line(*report)
                                            : text::printable_lines(library_text(*report)));
      !done)
    return std::unexpected(done.error());
  return report->value("loadable", false) ? exit_code::ok : exit_code::model;
}

}  // namespace bitnet::host
