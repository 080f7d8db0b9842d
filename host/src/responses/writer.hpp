#pragma once
// Writes the answer of the Responses API: a complete object, or events in the order that OpenAI's
// SDK expects.
//
//   response.created, response.in_progress
//   for each block: response.output_item.added, for thinking and text response.content_part.added,
//   its deltas, its complete text, response.content_part.done, response.output_item.done
//   response.completed, or response.incomplete where max_output_tokens ended it

#include "openai/api_form.hpp"

namespace bitnet::host::responses {

[[nodiscard]] const openai::api_form& form();

}  // namespace bitnet::host::responses
