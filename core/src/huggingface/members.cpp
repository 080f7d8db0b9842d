#include "huggingface/members.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "gguf/text.hpp"

namespace bitnet::huggingface {
namespace {

namespace fs = std::filesystem;
using gguf::quote;
using nlohmann::json;

struct type_row {
  uint32_t bit;
  std::string_view name;  // for "expected ..."
};
constexpr type_row type_rows[] = {{types::count, "a count"},
                                  {types::integer, "a whole number"},
                                  {types::number, "a number"},
                                  {types::truth, "true or false"},
                                  {types::text, "a text"},
                                  {types::list, "a list"},
                                  {types::object, "an object"},
                                  {types::counts, "a list of counts"},
                                  {types::numbers, "a list of numbers"},
                                  {types::texts, "a list of texts"}};

std::string names_of(uint32_t wanted) {
  std::string out;
  for (const type_row& row : type_rows)
    if ((wanted & row.bit) != 0) out += fmt::format("{}{}", out.empty() ? "" : " or ", row.name);
  return out;
}

bool is_float_number(const json& x) {
  if (!x.is_number()) return false;
  const auto wide = x.get<double>();
  return std::isfinite(wide) && std::abs(wide) <= double{std::numeric_limits<float>::max()};
}

bool is_count(const json& x) {
  return x.is_number_unsigned() && x.get<uint64_t>() <= UINT32_MAX;
}

bool is_one_of(const json& x, uint32_t wanted) {
  const auto all = [&](bool (*fits)(const json&)) {
    return x.is_array() && std::ranges::all_of(x, fits);
  };
  const auto is = [&](uint32_t bit, bool fits) { return (wanted & bit) != 0 && fits; };
  return is(types::count, is_count(x)) || is(types::integer, x.is_number_integer()) ||
         is(types::number, is_float_number(x)) || is(types::truth, x.is_boolean()) ||
         is(types::text, x.is_string()) || is(types::list, x.is_array()) ||
         is(types::object, x.is_object()) || is(types::counts, all(is_count)) ||
         is(types::numbers, all(is_float_number)) ||
         is(types::texts, all([](const json& one) { return one.is_string(); }));
}

// The path whose rows apply to an object: rope_parameters has those of rope_scaling.
std::string rows_of(const std::string& path) {
  for (const char* same :
       {"rope_parameters.full_attention", "rope_parameters.sliding_attention", "rope_parameters"})
    if (path == same) return "rope_scaling";
  return path;
}

bool is_of(std::string_view type, std::string_view all) {
  if (all.empty()) return true;
  while (!all.empty()) {
    const size_t end = std::min(all.find(' '), all.size());
    if (all.substr(0, end) == type) return true;
    all.remove_prefix(std::min(end + 1, all.size()));
  }
  return false;
}

const member_row* row_of(std::string_view file, const std::string& path, const std::string& name) {
  const auto find = [&](const std::string& full) {
    const auto found = std::ranges::find_if(
        member_rows(), [&](const member_row& r) { return r.file == file && r.name == full; });
    return found == member_rows().end() ? nullptr : &*found;
  };
  const auto at = [&](const std::string& place) {
    const member_row* row = find(place.empty() ? name : fmt::format("{}.{}", place, name));
    return row != nullptr || !place.empty() ? row : find("*");
  };
  const member_row* own = at(path);
  return own != nullptr ? own : at(rows_of(path));
}

// Whether members of an object have their own rows.
bool is_walked(std::string_view file, const std::string& full) {
  const std::string beginning = rows_of(full) + ".";
  return std::ranges::any_of(member_rows(), [&](const member_row& r) {
    return r.file == file && r.name.starts_with(beginning);
  });
}

struct walk {
  std::string_view file, type;
  members_left_out& out;

  void name(const std::string& member, std::string_view why) const {
    out.push_back({std::string(file), member, std::string(why)});
  }

  [[nodiscard]] result<void> members(const json& object, const std::string& path) const {
    for (const auto& [key, x] : object.items()) {
      if (x.is_null()) continue;
      const std::string full = path.empty() ? key : fmt::format("{}.{}", path, key);
      if (auto ok = member(full, row_of(file, path, key), x); !ok) return ok;
    }
    return {};
  }

  [[nodiscard]] result<void> member(const std::string& full, const member_row* row,
                                    const json& x) const {
    if (row == nullptr) {
      name(full, "unknown to this program");
    } else if (!is_of(type, row->only)) {
      name(full, fmt::format("of models of type {}", row->only));
    } else if (row->what == member_use::left_out) {
      name(full, row->why);
    } else if (row->what == member_use::used && row->types != 0) {
      if (!is_one_of(x, row->types))
        return bad_data(fmt::format("{}: {} is {}; expected {}", file, quote(full), type_of(x),
                                    names_of(row->types)));
      if (x.is_object() && is_walked(file, full)) return members(x, full);
    }
    return {};
  }
};

// Matches a pattern with at most one '*', or two in names of shards.
bool matches(std::string_view name, std::string_view pattern) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  name.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  for (size_t skipped = 0; skipped <= name.size(); ++skipped)
    if (matches(name.substr(skipped), pattern)) return true;
  return false;
}

}  // namespace

std::string type_of(const json& x) {
  constexpr size_t shown = 40;
  std::string spelled = x.dump(-1, ' ', false, json::error_handler_t::replace);
  if (x.is_string()) return fmt::format("the text {}", quote(x.get_ref<const std::string&>()));
  if (x.is_array()) return fmt::format("a list of {}", x.size());
  if (x.is_object()) return "an object";
  if (spelled.size() > shown) spelled.resize(shown);
  return spelled;
}

result<void> check_members(const json& object, std::string_view file, std::string_view type,
                           members_left_out& out) {
  return walk{file, type, out}.members(object, "");
}

void name_files(const fs::path& folder, members_left_out& out) {
  constexpr size_t most = 1000;  // a folder may hold many other files
  std::vector<std::string> names;
  std::error_code stop;
  for (fs::directory_iterator it(folder, stop), end; !stop && it != end && names.size() < most;
       it.increment(stop))
    names.push_back(it->path().filename().native());
  std::ranges::sort(names);
  for (const std::string& name : names) {
    const auto row =
        std::ranges::find_if(file_rows(), [&](const file_row& r) { return matches(name, r.name); });
    if (row != file_rows().end() && row->what == member_use::left_out)
      out.push_back({name, "", std::string(row->why)});
  }
}

}  // namespace bitnet::huggingface
