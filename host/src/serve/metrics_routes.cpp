#include "serve/metrics_routes.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "basic/json.hpp"
#include "log/log_queue.hpp"
#include "service/metrics_text.hpp"
#include "service/process_metrics.hpp"
#include "service/runtime_metrics.hpp"
#include "session/engine.hpp"

namespace bitnet::host {
namespace {

nlohmann::json build_info() {
  std::string text;
  const bitnet_status status =
      fetch([](char* out, uint64_t capacity,
               uint64_t* needed) { return bitnet_build_info(out, capacity, needed, nullptr); },
            text);
  const auto info = status == BITNET_OK ? parse_json(text) : result<nlohmann::json>();
  nlohmann::json out = info && info->is_object() ? *info : nlohmann::json::object();
  out["version"] = bitnet_version();
  return out;
}

std::string metrics_body(const served& with) {
  metrics_text out;
  const auto report = runtime_report(with.engine->facts().runtime);
  write_runtime(out, build_info(), report ? *report : nlohmann::json::object());
  out.begin("bitnet_log_lines_dropped_total", "counter",
            "Lines of the log that were dropped, as they came faster than they could be written.");
  out.sample(static_cast<double>(n_log_lines_dropped()));
  out.begin("bitnet_spans_sent_total", "counter", "Spans that the collector of traces took.");
  out.sample(with.traces == nullptr ? 0 : static_cast<double>(with.traces->n_sent()));
  out.begin("bitnet_spans_dropped_total", "counter",
            "Spans that the collector of traces rejected, or took too late.");
  out.sample(with.traces == nullptr ? 0 : static_cast<double>(with.traces->n_dropped()));
  out.begin("bitnet_receipts_written_total", "counter", "Files with receipts of answers.");
  out.sample(with.receipts == nullptr ? 0 : static_cast<double>(with.receipts->n_written()));
  out.begin("bitnet_receipts_dropped_total", "counter",
            "Receipts of requests that could not be written, or came faster than they could be.");
  out.sample(with.receipts == nullptr ? 0 : static_cast<double>(with.receipts->n_dropped()));
  write_process(out);
  return with.engine->metrics(with.n_connections()) + out.text();
}

}  // namespace

void add_metrics(http::route_table& to, const served& with) {
  to.add({.method = "GET",
          .paths = {"/metrics"},
          .summary = "Counts, for Prometheus",
          .handle =
              [&with](const http::exchange_ptr& client) {
                client->reply({.content_type = std::string(metrics_content_type),
                               .body = metrics_body(with)});
              },
          .content_type = metrics_content_type});
}

}  // namespace bitnet::host
