#include "serve/infill_routes.hpp"

#include "infill/writer.hpp"

namespace bitnet::host {

void add_infill(http::route_table& to, const served& with) {
  to.add({.method = "POST",
          .paths = {"/infill"},
          .summary = "What stands in a gap of a text",
          .handle =
              [&with](const http::exchange_ptr& client) {
                with.engine->answer(infill::form(), client);
              },
          .answer = "Infill",
          .event = "Infill",
          .body = {{"input_prefix", "string", "the text before the gap", true},
                   {"input_suffix", "string", "the text behind it", true},
                   {"input_extra", "array", "other files, each with filename and text"},
                   {"prompt", "string", "what follows input_prefix, such as the begin of a line"},
                   {"n_predict", "integer", "tokens to generate at most; 0 computes the prompt"},
                   {"temperature", "number", "0: the most probable token"},
                   {"top_k", "integer", "so many of the most probable tokens"},
                   {"top_p", "number", "the most probable tokens of this sum of probabilities"},
                   {"seed", "integer", "of the random choice"},
                   {"stop", "array", "texts that end the answer"},
                   {"response_fields", "array", "members of the answer, as timings/prompt_n"},
                   {"stream", "boolean", "answer by events while the text comes"}}});
}

}  // namespace bitnet::host
