#include "http/policy.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>

#include "text/printable.hpp"

namespace bitnet::host::http {
namespace {

bool is_id(std::string_view text) {
  constexpr std::size_t longest = 128;
  const auto is_id_char = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
           c == '_' || c == '.' || c == ':';
  };
  return !text.empty() && text.size() <= longest && std::ranges::all_of(text, is_id_char);
}

answer rejected(int status, std::string message, std::string code = {}) {
  return error_answer({.status = status, .message = std::move(message), .code = std::move(code)});
}

std::string path_of(const request& asked) {
  return text::printable_ascii(asked.path.substr(0, 200));
}

// Answers OPTIONS, which a browser sends before a page's request (Fetch, 3.3).
answer options_answer(const std::string& allowed, const request& asked, bool of_listed_page) {
  answer out{.status = 204, .fields = {{"Allow", allowed}}};
  if (of_listed_page && asked.has("access-control-request-method")) {
    out.fields.push_back({"Access-Control-Allow-Methods", allowed});
    out.fields.push_back({"Access-Control-Allow-Headers",
                          "authorization, content-type, x-api-key, x-request-id, traceparent"});
    out.fields.push_back({"Access-Control-Max-Age", "600"});
  }
  return out;
}

// Rejects requests by the page that sent them.
std::optional<answer> check_page(const policy& rules, const request& asked, decision& out) {
  const std::string_view origin = asked.value_of("origin");
  if (!asked.has("origin")) return std::nullopt;
  if (rules.names.is_own_page(origin, asked.value_of("host"), rules.is_tls)) return std::nullopt;
  const std::string allowed = rules.origins.allowed(origin);
  if (allowed.empty())
    return rejected(403, fmt::format("pages of '{}' may not use this server; --cors-origin lists "
                                     "those that may",
                                     text::printable_ascii(origin.substr(0, 200))));
  out.fields.push_back({"Access-Control-Allow-Origin", allowed});
  out.fields.push_back({"Access-Control-Expose-Headers", "x-request-id, retry-after"});
  if (allowed != "*") out.fields.push_back({"Vary", "Origin"});
  return std::nullopt;
}

std::optional<answer> check_key(const policy& rules, const route& row, const request& asked,
                                decision& out) {
  const bool is_admin = row.access == access_level::admin;
  if (is_admin && rules.admin_keys.empty())
    return rejected(403,
                    "this route is for administrators, and the server has no key of theirs; "
                    "start it with --admin-key-file");
  if (row.access == access_level::open || (!is_admin && rules.keys.empty())) return std::nullopt;
  if (rules.admin_keys.admits(asked) || (!is_admin && rules.keys.admits(asked)))
    return std::nullopt;
  out.fields.push_back({"WWW-Authenticate", "Bearer"});
  const bool has_one = asked.has("authorization") || asked.has("x-api-key");
  const char* const wrong = is_admin ? "the key is no admin key of this server"
                                     : "the API key is not one of this server's";
  return rejected(401, has_one ? wrong : "an API key is needed: send `Authorization: Bearer KEY`",
                  "invalid_api_key");
}

std::optional<answer> find_route(const policy& rules, const request& asked, decision& out) {
  if (asked.path == "*") return options_answer("GET, HEAD, POST, OPTIONS", asked, false);
  auto found = rules.routes.find(asked.method, asked.path);
  if (found.allowed.empty())
    return rejected(404, fmt::format("there is no '{}' here; /openapi.json lists what there is",
                                     path_of(asked)));
  if (asked.method == "OPTIONS") return options_answer(found.allowed, asked, asked.has("origin"));
  if (found.row == nullptr) {
    answer no = rejected(405, fmt::format("'{}' knows {}, not '{}'", path_of(asked), found.allowed,
                                          text::printable_ascii(asked.method)));
    no.fields.push_back({"Allow", found.allowed});
    return no;
  }
  out.path_values = std::move(found.values);
  out.row = found.row;
  return check_key(rules, *found.row, asked, out);
}

}  // namespace

std::string new_id() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return "";
  std::string out;
  for (const unsigned char one : bytes) out += fmt::format("{:02x}", one);
  return out;
}

decision decide_rejection(const policy& rules, const request& read) {
  decision out;
  const std::string_view given = read.value_of("x-request-id");
  out.id = is_id(given) ? std::string(given) : new_id();
  out.errors = rules.routes.errors_for(read);
  if (out.errors != nullptr && !out.errors->id_field.empty())
    out.fields.push_back({std::string(out.errors->id_field), out.id});
  return out;
}

decision decide(const policy& rules, const request& asked) {
  decision out = decide_rejection(rules, asked);
  out.at_once = check_page(rules, asked, out);
  if (!out.at_once) out.at_once = find_route(rules, asked, out);
  if (out.at_once || out.row->method == "GET") return out;
  out.body_bytes = out.row->body_bytes != 0 ? out.row->body_bytes : rules.bounds.body_bytes;
  return out;
}

}  // namespace bitnet::host::http
