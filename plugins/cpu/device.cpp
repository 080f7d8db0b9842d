#include "device.hpp"

#include <sched.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "primitives.hpp"

namespace bitnet::cpu {
namespace {

// The processor's own name, "" if it does not report one.
std::string brand() {
#if defined(__x86_64__)
  unsigned registers[12] = {};
  for (size_t leaf = 0; leaf < 3; ++leaf) {
    unsigned* r = registers + 4 * leaf;
    if (!__get_cpuid(0x80000002u + static_cast<unsigned>(leaf), &r[0], &r[1], &r[2], &r[3]))
      return "";
  }
  char text[sizeof registers + 1] = {};
  std::memcpy(text, registers, sizeof registers);
  std::string name = text;
  const auto first = name.find_first_not_of(' ');
  return first == std::string::npos ? ""
                                    : name.substr(first, name.find_last_not_of(' ') - first + 1);
#else
  return "";
#endif
}

// Number of cores that this process may use, 0 if unknown.
uint32_t usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<uint32_t>(CPU_COUNT(&set));
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? static_cast<uint32_t>(online) : 0;
}

constexpr const char* architecture =
#if defined(__x86_64__)
    "x86-64";
#elif defined(__aarch64__)
    "aarch64";
#else
    "generic";
#endif

// True if one of the form's own kernels is disabled. Kernels that end with "scalar" are shared by
// all forms and do not count.
bool is_disabled(const isa_form& form, std::string_view disabled) {
  if (disabled.empty()) return false;
  const std::string list = "," + std::string(disabled) + ",";
  sdk::definition of_form;
  add_primitives(form, of_form);
  for (const top_head_bits bits : {exact_bits(form), fast_bits(form)})
    add_composites(form, bits, of_form);
  const auto named = [&](const std::string& id) {
    return !id.ends_with(std::string(".") + scalar_form.name) &&
           list.find("," + id + ",") != std::string::npos;
  };
  return std::ranges::any_of(of_form.primitives, named, &sdk::primitive::id) ||
         std::ranges::any_of(of_form.composites, [&](const sdk::composite& c) {
           return named(c.id) || named(c.top.id);
         });
}

}  // namespace

const isa_form* choose_isa(std::string_view wanted, std::string& why, std::string_view disabled) {
  std::string all, usable;
  const isa_form* best = nullptr;
  const isa_form* named = nullptr;
  for (const isa_form& form : isa_forms) {
    all += (all.empty() ? "" : ", ") + std::string(form.name);
    if (wanted == form.name) named = &form;
    if (!form.supported() || (&form != &scalar_form && is_disabled(form, disabled))) continue;
    usable += (usable.empty() ? "" : ", ") + std::string(form.name);
    if (!best) best = &form;
  }
  if (wanted.empty()) return best;
  const bool wrong = named && named != &scalar_form && is_disabled(*named, disabled);
  if (named && named->supported() && !wrong) return named;
  const std::string quoted(wanted.substr(0, 40));  // the message has room for one line
  if (!named)
    why = "there is no isa \"" + quoted + "\"; set BITNET_CPU_ISA to one of: " + all;
  else
    why = (wrong ? "a kernel of isa " + quoted + " computes wrongly on this CPU"
                 : "this CPU cannot run isa " + quoted) +
          "; set BITNET_CPU_ISA to one of: " + usable;
  return nullptr;
}

const isa_form& permitted(const isa_form& chosen) {
  const isa_form* form = &chosen;
  while (form->ask && !form->ask()) ++form;  // the last form needs no permission
  return *form;
}

bitnet_device_info describe_device(const isa_form& isa, const isa_form& computing) {
  bitnet_device_info info{};
  info.device_class = BITNET_DEVICE_CPU;
  std::snprintf(info.name, sizeof info.name, "%s", brand().c_str());
  std::snprintf(info.arch, sizeof info.arch, "%s %s", architecture, isa.name);
  if (&isa != &computing)
    std::snprintf(info.driver_version, sizeof info.driver_version, "%s refused", isa.name);
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0)
    info.memory_total_bytes = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page);
  info.max_allocation_bytes = info.memory_total_bytes;
  info.compute_units = usable_cores();
  info.attention_flags = BITNET_ATTENTION_WINDOW | BITNET_ATTENTION_LAYER_WINDOW;
  info.logits_flags = BITNET_LOGITS_LARGEST;
  info.kv_dtypes = kv_dtypes;
  return info;
}

}  // namespace bitnet::cpu
