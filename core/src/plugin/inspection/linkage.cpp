#include "plugin/inspection/linkage.hpp"

#include <fmt/core.h>

#include <elf.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "plugin/codes/text.hpp"

namespace bitnet::plugin {
namespace {

// Imports that need the library after dlclose: destructors of thread variables and thread keys,
// calls at exit.
constexpr auto pinning_imports = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"__cxa_thread_atexit", "a thread_local variable has a destructor"},
    {"__cxa_thread_atexit_impl", "a thread_local variable has a destructor"},
    {"pthread_key_create", "a thread key may have a destructor"},
    {"tss_create", "a thread key may have a destructor"},
    {"atexit", "a call at the end of the process may be left"},
    {"on_exit", "a call at the end of the process may be left"},
});

// Their threads are never stopped.
constexpr auto openmp_libraries =
    std::to_array<std::string_view>({"libgomp.", "libomp.", "libiomp5."});

bool has_flag(const elf_image& image, int64_t tag, uint64_t flag) {
  return (image.dynamic_value(tag).value_or(0) & flag) != 0;
}

void examine_memory(const elf_image& image, findings& found) {
  if (image.dynamic_value(DT_TEXTREL) || has_flag(image, DT_FLAGS, DF_TEXTREL))
    found.error("text relocations", code::inspect_text_relocation,
                "has text relocations: its code would be written to when it is loaded");
  else if (std::ranges::any_of(image.segments(), [](const Elf64_Phdr& p) {
             return p.p_type == PT_LOAD && (p.p_flags & PF_W) != 0 && (p.p_flags & PF_X) != 0;
           }))
    found.error("text relocations", code::inspect_text_relocation,
                "has a segment that is both writable and executable");
  else
    found.ok("text relocations", "none");

  const auto stack =
      std::ranges::find(image.segments(), uint32_t{PT_GNU_STACK}, &Elf64_Phdr::p_type);
  if (stack == image.segments().end())
    found.error("stack", code::inspect_exec_stack,
                "does not say that its stack need not be executable (no PT_GNU_STACK), so that all "
                "stacks of the process would be");
  else if ((stack->p_flags & PF_X) != 0)
    found.error("stack", code::inspect_exec_stack,
                "asks for an executable stack, which all threads of the process would get");
  else
    found.ok("stack", "not executable");
}

void examine_hardening(const elf_image& image, findings& found) {
  std::vector<std::string> lacks;
  if (!image.dynamic_value(DT_BIND_NOW) && !has_flag(image, DT_FLAGS, DF_BIND_NOW) &&
      !has_flag(image, DT_FLAGS_1, DF_1_NOW))
    lacks.emplace_back("is bound lazily (no -z now)");
  if (std::ranges::find(image.segments(), uint32_t{PT_GNU_RELRO}, &Elf64_Phdr::p_type) ==
      image.segments().end())
    lacks.emplace_back("leaves its relocated data writable (no -z relro)");
  if (lacks.empty())
    found.ok("hardening", "bound at load, relocated data read-only");
  else
    found.warning("hardening", code::inspect_hardening, join(lacks, " and "));
}

std::vector<std::string> list_pins(const elf_image& image) {
  std::vector<std::string> pins;
  const auto add = [&pins](std::string why) {
    if (std::ranges::find(pins, why) == pins.end()) pins.push_back(std::move(why));
  };
  if (has_flag(image, DT_FLAGS_1, DF_1_NODELETE)) add("it is linked with -z nodelete");
  for (const std::string_view library : image.dynamic_strings(DT_NEEDED))
    for (const std::string_view start : openmp_libraries)
      if (library.starts_with(start))
        add(fmt::format("the threads of {} stay", printable(library)));
  const auto symbols = image.symbols();
  if (!symbols) return pins;  // the check of exports reports it
  for (const elf_image::symbol& symbol : *symbols) {
    if (symbol.defined && symbol.binding == STB_GNU_UNIQUE)
      add(fmt::format("it has the unique symbol {}", printable(symbol.name, 128)));
    if (symbol.defined) continue;
    for (const auto& [name, why] : pinning_imports)
      if (symbol.name == name) add(fmt::format("it calls {}: {}", name, why));
  }
  return pins;
}

void examine_unloading(const elf_image& image, inspection& out, findings& found) {
  out.pins = list_pins(image);
  if (out.pins.empty())
    found.ok("unloadable", out.note.unloadable ? "yes" : "no, as its note does not declare it");
  else if (out.note.unloadable)
    found.error("unloadable", code::inspect_pinned,
                fmt::format("declares itself unloadable, but {}", join(out.pins, ", ")));
  else if (has_flag(image, DT_FLAGS_1, DF_1_NODELETE))
    found.warning(
        "unloadable", code::inspect_pinned,
        fmt::format("no, because {}; each reload leaves a copy behind", join(out.pins, ", ")),
        "link the plugin without -z nodelete");
  else
    found.ok("unloadable", fmt::format("no, because {}", join(out.pins, ", ")));
}

// Coverage of stack depth always uses a thread variable in static TLS.
bool is_instrumented(const elf_image& image) {
  const auto symbols = image.symbols();
  return symbols && std::ranges::any_of(*symbols, [](const elf_image::symbol& s) {
           return !s.defined && s.name == "__sancov_lowest_stack";
         });
}

}  // namespace

void examine_linkage(const elf_image& image, inspection& out, findings& found) {
  // Initial-exec TLS comes from a small area that all libraries of the process share.
  if (has_flag(image, DT_FLAGS, DF_STATIC_TLS) && is_instrumented(image))
    found.warning("static TLS", code::inspect_static_tls,
                  "used by the fuzzer's instrumentation; not for a release");
  else if (has_flag(image, DT_FLAGS, DF_STATIC_TLS))
    found.error("static TLS", code::inspect_static_tls,
                "uses static TLS, which runs out after some plugins");
  else
    found.ok("static TLS", "none");
  examine_memory(image, found);
  examine_hardening(image, found);
  examine_unloading(image, out, found);
}

}  // namespace bitnet::plugin
