#include "receipt/shape.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "json/reading.hpp"
#include "plugin/trust/ed25519.hpp"
#include "receipt/derived.hpp"

namespace bitnet::receipt {
namespace {

enum class kind : uint8_t {
  text,
  text_or_null,
  word,   // one of the words that '|' separates
  time,   // "2026-11-28T12:00:00Z"
  hex16,  // bytes in hexadecimal
  hex32,
  count,  // an integer, not negative
  integer,
  number,  // not negative
  number_or_null,
  signed_,
  boolean,
  list,  // of objects with their own rows
  texts,
  ids,  // token ids
  object
};
enum class need : uint8_t { always, when_ran, optional };

struct shape_row {
  const char* object;  // "": the predicate itself; "x[]": each element of x
  const char* name;
  kind what;
  need when;
  const char* words = "";
};

// clang-format off: one member per line.
constexpr shape_row shape[] = {
    {"", "schema_version", kind::word, need::always, "1.0.0|1.0"},
    {"", "receipt_id", kind::hex16, need::always},
    {"", "timestamp", kind::time, need::always},
    {"", "status", kind::word, need::always, "ok|failed|cancelled"},
    {"", "failure", kind::object, need::optional},
    {"failure", "status", kind::integer, need::always},
    {"failure", "message", kind::text, need::always},
    {"", "compute_path", kind::word, need::always, "real|mock|none"},
    {"", "backend", kind::text, need::always},
    {"", "backend_summary", kind::text, need::always},
    {"", "deterministic", kind::boolean, need::always},
    {"", "tokens_requested", kind::integer, need::when_ran},
    {"", "tokens_generated", kind::count, need::always},
    {"", "tokens_per_second", kind::number, need::always},
    {"", "kernels", kind::texts, need::always},
    {"", "kernel_stats", kind::list, need::always},
    {"kernel_stats[]", "id", kind::text, need::always},
    {"kernel_stats[]", "op", kind::text, need::always},
    {"kernel_stats[]", "backend", kind::text, need::always},
    {"kernel_stats[]", "device", kind::text, need::always},
    {"kernel_stats[]", "place", kind::count, need::always},
    {"kernel_stats[]", "calls", kind::count, need::always},
    {"kernel_stats[]", "format", kind::text, need::optional},
    {"kernel_stats[]", "level", kind::word, need::optional, "reference|optimised|fused|none"},
    {"kernel_stats[]", "precision", kind::text, need::optional},
    {"kernel_stats[]", "time_ns", kind::count, need::optional},
    {"kernel_stats[]", "bytes", kind::count, need::optional},
    {"", "devices", kind::list, need::always},
    {"devices[]", "place", kind::count, need::always},
    {"devices[]", "backend", kind::text, need::always},
    {"devices[]", "device", kind::text, need::always},
    {"devices[]", "class", kind::text, need::always},
    {"devices[]", "fake", kind::boolean, need::always},
    {"devices[]", "plugin", kind::count, need::always},
    {"devices[]", "name", kind::text, need::optional},
    {"devices[]", "uuid", kind::text, need::optional},
    {"devices[]", "pci_address", kind::text, need::optional},
    {"devices[]", "arch", kind::text, need::optional},
    {"devices[]", "driver_version", kind::text, need::optional},
    {"", "coverage", kind::object, need::always},
    {"coverage", "ops_total", kind::count, need::always},
    {"coverage", "ops_on_selected", kind::count, need::always},
    {"coverage", "ops_elsewhere", kind::count, need::always},
    {"coverage", "fused", kind::count, need::always},
    {"coverage", "optimised", kind::count, need::always},
    {"coverage", "reference", kind::count, need::always},
    {"coverage", "unlisted", kind::count, need::always},
    {"", "plugins", kind::list, need::always},
    {"plugins[]", "name", kind::text, need::always},
    {"plugins[]", "version", kind::text, need::always},
    {"plugins[]", "path", kind::text, need::always},
    {"plugins[]", "bytes", kind::count, need::always},
    {"plugins[]", "sha256", kind::hex32, need::always},
    {"plugins[]", "build_id", kind::text, need::optional},
    {"plugins[]", "abi", kind::text, need::optional},
    {"", "selection", kind::object, need::always},
    {"selection", "requested", kind::text, need::always},
    {"selection", "requested_by", kind::text, need::always},
    {"selection", "selected", kind::text, need::always},
    {"selection", "detected", kind::texts, need::always},
    {"selection", "device", kind::text, need::optional},
    {"selection", "fake", kind::boolean, need::optional},
    {"selection", "fallback", kind::boolean, need::optional},
    {"selection", "rejected", kind::list, need::always},
    {"selection.rejected[]", "name", kind::text, need::always},
    {"selection.rejected[]", "code", kind::text, need::always},
    {"selection.rejected[]", "reason", kind::text, need::always},
    {"", "model", kind::object, need::when_ran},
    {"model", "name", kind::text, need::always},
    {"model", "path", kind::text, need::always},
    {"model", "digest", kind::hex32, need::always},
    {"model", "files", kind::list, need::always},
    {"model", "arch", kind::text, need::always},
    {"model", "quant", kind::texts, need::always},
    {"model", "parameters", kind::count, need::always},
    {"model", "context", kind::count, need::always},
    {"model", "layers", kind::count, need::always},
    {"model", "vocabulary", kind::count, need::always},
    {"model", "weight_bytes", kind::count, need::always},
    {"model", "signature", kind::object, need::optional},
    {"model.signature", "key", kind::hex32, need::always},
    {"model.signature", "digest", kind::hex32, need::always},
    {"model.signature", "certificate", kind::hex32, need::optional},
    {"model.signature", "subject", kind::text, need::optional},
    {"model.files[]", "name", kind::text, need::always},
    {"model.files[]", "bytes", kind::count, need::always},
    {"model.files[]", "sha256", kind::hex32, need::always},
    {"", "tokenizer", kind::object, need::when_ran},
    {"tokenizer", "kind", kind::text, need::always},
    {"tokenizer", "sha256", kind::hex32, need::always},
    {"", "template", kind::object, need::when_ran},
    {"template", "name", kind::text, need::optional},
    {"template", "sha256", kind::hex32, need::optional},
    {"", "sampling", kind::object, need::when_ran},
    {"sampling", "ignore_eos", kind::boolean, need::always},
    {"sampling", "logit_bias", kind::list, need::always},
    {"sampling", "dry_breakers", kind::texts, need::always},
    {"sampling", "temperature", kind::signed_, need::always},
    {"sampling.logit_bias[]", "token", kind::integer, need::always},
    {"", "constraints", kind::object, need::when_ran},
    {"constraints", "grammar_sha256", kind::hex32, need::optional},
    {"constraints", "json_schema_sha256", kind::hex32, need::optional},
    {"constraints", "stop_strings", kind::count, need::always},
    {"constraints", "reasoning_budget", kind::integer, need::always},
    {"constraints", "stop_tokens", kind::ids, need::always},
    {"", "seed", kind::count, need::when_ran},
    {"", "stop", kind::word, need::when_ran, "none|length|eos|string|token|context|cancelled|grammar"},
    {"", "salt", kind::hex32, need::when_ran},
    {"", "prompt", kind::object, need::when_ran},
    {"prompt", "tokens", kind::count, need::always},
    {"prompt", "sha256", kind::hex32, need::always},
    {"prompt", "ids", kind::ids, need::optional},
    {"", "output", kind::object, need::when_ran},
    {"output", "tokens", kind::count, need::always},
    {"output", "sha256", kind::hex32, need::always},
    {"output", "ids", kind::ids, need::optional},
    {"", "prompt_sha256", kind::hex32, need::when_ran},
    {"", "output_token_sha256", kind::hex32, need::when_ran},
    {"", "batch", kind::object, need::when_ran},
    {"batch", "n_context", kind::count, need::always},
    {"batch", "n_batch", kind::count, need::always},
    {"batch", "sequences", kind::count, need::always},
    {"batch", "steps", kind::count, need::always},
    {"batch", "tokens", kind::count, need::always},
    {"batch", "step_tokens", kind::count, need::optional},
    {"batch", "mean_sequences", kind::number, need::optional},
    {"", "precision", kind::word, need::when_ran, "f32|f16|bf16"},
    {"", "kv", kind::object, need::when_ran},
    {"kv", "dtype_k", kind::text, need::always},
    {"kv", "dtype_v", kind::text, need::always},
    {"kv", "bytes", kind::count, need::always},
    {"", "timings", kind::object, need::when_ran},
    {"timings", "prompt_tokens", kind::count, need::always},
    {"timings", "generated_tokens", kind::count, need::always},
    {"timings", "prompt_ms", kind::number, need::always},
    {"timings", "generate_ms", kind::number, need::always},
    {"timings", "wall_ms", kind::number, need::always},
    {"timings", "queue_ms", kind::number, need::optional},
    {"", "memory", kind::object, need::always},
    {"memory", "rss_peak_bytes", kind::count, need::always},
    {"", "host", kind::object, need::always},
    {"host", "os", kind::text, need::always},
    {"host", "machine", kind::text, need::always},
    {"host", "version", kind::text, need::always},
    {"host", "compiler", kind::text, need::always},
    {"host", "build_type", kind::text, need::always},
    {"host", "cpu", kind::text, need::optional},
    {"host", "threads", kind::count, need::always},
    {"", "parts", kind::list, need::when_ran},
    {"parts[]", "device", kind::text, need::always},
    {"", "moves", kind::list, need::optional},
    {"moves[]", "from", kind::text, need::always},
    {"moves[]", "to", kind::text, need::always},
    {"moves[]", "why", kind::text, need::always},
    {"moves[]", "method", kind::text, need::always},
    {"", "gates", kind::list, need::always},
    {"gates[]", "name", kind::text, need::always},
    {"gates[]", "limit", kind::signed_, need::always},
    {"gates[]", "measured", kind::signed_, need::always},
    {"gates[]", "passed", kind::boolean, need::always},
    {"", "environment", kind::object, need::always},
    {"", "commit_sha", kind::text_or_null, need::always},
    {"", "model_sha", kind::text_or_null, need::always},
    {"", "driver_version", kind::text_or_null, need::always},
    {"", "tokens_per_sec", kind::number, need::always},
    {"", "gate_wall_time_ms", kind::number_or_null, need::always},
    {"", "program", kind::object, need::optional},
};
// clang-format on

constexpr std::size_t most_shape_findings = 64;

bool is_one_of(std::string_view words, std::string_view word) {
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t end = std::min(words.find('|', at), words.size());
    if (words.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

// 'd' in the pattern matches a digit, other characters themselves.
bool is_time(std::string_view text) {
  constexpr std::string_view pattern = "dddd-dd-ddTdd:dd:ddZ";
  return text.size() == pattern.size() && std::ranges::equal(text, pattern, [](char c, char p) {
           return p == 'd' ? c >= '0' && c <= '9' : c == p;
         });
}

bool is_number(const json::value& v) {
  return v.is_number_unsigned() || (v.is_number() && v.get<double>() >= 0);
}

bool is_id(const json::value& v) {
  return v.is_number_integer() && v.get<int64_t>() >= 0 &&
         v.get<int64_t>() <= std::numeric_limits<int32_t>::max();
}

bool all_of(const json::value& v, bool (*fits)(const json::value&)) {
  return v.is_array() && std::ranges::all_of(v, fits);
}

bool is_text(const json::value& v) {
  return v.is_string();
}

bool is_hex(const json::value& v, std::size_t bytes) {
  return v.is_string() && plugin::is_hexadecimal(v.get_ref<const std::string&>(), bytes);
}

bool has_kind(const json::value& v, const shape_row& row) {
  switch (row.what) {
    case kind::text:
      return v.is_string();
    case kind::text_or_null:
      return v.is_string() || v.is_null();
    case kind::word:
      return v.is_string() && is_one_of(row.words, v.get_ref<const std::string&>());
    case kind::time:
      return v.is_string() && is_time(v.get_ref<const std::string&>());
    case kind::hex16:
      return is_hex(v, 16);
    case kind::hex32:
      return is_hex(v, 32);
    case kind::count:
      return v.is_number_unsigned();
    case kind::integer:
      return v.is_number_integer();
    case kind::number:
      return is_number(v);
    case kind::number_or_null:
      return v.is_null() || is_number(v);
    case kind::signed_:
      return v.is_number();
    case kind::boolean:
      return v.is_boolean();
    case kind::list:
      return all_of(v, [](const json::value& e) { return e.is_object(); });
    case kind::texts:
      return all_of(v, is_text);
    case kind::ids:
      return all_of(v, is_id);
    case kind::object:
      return v.is_object();
  }
  return false;
}

std::string expected(const shape_row& row) {
  switch (row.what) {
    case kind::text:
      return "a text";
    case kind::text_or_null:
      return "a text or null";
    case kind::word:
      return fmt::format("one of {}", row.words);
    case kind::time:
      return "a time such as 2026-11-28T12:00:00Z";
    case kind::hex16:
      return "32 hexadecimal digits in lower case";
    case kind::hex32:
      return "64 hexadecimal digits in lower case";
    case kind::count:
      return "a whole number that is not negative";
    case kind::integer:
      return "a whole number";
    case kind::number:
      return "a number that is not negative";
    case kind::number_or_null:
      return "a number that is not negative, or null";
    case kind::signed_:
      return "a number";
    case kind::boolean:
      return "true or false";
    case kind::list:
      return "a list of objects";
    case kind::texts:
      return "a list of texts";
    case kind::ids:
      return "a list of ids of tokens";
    case kind::object:
      return "an object";
  }
  return "";
}

class shape_check {
 public:
  shape_check(bool ran, findings& found) : ran_(ran), found_(found) {}

  void check(const json::value& object, std::string_view of, const std::string& path) {
    for (const shape_row& row : shape) {
      if (found_.size() >= most_shape_findings) return;
      if (row.object != of) continue;
      const std::string field = path.empty() ? row.name : path + "." + row.name;
      const auto at = object.find(row.name);
      if (at == object.end()) {
        if (row.when == need::always || (row.when == need::when_ran && ran_))
          complain(field, fmt::format("expected {}, found nothing", expected(row)));
        continue;
      }
      if (!has_kind(*at, row))
        complain(field, fmt::format("expected {}, found {}", expected(row), json::described(*at)));
      else
        descend(*at, row, field);
    }
  }

 private:
  void complain(const std::string& field, std::string text) {
    found_.push_back({finding::level_type::error, "schema", field, std::move(text)});
  }

  void descend(const json::value& at, const shape_row& row, const std::string& field) {
    const std::string of =
        *row.object == '\0' ? row.name : std::string(row.object) + "." + row.name;
    if (row.what == kind::object) check(at, of, field);
    if (row.what != kind::list) return;
    for (std::size_t i = 0; i < at.size(); ++i)
      check(at[i], of + "[]", fmt::format("{}[{}]", field, i));
  }

  const bool ran_;
  findings& found_;
};

void check_kernel_names(const json::value& predicate, findings& found) {
  const json::value& kernels = json::member(predicate, "kernels");
  const json::value& rows = json::member(predicate, "kernel_stats");
  const auto complain = [&](std::string field, std::string text) {
    found.push_back({finding::level_type::error, "schema", std::move(field), std::move(text)});
  };
  for (const auto& [list, name] : {std::pair(&kernels, "kernels"), {&rows, "kernel_stats"}})
    if (list->size() > most_kernels)
      complain(name, fmt::format("expected at most {}, found {}", most_kernels, list->size()));
  for (std::size_t i = 0; i < kernels.size() && found.size() < most_shape_findings; ++i) {
    const auto& id = kernels[i].get_ref<const std::string&>();
    if (id.find_first_not_of(" \t\r\n") != std::string::npos && id.size() <= longest_kernel_id)
      continue;
    complain("kernels", fmt::format("expected ids of 1 to {} bytes, found another one at {}",
                                    longest_kernel_id, i));
    return;
  }
}

}  // namespace

void check_shape(const json::value& predicate, findings& found) {
  const std::size_t before = found.size();
  shape_check(text_in(predicate, "status") == "ok", found).check(predicate, "", "");
  if (found.size() == before) check_kernel_names(predicate, found);
}

}  // namespace bitnet::receipt
