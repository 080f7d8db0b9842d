#include "plan/making.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "basic/json.hpp"

namespace bitnet::host::plans {
namespace {

using nlohmann::json;

uint64_t count_at(const json& from, const char* key) {
  const auto found = from.find(key);
  return found != from.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

// An op in the library's report.
struct op {
  std::string name = {}, level = {};
  uint32_t body = 0;
  std::optional<uint32_t> layer = {};
  std::vector<std::string> formats = {};
  uint64_t weight_bytes = 0;
};

op op_of(const json& from) {
  op out{.name = member(from, "op"), .level = member(from, "level")};
  out.body = static_cast<uint32_t>(count_at(from, "body"));
  if (from.contains("layer")) out.layer = static_cast<uint32_t>(count_at(from, "layer"));
  for (const json& one : list_of(from, "formats"))
    if (one.is_string()) out.formats.push_back(one.get<std::string>());
  out.weight_bytes = count_at(from, "weight_bytes");
  return out;
}

// The kernels counted in a step.
class counted {
 public:
  counted(const json& kernels, std::string device) : device_(std::move(device)) {
    if (!kernels.is_array()) return;
    for (const json& k : kernels)
      if (member(k, "device") == device_ && count_at(k, "calls") != 0) rows_.push_back(k);
  }

  // Kernels of the op, limited to its formats if the device lists the kernel's formats.
  [[nodiscard]] std::vector<std::string> of(const op& one) const {
    std::vector<std::string> out;
    for (const json& k : rows_) {
      if (member(k, "op") != one.name) continue;
      const std::string format = member(k, "format");
      if (!format.empty() && !one.formats.empty() &&
          std::ranges::find(one.formats, format) == one.formats.end())
        continue;
      out.push_back(member(k, "id"));
    }
    std::ranges::sort(out);
    return out;
  }

 private:
  std::string device_;
  std::vector<json> rows_;
};

bool continues(const row& before, const row& next) {
  if (before.op != next.op || before.formats != next.formats || before.level != next.level ||
      before.token != next.token || before.prompt != next.prompt ||
      before.layers.has_value() != next.layers.has_value())
    return false;
  if (!before.layers || !next.layers) return true;
  return next.layers->first == before.layers->last || next.layers->first == before.layers->last + 1;
}

// Adds a row, or extends that of the same op in the layers before.
void add_row(std::vector<row>& to, row next) {
  const auto same =
      std::ranges::find_if(to, [&](const row& before) { return continues(before, next); });
  if (same == to.end()) {
    to.push_back(std::move(next));
    return;
  }
  if (auto& layers = same->layers; layers && next.layers) layers->last = next.layers->last;
  same->weight_bytes += next.weight_bytes;
  same->n_ops += next.n_ops;
}

// Whether a composite's body ran: it was not counted itself, but ops of its body were.
bool runs_body(std::span<const op> ops, std::size_t at, const counted& token,
               const counted& prompt) {
  const op& one = ops[at];
  if (one.body == 0) return false;
  if (one.level == "none") return true;
  if (!token.of(one).empty() || !prompt.of(one).empty()) return false;
  const std::size_t end = std::min(ops.size(), at + 1 + one.body);
  return std::ranges::any_of(ops.subspan(at + 1, end - at - 1), [&](const op& inner) {
    return !token.of(inner).empty() || !prompt.of(inner).empty();
  });
}

std::vector<row> rows_of(std::span<const op> ops, const counted& token, const counted& prompt) {
  std::vector<row> out;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (runs_body(ops, i, token, prompt)) continue;
    const op& one = ops[i];
    row next{.op = one.name,
             .formats = one.formats,
             .level = one.level,
             .token = token.of(one),
             .prompt = prompt.of(one),
             .weight_bytes = one.weight_bytes,
             .n_ops = 1,
             .n_covered = one.body};
    if (one.layer) next.layers = layer_range{*one.layer, *one.layer};
    add_row(out, std::move(next));
    i += one.body;
  }
  return out;
}

// The id without its instruction set: "qkv_rope_kv.ternary2".
std::string_view stem_of(std::string_view id) {
  return id.substr(0, id.rfind('.'));
}

}  // namespace

std::vector<part> parts_of(const json& program, const json& token, const json& prompt) {
  std::vector<part> out;
  for (const json& from : list_of(program, "parts")) {
    part one{.device = member(from, "device"), .backend = member(from, "backend")};
    one.embedding = any_member(from, "embedding") == "true";
    one.head = any_member(from, "head") == "true";
    if (const auto layers = from.find("layers"); layers != from.end()) {
      one.first_layer = static_cast<uint32_t>(count_at(*layers, "first"));
      one.n_layers = static_cast<uint32_t>(count_at(*layers, "count"));
    }
    std::vector<op> ops;
    for (const json& o : list_of(from, "ops")) ops.push_back(op_of(o));
    one.rows = rows_of(ops, counted(token, one.device), counted(prompt, one.device));
    out.push_back(std::move(one));
  }
  return out;
}

void explain(part& of, const json& listed) {
  std::vector<std::string> ids;
  for (const json& k : listed.is_array() ? listed : json::array()) ids.push_back(member(k, "id"));
  for (row& one : of.rows) {
    if (one.n_covered != 0) one.why = fmt::format("one kernel in place of {} ops", one.n_covered);
    if (one.token.size() != 1) continue;
    const std::string& id = one.token.front();
    const auto n =
        std::ranges::count_if(ids, [&](const std::string& k) { return stem_of(k) == stem_of(id); });
    const std::string by = std::ranges::find(ids, id) == ids.end()
                               ? "chosen by the backend, which does not list it"
                           : n == 1 ? "the only form that the backend lists"
                                    : fmt::format("1 of {} forms that the backend lists", n);
    one.why += (one.why.empty() ? "" : "; ") + by;
  }
}

}  // namespace bitnet::host::plans
