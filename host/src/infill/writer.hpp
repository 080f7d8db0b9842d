#pragma once
// What fills a gap, in the form of llama-server's /infill.

#include "openai/api_form.hpp"

namespace bitnet::host::infill {

[[nodiscard]] const openai::api_form& form();

}  // namespace bitnet::host::infill
