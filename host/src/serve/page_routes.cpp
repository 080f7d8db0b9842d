#include "serve/page_routes.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "page/page_files.hpp"

namespace bitnet::host {
namespace {

constexpr std::string_view first_file = "index.html";

// The page loads only its own files, connects only to this server, and cannot be framed. Text of a
// model may name other places, but nothing of it is fetched or run.
constexpr const char* content_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::string_view type_of(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  return "image/svg+xml";
}

std::string tag_of(const page_file& file) {
  return '"' + std::string(file.digest.substr(0, 32)) + '"';
}

// Whether If-None-Match names the tag: "*", or a list whose tags may be weak (RFC 9110, 13.1.2).
// Tags are quoted hexadecimal digits, so none is part of another.
bool is_known(const http::request& asked, std::string_view tag) {
  const std::string_view list = asked.value_of("if-none-match");
  return list == "*" || list.find(tag) != std::string_view::npos;
}

http::answer file_answer(const page_file& file, const http::request& asked) {
  const std::string tag = tag_of(file);
  http::answer out{.content_type = std::string(type_of(file.name)),
                   .fields = {{"ETag", tag},
                              {"Cache-Control", "no-cache"},  // cached, and revalidated each time
                              {"Content-Security-Policy", content_policy},
                              {"Referrer-Policy", "no-referrer"},
                              {"Cross-Origin-Resource-Policy", "same-origin"}}};
  if (is_known(asked, tag))
    out.status = 304;
  else
    out.body = file.text;
  return out;
}

void reply_with(const http::exchange_ptr& client, std::string_view name) {
  const auto files = page_files();
  const auto found = std::ranges::find(files, name, &page_file::name);
  if (found == files.end())
    client->reply(http::error_answer(
        {.status = 404, .message = "the page has no file of this name; it begins at /"}));
  else
    client->reply(file_answer(*found, client->asked()));
}

}  // namespace

void add_page(http::route_table& to, const served& with) {
  if (!with.has_page) return;
  to.add({.method = "GET",
          .paths = {"/", "/index.html"},
          .summary = "A page for browsers",
          .handle = [](const http::exchange_ptr& client) { reply_with(client, first_file); },
          .access = http::access_level::open,
          .content_type = "text/html"});
  to.add({.method = "GET",
          .paths = {"/page/{name}"},
          .summary = "A file of that page",
          .handle =
              [](const http::exchange_ptr& client) {
                reply_with(client, client->asked().path_value("name"));
              },
          .access = http::access_level::open,
          .content_type = "*/*"});
}

}  // namespace bitnet::host
