#include "receipts/receipts.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "basic/json.hpp"
#include "files/new_file.hpp"
#include "text/json_members.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;

// The result borrows from the settings and from `facts`.
bitnet_receipt_options receipt_options(const settings& set, const std::string& facts) {
  bitnet_receipt_options out{};
  bitnet_receipt_defaults(&out, sizeof out);
  out.with_tokens = set.has("receipt-tokens") && set.flag("receipt-tokens") ? 1 : 0;
  const std::string& key = set.text("receipt-key");
  if (key == "none")
    out.key_file = "";
  else if (!key.empty())
    out.key_file = key.c_str();
  out.facts = borrowed(facts);
  return out;
}

// Names of the selected device, as the runtime describes it.
json selected_names(bitnet_runtime* runtime) {
  const auto report = runtime_report(runtime);
  if (!report) return names_of_device("", "");
  const std::string device = member(*report, "device");
  const std::size_t colon = device.rfind(':');
  for (const json& backend : list_of(*report, "backends")) {
    if (colon == std::string::npos || member(backend, "name") != device.substr(0, colon)) continue;
    for (const json& one : list_of(backend, "devices"))
      if (any_member(one, "index") == device.substr(colon + 1))
        return names_of_device(member(one, "driver_version"), member(one, "arch"));
  }
  return names_of_device("", "");
}

// Adds the members that come from the program, not from the library.
std::string facts_text(const invocation& in, bitnet_runtime* runtime, json facts) {
  facts.update(selected_names(runtime));
  json& program = facts["program"];
  if (!program.contains("command")) program["command"] = "run";
  if (in.set.has("chat-template") && in.set.given("chat-template"))
    program["chat_template"] = in.set.text("chat-template");
  return json_text(facts);
}

// The library's status for an exit code; the message says more.
bitnet_status status_of(int code) {
  switch (code) {
    case exit_code::usage:
      return BITNET_INVALID_ARGUMENT;
    case exit_code::model:
      return BITNET_BAD_DATA;
    case exit_code::unavailable:
      return BITNET_UNAVAILABLE;
    case exit_code::out_of_memory:
      return BITNET_OUT_OF_MEMORY;
    case exit_code::rejected:
      return BITNET_REJECTED;
    case exit_code::fake:
      return BITNET_FORBIDDEN;
    case exit_code::interrupted:
      return BITNET_CANCELLED;
    default:
      return BITNET_INTERNAL;
  }
}

result<void> write_receipt(const std::string& file, const std::string& text) {
  if (auto done = files::write_file(file, text); !done)
    return fail(exit_code::failure, fmt::format("cannot write {}: {}", file, done.error().text));
  return {};
}

template <class Call>
result<std::string> receipt_text(const Call& call) {
  library_error err;
  std::string text;
  const bitnet_status status =
      fetch([&](char* out, uint64_t capacity,
                uint64_t* needed) { return call(out, capacity, needed, &err); },
            text);
  if (status != BITNET_OK)
    return fail(exit_code::failure, fmt::format("no receipt: {}", err.message));
  return text;
}

template <class Call>
result<void> fetch_receipt(const std::string& file, const Call& call) {
  const auto text = receipt_text(call);
  return text ? write_receipt(file, *text) : std::unexpected(text.error());
}

result<void> write_of_session(const invocation& in, const engine& on, const json& facts) {
  const std::string added = facts_text(in, on.runtime.get(), facts);
  const bitnet_receipt_options options = receipt_options(in.set, added);
  return fetch_receipt(in.set.text("receipt"), [&](char* out, uint64_t capacity, uint64_t* needed,
                                                   bitnet_error* err) {
    return bitnet_session_receipt(on.session.get(), &options, out, capacity, needed, err);
  });
}

result<void> write_of_failure(const invocation& in, bitnet_runtime* runtime, const failure& why) {
  const std::string added = facts_text(in, runtime, {{"program", {{"exit_code", why.exit_code}}}});
  const bitnet_receipt_options options = receipt_options(in.set, added);
  return fetch_receipt(in.set.text("receipt"), [&](char* out, uint64_t capacity, uint64_t* needed,
                                                   bitnet_error* err) {
    return bitnet_runtime_receipt(runtime, status_of(why.exit_code), why.message.c_str(), &options,
                                  out, capacity, needed, err);
  });
}

}  // namespace

json names_of_device(const std::string& driver_version, const std::string& arch) {
  json out = {{"cuda_version", nullptr}, {"sm_arch", nullptr}};
  constexpr std::string_view cuda = "CUDA ";
  if (driver_version.starts_with(cuda))
    out["cuda_version"] = driver_version.substr(
        cuda.size(), driver_version.find_first_not_of("0123456789.", cuda.size()) - cuda.size());
  if (arch.starts_with("sm_")) out["sm_arch"] = arch;
  return out;
}

result<std::string> request_receipt(const invocation& in, bitnet_runtime* runtime,
                                    bitnet_request* request, uint32_t choice, json program) {
  const std::string added = facts_text(in, runtime, {{"program", std::move(program)}});
  const bitnet_receipt_options options = receipt_options(in.set, added);
  return receipt_text([&](char* out, uint64_t capacity, uint64_t* needed, bitnet_error* err) {
    return bitnet_request_receipt(request, choice, &options, out, capacity, needed, err);
  });
}

std::optional<json> stated_predicate(std::string_view receipt) {
  bitnet_receipt_check check{};
  bitnet_receipt_check_defaults(&check, sizeof check);
  check.allow_unsigned = 1;
  check.skip_plugins = 1;
  library_error err;
  std::string written;
  const bitnet_status status = fetch(
      [&](char* out, uint64_t capacity, uint64_t* needed) {
        return bitnet_receipt_verify(borrowed(receipt), &check, out, capacity, needed, &err);
      },
      written);
  if (status != BITNET_OK) return std::nullopt;
  const auto verdict = parse_json(written);
  if (!verdict) return std::nullopt;
  const json& predicate = text::at(text::at(*verdict, "statement"), "predicate");
  return predicate.is_object() ? std::optional(predicate) : std::nullopt;
}

result<int> with_receipt(const invocation& in, const engine& on, result<int> done) {
  return with_receipt(in, on, std::move(done), json::object());
}

result<int> with_receipt(const invocation& in, const engine& on, result<int> done,
                         const json& facts) {
  if (in.set.text("receipt").empty()) return done;
  auto written = write_of_session(in, on, facts);
  // The failure came before anything was generated, so the session has no answer.
  if (!written && !done) written = write_of_failure(in, on.runtime.get(), done.error());
  if (written) return done;
  if (done) return std::unexpected(written.error());
  in.out.error(written.error().message);
  return done;
}

result<int> with_failed_receipt(const invocation& in, const failure& why) {
  if (in.set.text("receipt").empty()) return std::unexpected(why);
  const auto runtime = open_runtime(in);
  const auto written = runtime ? write_of_failure(in, runtime->get(), why)
                               : result<void>(std::unexpected(runtime.error()));
  if (!written) in.out.error(written.error().message);
  return std::unexpected(why);
}

}  // namespace bitnet::host
