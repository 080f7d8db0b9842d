// --skip-if-missing: a command whose backend is missing ends as if it had nothing to do.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "commands/gated.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

struct missing_backend {
  std::string requested, reason;
};

// Words in a request that are classes of devices. `cpu` is also a backend's name, so it is not one.
bool is_class(const std::string& word) {
  return word == "auto" || word == "gpu" || word == "npu" || word == "other";
}

// The backend's own reason, if it is installed. For a list or a class of devices, the command's
// failure message.
missing_backend missing(const invocation& in, const std::string& message) {
  missing_backend out{in.set.text("device"), message};
  auto runtime = open_runtime(in);
  if (!runtime) return out;
  library_error err;
  if (bitnet_runtime_select(runtime->get(), &err) == BITNET_OK) return out;
  const auto report = runtime_report(runtime->get());
  if (!report) return out;
  const std::string backend = out.requested.substr(0, out.requested.find(':'));
  if (is_class(backend) || backend.find(',') != std::string::npos) return out;
  for (const auto& one : list_of(*report, "backends")) {
    if (any_member(one, "name") != backend) continue;
    const std::string reason = any_member(one, "reason");
    if (!reason.empty() && any_member(one, "code") != "BN-OK") out.reason = reason;
    return out;
  }
  out.reason = "no backend of that name is installed";
  return out;
}

// Output that programs read says that it was skipped.
result<void> print_skip(const invocation& in, const missing_backend& what) {
  const std::string format = in.set.has("output-format") ? in.set.text("output-format")
                             : in.set.has("json") && in.set.flag("json") ? "json"
                                                                         : "md";
  const std::string line = fmt::format("skipped (no {}: {})", what.requested, what.reason);
  if (format == "md") return print(text::printable_lines(line + "\n"));
  if (format == "json" || format == "jsonl")
    return print(
        json_line({{"skipped", true}, {"requested", what.requested}, {"reason", what.reason}}));
  in.out.line(line);
  return {};
}

}  // namespace

result<int> skipped_if_missing(const invocation& in, result<int> done) {
  if (done || done.error().exit_code != exit_code::unavailable) return done;
  if (!in.set.has("skip-if-missing")) return done;
  const bool marked = in.set.flag("skip-exit");
  if (!marked && !in.set.flag("skip-if-missing")) return done;
  const missing_backend what = missing(in, done.error().message);
  if (auto printed = print_skip(in, what); !printed) return std::unexpected(printed.error());
  return marked ? exit_code::skipped : exit_code::ok;
}

}  // namespace bitnet::host
