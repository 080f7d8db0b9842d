#include "http/routes.hpp"

#include <algorithm>
#include <charconv>

namespace bitnet::host::http {
namespace {

using values = std::vector<std::pair<std::string, std::string>>;

std::string_view next_part(std::string_view& path) {  // of "/a/b" takes "a"; "/b" remains
  path.remove_prefix(1);
  const auto end = std::min(path.find('/'), path.size());
  const std::string_view out = path.substr(0, end);
  path.remove_prefix(end);
  return out;
}

bool fits(std::string_view pattern, std::string_view path, values& out) {
  out.clear();
  while (pattern.starts_with('/') && path.starts_with('/')) {
    const std::string_view wanted = next_part(pattern), given = next_part(path);
    if (wanted.starts_with('{') && wanted.ends_with('}')) {
      std::string value;
      if (!percent_decode(given, value) || value.empty()) return false;
      out.emplace_back(wanted.substr(1, wanted.size() - 2), std::move(value));
    } else if (wanted != given) {
      return false;
    }
  }
  return pattern.empty() && path.empty();
}

// Whether a path is `top` or below it.
bool is_below(std::string_view top, std::string_view path) {
  return path.starts_with(top) && (path.size() == top.size() || path[top.size()] == '/');
}

void add_word(std::string& list, std::string_view word) {
  if (list.find(word) != std::string::npos) return;
  if (!list.empty()) list += ", ";
  list += word;
}

}  // namespace

bool percent_decode(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned value = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 2 || read.ptr != digits.data() + 2 || value == 0) return false;
    out += static_cast<char>(value);
    i += 2;
  }
  return true;
}

std::string query_value(std::string_view query, std::string_view key) {
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    std::string_view one = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (!one.starts_with(key) || one.size() <= key.size() || one[key.size()] != '=') continue;
    std::string text(one.substr(key.size() + 1)), out;
    std::ranges::replace(text, '+', ' ');
    return percent_decode(text, out) ? out : "";
  }
  return "";
}

route_table::found route_table::find(std::string_view method, std::string_view path) const {
  found out;
  for (const route& row : rows_) {
    values of_path;
    const bool is_path = std::ranges::any_of(
        row.paths, [&](std::string_view pattern) { return fits(pattern, path, of_path); });
    if (!is_path) continue;
    add_word(out.allowed, row.method);
    if (row.method == "GET") add_word(out.allowed, "HEAD");
    const bool is_method = row.method == method || (row.method == "GET" && method == "HEAD");
    if (!is_method || out.row != nullptr) continue;
    out.row = &row;
    out.values = std::move(of_path);
  }
  if (!out.allowed.empty()) add_word(out.allowed, "OPTIONS");
  return out;
}

const error_form* route_table::errors_for(const request& asked) const {
  for (const route& row : rows_) {
    if (row.errors == nullptr) continue;
    for (const std::string_view path : row.paths)
      if (is_below(path, asked.path)) return row.errors;
  }
  for (const route& row : rows_)
    if (row.errors != nullptr && !row.errors->field.empty() && asked.has(row.errors->field))
      return row.errors;
  return nullptr;
}

}  // namespace bitnet::host::http
