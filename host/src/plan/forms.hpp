#pragma once
// The forms that a plan may request of a backend: settings of backends that choose kernels and
// change nothing else.
//
// Each backend owns its settings: it reads them and documents them on its manual page. The host
// repeats those of this kind in the table of forms.cpp, because
// - a setting that is not in the table, such as a path, could do harm in a plan of another author;
// - a plan file is checked before any plugin is loaded, also on a machine without the backend;
// - neither manifests nor the C API, which is all that the host uses, list a backend's settings.
// The test docs.facts compares the table with the manual pages. A backend without a row needs no
// change here: its kernels are compared with the plan, but a plan cannot request them.

#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.hpp"

namespace bitnet::host::plans {

// A plan may set no other settings.
struct form {
  std::string_view backend, setting;
  std::string_view values;  // "on|off"
};
[[nodiscard]] const std::vector<form>& all_forms();
// Why a setting such as "vulkan.subgroups=0" is not allowed in a plan; "": it is allowed.
[[nodiscard]] std::string why_no_form(std::string_view text);
// Text for messages about a kernel that differs from the plan: the settings of that backend.
[[nodiscard]] std::string forms_text(std::string_view backend);

// The value of cpu.isa that gives the kernels with these ids and names; "": unknown.
[[nodiscard]] std::string isa_of(const part& on);

}  // namespace bitnet::host::plans
