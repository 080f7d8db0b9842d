#pragma once
// The routes of a server of OpenAI's API.

#include <functional>
#include <memory>

#include "http/routes.hpp"
#include "serve/serving.hpp"
#include "trace/span_exporter.hpp"

namespace bitnet::host {

// What the routes use; it must exist when the first request comes.
struct served {
  serving* engine = nullptr;
  service_life* life = nullptr;
  std::function<std::size_t()> n_connections = {};
  bool has_page = true;                          // the browser page at "/"
  const trace::span_exporter* traces = nullptr;  // nullptr: no traces are sent
  const receipt_folder* receipts = nullptr;      // nullptr: no receipts are written
};

// `with` outlives the table.
[[nodiscard]] http::route_table serve_routes(const served& with);

}  // namespace bitnet::host
