#pragma once
// A receipt that is right in all its parts, made by hand, and its key.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "receipt/derived.hpp"
#include "receipt/envelope.hpp"
#include "receipt/rules.hpp"

namespace bitnet::receipt::test {

// RFC 8410, section 10.3.
inline const std::string private_pem =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
    "-----END PRIVATE KEY-----\n";
inline const std::string public_hex =
    "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";

inline const std::string some_sum(64, '1');
inline const std::string salt(64, '2');

// A kernel of two that ran on the first, and one of the second, device of a cut model.
inline json::value counters() {
  return json::value::parse(R"([
    {"id": "linear.ternary2.wide", "op": "linear_ternary", "backend": "mine", "device": "mine:0",
     "place": 0, "format": "ternary2", "level": "fused", "calls": 60, "bytes": 640},
    {"id": "add.wide", "op": "add", "backend": "mine", "device": "mine:0", "place": 0,
     "level": "optimised", "calls": 30},
    {"id": "add.wide", "op": "add", "backend": "other", "device": "other:1", "place": 1,
     "level": "reference", "calls": 10}])");
}

inline json::value what_ran() {
  json::value out = json::value::parse(R"({
    "devices": [
      {"place": 0, "backend": "mine", "device": "mine:0", "class": "gpu", "fake": false,
       "plugin": 0, "name": "a card", "arch": "x9", "driver_version": "1.2"},
      {"place": 1, "backend": "other", "device": "other:1", "class": "cpu", "fake": false,
       "plugin": 1}],
    "parts": [{"device": "other:1"}, {"device": "mine:0"}],
    "plugins": [
      {"name": "mine", "version": "1", "path": "/no/such/mine.so", "bytes": 10},
      {"name": "other", "version": "1", "path": "/no/such/other.so", "bytes": 11}],
    "selection": {"requested": "auto", "requested_by": "default", "detected": ["mine", "other"],
                  "selected": "mine", "device": "mine:0",
                  "rejected": [{"name": "other", "code": "BN-S-RANK", "reason": "comes behind"}]},
    "backend": "mine", "backend_summary": "requested=auto detected=[mine,other] selected=mine",
    "deterministic": false})");
  for (json::value& one : out["plugins"]) one["sha256"] = some_sum;
  out["kernel_stats"] = counters();
  out["kernels"] = kernel_ids(out["kernel_stats"]);
  out["coverage"] = to_json(coverage_of(out["kernel_stats"], "mine:0"));
  return out;
}

inline json::value answer_facts() {
  json::value out = json::value::parse(R"({
    "tokens_requested": 3, "tokens_generated": 3, "seed": 7, "stop": "length", "precision": "f32",
    "sampling": {"ignore_eos": false, "logit_bias": [], "dry_breakers": ["\n"], "temperature": 0.8},
    "constraints": {"stop_strings": 0, "stop_tokens": [], "reasoning_budget": -1},
    "prompt": {"tokens": 2, "ids": [1, 70000]}, "output": {"tokens": 3, "ids": [5, 6, 7]},
    "batch": {"n_context": 64, "n_batch": 8, "sequences": 1, "steps": 4, "tokens": 5},
    "kv": {"dtype_k": "f16", "dtype_v": "f16", "bytes": 128},
    "timings": {"prompt_tokens": 2, "prompt_ms": 1.5, "generated_tokens": 3, "generate_ms": 6,
                "wall_ms": 8},
    "tokens_per_second": 500, "tokens_per_sec": 500, "template": {},
    "gates": [{"name": "min-tps", "limit": 100, "measured": 500, "passed": true}]})");
  out["salt"] = salt;
  for (const auto& [what, sum] :
       {std::pair("prompt", "prompt_sha256"), {"output", "output_token_sha256"}}) {
    out[what]["sha256"] = token_sum(salt, what, out[what]["ids"].get<std::vector<int32_t>>());
    out[sum] = out[what]["sha256"];
  }
  out["tokenizer"] = {{"kind", "llama"}, {"sha256", some_sum}};
  return out;
}

inline json::value good_predicate() {
  json::value out = json::value::parse(R"({
    "schema_version": "1.0.0", "receipt_id": "00112233445566778899aabbccddeeff",
    "timestamp": "2026-11-28T12:00:00Z", "status": "ok", "compute_path": "real",
    "memory": {"rss_peak_bytes": 1000},
    "host": {"os": "Linux", "machine": "x86_64", "threads": 2, "version": "0.1.0",
             "compiler": "gcc", "build_type": "Release"},
    "environment": {}, "commit_sha": null, "driver_version": "1.2", "gate_wall_time_ms": null})");
  out.update(what_ran());
  out.update(answer_facts());
  json::value model = json::value::parse(R"({
    "name": "a model", "path": "/models/a.gguf", "arch": "bitnet", "quant": ["I2_S"],
    "parameters": 10, "context": 64, "layers": 2, "vocabulary": 8, "weight_bytes": 40})");
  model["files"] = {{{"name", "a.gguf"}, {"bytes", 50}, {"sha256", some_sum}}};
  model["digest"] = model_sum(model["files"]);
  out["model"] = std::move(model);
  out["model_sha"] = some_sum;
  return out;
}

inline json::value statement_of(json::value predicate) {
  json::value out = {{"_type", statement_type}};
  out["subject"] = subject_of(predicate["model"]);
  out["predicateType"] = predicate_type;
  out["predicate"] = std::move(predicate);
  return out;
}

inline std::string signed_text(const json::value& statement) {
  return make_envelope(statement.dump(), private_pem).value_or("");
}

// By the key above, without a look at plugins.
inline question plain_question() {
  question out;
  out.signers = {{public_hex, "key.pem"}};
  out.look_at_plugins = false;
  return out;
}

}  // namespace bitnet::receipt::test
