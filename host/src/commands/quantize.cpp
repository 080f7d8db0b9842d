// bitnet quantize, bitnet convert: write a model with other weight types as a new file.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "commands/commands.hpp"
#include "library/left_out.hpp"
#include "model_files/find_model.hpp"
#include "process/interrupt.hpp"
#include "terminal/progress.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;

int32_t on_progress(void* user, uint64_t done, uint64_t total) {
  static_cast<progress_bar*>(user)->update(done, total);
  return interrupt::requested() ? 1 : 0;
}

std::string report_text(const json& report) {
  std::string out =
      fmt::format("{}: {} bytes\n", report.value("file", ""), report.value("bytes", uint64_t{0}));
  for (const json& one : report.value("tensors", json::array())) {
    out += fmt::format("  {:<8} {:>5} tensors {:>14} bytes\n", one.value("type", ""),
                       one.value("count", uint64_t{0}), one.value("bytes", uint64_t{0}));
  }
  for (const json& one : report.value("readings", json::array())) {
    out += fmt::format("  {:>5} tensors were {}\n", one.value("tensors", uint64_t{0}),
                       one.value("as", ""));
  }
  for (const json& one : report.value("kept", json::array())) {
    out += fmt::format("  {} stays {}: {}\n", one.value("tensor", ""), one.value("type", ""),
                       one.value("why", ""));
  }
  // First tensors, then members of the folder's other files.
  const json left_out = report.value("left_out", json::array());
  const json members = report.value("left_out_members", json::array());
  if (const std::size_t tensors = left_out.size() - members.size(); tensors != 0) {
    out += fmt::format(
        "  left out: {} tensors that predict further tokens or see images, {} to {}\n", tensors,
        left_out.front().get<std::string>(), left_out[tensors - 1].get<std::string>());
  }
  out += left_out_text(members, "  left out: ");
  if (report.value("verified", false)) {
    out +=
        fmt::format("  verified: ternary values equal; other types within {:.2g} of their size\n",
                    report.value("dense_error", 0.0));
  }
  return out;
}

result<int> write_model(const invocation& in, const std::string& from, const std::string& to,
                        const char* type) {
  auto file = find_model(from, in.variables);
  if (!file) return std::unexpected(file.error());
  const bitnet_model_options model = model_options(in.set);
  const std::string& embedding = in.set.text("token-embedding-type");
  const std::string& output_type = in.set.text("output-tensor-type");
  bitnet_convert_options options{};
  bitnet_convert_defaults(&options, sizeof options);
  options.type = type;
  if (!embedding.empty()) options.embedding_type = embedding.c_str();
  if (!output_type.empty()) options.output_type = output_type.c_str();
  options.overwrite = in.set.flag("force") ? 1 : 0;
  options.verify = in.set.flag("verify") ? 1 : 0;
  options.lossy = in.set.flag("lossy") ? 1 : 0;
  options.model = &model;
  options.n_threads = static_cast<uint32_t>(std::max<int64_t>(in.set.integer("threads"), 0));

  library_error err;
  std::string report;
  bitnet_status status = BITNET_OK;
  {
    const interrupt::scope until_written;
    progress_bar bar(in.out, "writing");
    options.progress = on_progress;
    options.progress_user = &bar;
    status = bitnet_convert(file->c_str(), to.c_str(), &options, keep_text, &report, &err);
  }
  if (status != BITNET_OK) return failed(status, err, stage::model);
  auto content = parse_json(report);
  if (!content) return std::unexpected(content.error());
  if (auto done = print(in.set.flag("json") ? json_line(*content)
                                            : text::printable_lines(report_text(*content)));
      !done) {
    return std::unexpected(done.error());
  }
  return exit_code::ok;
}

}  // namespace

result<int> quantize_command(const invocation& in) {
  const auto& words = in.positionals;
  if (words.size() != 3) {
    return fail(exit_code::usage,
                fmt::format("expected IN OUT TYPE, found {} words; such as `bitnet quantize "
                            "model-f16.gguf model-i2_s.gguf i2_s`",
                            words.size()));
  }
  return write_model(in, words[0], words[1], words[2].c_str());
}

result<int> convert_command(const invocation& in) {
  const auto& words = in.positionals;
  if (words.size() != 2) {
    return fail(exit_code::usage, fmt::format("expected DIR OUT, found {} words; such as `bitnet "
                                              "convert bitnet-b1.58-2B-4T model.gguf`",
                                              words.size()));
  }
  const bool chosen = in.set.given("type");
  return write_model(in, words[0], words[1], chosen ? in.set.text("type").c_str() : nullptr);
}

}  // namespace bitnet::host
