#pragma once
// The forms of forms.hpp, and that of AMX with emulated tiles, which needs AVX-512 VNNI only.

#include "forms.hpp"
#if defined(__x86_64__)
#include "tile_emulator.hpp"
#endif

namespace bitnet::parity {

#if defined(__x86_64__)
inline const cpu::isa_form& emulated_form() {
  static const cpu::isa_form form = [] {
    cpu::isa_form out = cpu::isa_forms[0];
    out.name = "amx-emulated";
    out.supported = cpu::has_avx512vnni;
    out.panel.run = cpu::linear_panel_emulated;
    out.ask = nullptr;
    return out;
  }();
  return form;
}
#endif

inline std::vector<const cpu::isa_form*> real_and_emulated_forms() {
  std::vector<const cpu::isa_form*> out = all_forms();
#if defined(__x86_64__)
  if (emulated_form().supported()) out.push_back(&emulated_form());
#endif
  return out;
}

}  // namespace bitnet::parity
