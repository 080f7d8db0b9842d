#pragma once
// Writes the text that fills the gap, in the form of llama-server's /infill.

#include "openai/api_form.hpp"

namespace bitnet::host::infill {

[[nodiscard]] const openai::api_form& form();

}  // namespace bitnet::host::infill
