// Every rule by which a receipt is judged, with a receipt that breaks just that one and is signed
// all the same: the finding names the field.

#include "receipt/rules.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "../../scratch_folder.hpp"
#include "receipt/base64.hpp"
#include "receipt/digest.hpp"
#include "sample.hpp"

namespace bitnet::receipt {
namespace {

using level = finding::level_type;
using test::good_predicate;
using test::plain_question;
using test::signed_text;
using test::statement_of;

std::string listed(const findings& found) {
  std::string out;
  for (const finding& f : found) out += f.rule + ": " + f.field + ": " + f.text + "\n";
  return out;
}

// Of a text that is an envelope.
verdict judged(const std::string& text, const question& asked = plain_question()) {
  auto out = judge(text, asked);
  EXPECT_TRUE(out.has_value()) << (out ? "" : out.error().message);
  return out ? *std::move(out) : verdict{};
}

TEST(receipt, of_a_correct_run_is_valid) {
  const verdict v = judged(signed_text(statement_of(good_predicate())));
  EXPECT_TRUE(v.is_valid()) << listed(v.found);
  EXPECT_TRUE(v.gates_pass());
  EXPECT_EQ(v.signed_by, "key.pem");
}

struct forged_row {
  const char* why;
  const char* rule;
  const char* field;
  std::function<void(json::value& predicate)> forge;
};

std::ostream& operator<<(std::ostream& out, const forged_row& r) {
  return out << r.why;
}

class forged : public testing::TestWithParam<forged_row> {};

TEST_P(forged, is_rejected_by_its_field) {
  const forged_row& r = GetParam();
  json::value predicate = good_predicate();
  r.forge(predicate);
  const verdict v = judged(signed_text(statement_of(std::move(predicate))));
  EXPECT_FALSE(v.is_valid());
  bool named = false;
  for (const finding& f : v.found) named = named || (f.rule == r.rule && f.field == r.field);
  EXPECT_TRUE(named) << "expected " << r.rule << ": " << r.field << ", found\n" << listed(v.found);
}

using value = json::value;

const forged_row shape_rows[] = {
    {"another version", "schema", "schema_version", [](value& p) { p["schema_version"] = "2"; }},
    {"no id", "schema", "receipt_id", [](value& p) { p.erase("receipt_id"); }},
    {"an id in capitals", "schema", "receipt_id",
     [](value& p) { p["receipt_id"] = std::string(32, 'A'); }},
    {"no time", "schema", "timestamp", [](value& p) { p["timestamp"] = "yesterday"; }},
    {"a status of its own", "schema", "status", [](value& p) { p["status"] = "fine"; }},
    {"a negative count", "schema", "kernel_stats[1].calls",
     [](value& p) { p["kernel_stats"][1]["calls"] = -1; }},
    {"a count as a text", "schema", "model.files[0].bytes",
     [](value& p) { p["model"]["files"][0]["bytes"] = "50"; }},
    {"kernels as a text", "schema", "kernels", [](value& p) { p["kernels"] = "add"; }},
    {"a level of its own", "schema", "kernel_stats[0].level",
     [](value& p) { p["kernel_stats"][0]["level"] = "perfect"; }},
    {"an id that is no token", "schema", "output.ids",
     [](value& p) { p["output"]["ids"][0] = uint64_t{1} << 40U; }},
    {"a sum that is too short", "schema", "plugins[1].sha256",
     [](value& p) { p["plugins"][1]["sha256"] = "12"; }},
    {"no model", "schema", "model", [](value& p) { p["model"] = 5; }},
    {"no seed", "schema", "seed", [](value& p) { p.erase("seed"); }},
    {"a blank kernel", "schema", "kernels",
     [](value& p) {
       p["kernels"][0] = " ";
       p["kernel_stats"][0]["id"] = " ";
     }},
    {"a kernel's id of a page", "schema", "kernels",
     [](value& p) {
       p["kernels"][0] = std::string(129, 'a');
       p["kernel_stats"][0]["id"] = std::string(129, 'a');
     }},
};
INSTANTIATE_TEST_SUITE_P(shape, forged, testing::ValuesIn(shape_rows));

const forged_row counter_rows[] = {
    {"stated, and nothing ran", "counters", "compute_path",
     [](value& p) {
       p["kernel_stats"] = value::array();
       p["kernels"] = value::array();
       p["coverage"] = to_json(coverage());
     }},
    {"a kernel that is none", "counters", "compute_path",
     [](value& p) {
       p["kernels"][0] = "a.MOCK.kernel";
       p["kernel_stats"][0]["id"] = "a.MOCK.kernel";
     }},
    {"a mock that says so", "selection", "compute_path",
     [](value& p) {
       p["kernels"][0] = "mock";
       p["kernel_stats"][0]["id"] = "mock";
       p["compute_path"] = "mock";
     }},
    {"a kernel that did not run", "counters", "kernels",
     [](value& p) { p["kernels"].push_back("attention.wide"); }},
    {"kernels in another order", "counters", "kernels",
     [](value& p) { std::swap(p["kernels"][0], p["kernels"][1]); }},
    {"calls of no device", "counters", "kernel_stats[2].place",
     [](value& p) { p["kernel_stats"][2]["place"] = 2; }},
    {"a kernel of another backend", "counters", "kernel_stats[1].backend",
     [](value& p) { p["kernel_stats"][1]["backend"] = "other"; }},
    {"a kernel of another device", "counters", "kernel_stats[1].device",
     [](value& p) { p["kernel_stats"][1]["device"] = "mine:1"; }},
    {"a row of no calls", "counters", "kernel_stats[1].calls",
     [](value& p) { p["kernel_stats"][1]["calls"] = 0; }},
    {"a place that is taken", "counters", "devices[1].place",
     [](value& p) { p["devices"][1]["place"] = 0; }},
    {"a device by another plugin", "counters", "devices[1].plugin",
     [](value& p) { p["devices"][1]["plugin"] = 0; }},
    {"a device of another backend", "counters", "devices[1].device",
     [](value& p) {
       p["devices"][1]["device"] = "mine:1";
       p["kernel_stats"][2]["device"] = "mine:1";
       p["parts"][0]["device"] = "mine:1";
     }},
    {"more fused calls than there were", "counters", "coverage.fused",
     [](value& p) { p["coverage"]["fused"] = 61; }},
    {"more calls than there were", "counters", "coverage.ops_total",
     [](value& p) { p["coverage"]["ops_total"] = 101; }},
    {"calls where they were not", "counters", "coverage.ops_on_selected",
     [](value& p) { p["coverage"]["ops_on_selected"] = 100; }},
    {"a kernel's counter that was raised", "counters", "coverage.ops_total",
     [](value& p) { p["kernel_stats"][1]["calls"] = 31; }},
};
INSTANTIATE_TEST_SUITE_P(counters, forged, testing::ValuesIn(counter_rows));

const forged_row selection_rows[] = {
    {"a run that failed", "selection", "status",
     [](value& p) {
       p["status"] = "failed";
       p["failure"] = {{"status", 3}, {"message", "no"}};
     }},
    {"a failure of a run that did not", "selection", "failure",
     [](value& p) { p["failure"] = {{"status", 3}, {"message", "no"}}; }},
    {"fakes", "selection", "selection.fake", [](value& p) { p["selection"]["fake"] = true; }},
    {"a device that is pretended", "selection", "devices[1].fake",
     [](value& p) { p["devices"][1]["fake"] = true; }},
    {"a backend that was not selected", "selection", "backend",
     [](value& p) { p["backend"] = "other"; }},
    {"a device of another backend than the selected", "selection", "selection.device",
     [](value& p) { p["selection"]["device"] = "other:1"; }},
    {"one that was selected and not detected", "selection", "selection.detected",
     [](value& p) {
       p["selection"]["detected"] = {"other"};
       p["backend_summary"] = "requested=auto detected=[other] selected=mine";
     }},
    {"another line", "selection", "backend_summary",
     [](value& p) { p["backend_summary"] = "requested=mine detected=[mine] selected=mine"; }},
    {"another driver", "selection", "driver_version",
     [](value& p) { p["driver_version"] = "1.3"; }},
    {"a silent fallback: another device computed", "selection", "kernel_stats[2].device",
     [](value& p) { p["parts"].erase(0); }},
    {"the selected one computed nothing", "selection", "selection.device",
     [](value& p) {
       p["kernel_stats"].erase(0);
       p["kernel_stats"].erase(0);
       p["kernels"] = kernel_ids(p["kernel_stats"]);
       p["coverage"] = to_json(coverage_of(p["kernel_stats"], "mine:0"));
     }},
};
INSTANTIATE_TEST_SUITE_P(selection, forged, testing::ValuesIn(selection_rows));

const forged_row answer_rows[] = {
    {"another prompt", "answer", "prompt.ids", [](value& p) { p["prompt"]["ids"][1] = 70001; }},
    {"another answer", "answer", "output.ids", [](value& p) { p["output"]["ids"][2] = 8; }},
    {"a token less", "answer", "output.ids", [](value& p) { p["output"]["ids"].erase(2); }},
    {"another sum of the prompt", "answer", "prompt_sha256",
     [](value& p) { p["prompt_sha256"] = test::some_sum; }},
    {"another sum of the answer", "answer", "output_token_sha256",
     [](value& p) { p["output_token_sha256"] = test::some_sum; }},
    {"another salt", "answer", "prompt.ids", [](value& p) { p["salt"] = test::some_sum; }},
    {"more tokens than there are", "answer", "tokens_generated",
     [](value& p) { p["tokens_generated"] = 4; }},
    {"more tokens than were timed", "answer", "timings.generated_tokens",
     [](value& p) { p["timings"]["generated_tokens"] = 4; }},
    {"more of the prompt than there is", "answer", "timings.prompt_tokens",
     [](value& p) { p["timings"]["prompt_tokens"] = 3; }},
    {"a rate that was made up", "answer", "tokens_per_second",
     [](value& p) { p["tokens_per_second"] = 8500; }},
    {"the other rate", "answer", "tokens_per_sec", [](value& p) { p["tokens_per_sec"] = 8500; }},
    {"a time that was made shorter", "answer", "tokens_per_second",
     [](value& p) { p["timings"]["generate_ms"] = 1; }},
    {"a whole below its parts", "answer", "timings.wall_ms",
     [](value& p) { p["timings"]["wall_ms"] = 2; }},
    {"another model's sum", "subject", "model_sha",
     [](value& p) { p["model_sha"] = std::string(64, '3'); }},
    {"another digest", "subject", "model.digest",
     [](value& p) { p["model"]["digest"] = std::string(64, '3'); }},
    {"a file's sum that was changed", "subject", "model.digest",
     [](value& p) { p["model"]["files"][0]["sha256"] = std::string(64, '3'); }},
    {"a model without files", "subject", "model.files",
     [](value& p) { p["model"]["files"] = value::array(); }},
    {"a gate that says that it was met", "gates", "gates[0].passed",
     [](value& p) { p["gates"][0]["measured"] = 99; }},
};
INSTANTIATE_TEST_SUITE_P(answer, forged, testing::ValuesIn(answer_rows));

// Of a request whose steps others shared: the predicate of a session with what they had.
value shared(value p) {
  p["batch"].update({{"sequences", 3}, {"step_tokens", 9}, {"mean_sequences", 2.5}});
  return p;
}

const forged_row shared_rows[] = {
    {"more of its own than the steps had", "answer", "batch.tokens",
     [](value& p) { (p = shared(p))["batch"]["step_tokens"] = 4; }},
    {"steps without a token of its own", "answer", "batch.steps",
     [](value& p) { (p = shared(p))["batch"]["steps"] = 6; }},
    {"tokens of others, and no others", "answer", "batch.step_tokens",
     [](value& p) {
       (p = shared(p))["batch"]["sequences"] = 1;
       p["batch"]["mean_sequences"] = 1;
     }},
    {"more sequences on the average than at most", "answer", "batch.mean_sequences",
     [](value& p) { (p = shared(p))["batch"]["mean_sequences"] = 3.5; }},
    {"a step without a sequence", "answer", "batch.mean_sequences",
     [](value& p) { (p = shared(p))["batch"]["mean_sequences"] = 0.5; }},
    {"half a token", "schema", "batch.step_tokens",
     [](value& p) { (p = shared(p))["batch"]["step_tokens"] = 8.5; }},
};
INSTANTIATE_TEST_SUITE_P(shares, forged, testing::ValuesIn(shared_rows));

TEST(receipt, of_a_request_whose_steps_others_shared_is_valid) {
  const verdict v = judged(signed_text(statement_of(shared(good_predicate()))));
  EXPECT_TRUE(v.is_valid()) << listed(v.found);
}

// ---- the frame ---------------------------------------------------------------------------------

std::string only_field(const verdict& v) {
  EXPECT_EQ(v.found.size(), 1U) << listed(v.found);
  return v.found.empty() ? "" : v.found.front().field;
}

TEST(frame, names_what_it_is) {
  const value good = statement_of(good_predicate());
  for (const char* name : {"_type", "predicateType"}) {
    value other = good;
    other[name] = "https://example.com/other";
    EXPECT_EQ(only_field(judged(signed_text(other))), name);
  }
  value other = good;
  other.erase("predicate");
  EXPECT_EQ(only_field(judged(signed_text(other))), "predicate");
}

TEST(frame, is_about_the_model_of_the_predicate) {
  value other = statement_of(good_predicate());
  other["subject"][0]["name"] = "another model";
  EXPECT_EQ(only_field(judged(signed_text(other))), "subject[0]");
  other = statement_of(good_predicate());
  other["subject"][1]["digest"]["sha256"] = std::string(64, '3');
  EXPECT_EQ(only_field(judged(signed_text(other))), "subject[1]");
  other = statement_of(good_predicate());
  other["subject"].push_back(other["subject"][1]);
  EXPECT_EQ(only_field(judged(signed_text(other))), "subject[2]");
  other["subject"] = nullptr;
  EXPECT_EQ(only_field(judged(signed_text(other))), "subject[0]");
}

// ---- the signature -----------------------------------------------------------------------------

TEST(signature, is_needed_unless_it_is_not) {
  const std::string text = *make_envelope(statement_of(good_predicate()).dump(), "");
  verdict v = judged(text);
  EXPECT_FALSE(v.is_valid());
  EXPECT_EQ(only_field(v), "signatures");
  question asked = plain_question();
  asked.allow_unsigned = true;
  v = judged(text, asked);
  EXPECT_TRUE(v.is_valid()) << listed(v.found);
  EXPECT_EQ(v.signed_by, "");
}

TEST(signature, of_an_untrusted_key_is_rejected) {
  question asked = plain_question();
  asked.signers = {{std::string(64, 'a'), "friend.pem"}};
  const verdict v = judged(signed_text(statement_of(good_predicate())), asked);
  EXPECT_EQ(only_field(v), "signatures[0].keyid");
  asked.allow_unsigned = true;
  EXPECT_FALSE(judged(signed_text(statement_of(good_predicate())), asked).is_valid())
      << "a signature by an unknown key is worse than none";
}

// Whatever byte of the payload differs: that payload was not signed.
TEST(signature, holds_each_member) {
  const value good = statement_of(good_predicate());
  const value envelope = value::parse(signed_text(good));
  const auto with_payload = [&](const value& statement) {
    value other = envelope;
    other["payload"] = to_base64(statement.dump());
    return other.dump();
  };
  for (const auto& [name, member] : good["predicate"].items()) {
    value other = good;
    other["predicate"][name] = "forged";
    const verdict v = judged(with_payload(other));
    ASSERT_FALSE(v.found.empty()) << name;
    EXPECT_EQ(v.found.front().field, "signatures[0].sig") << name;
    other["predicate"].erase(name);
    EXPECT_FALSE(judged(with_payload(other)).is_valid()) << name;
  }
  value other = envelope;
  other["payloadType"] = "application/other";
  EXPECT_FALSE(judged(other.dump()).is_valid());
  other = envelope;
  other["signatures"][0]["sig"] = to_base64(std::string(64, 'x'));
  EXPECT_EQ(judged(other.dump()).found.front().field, "signatures[0].sig");
  other["signatures"][0]["keyid"] = "x";
  EXPECT_EQ(judged(other.dump()).found.front().field, "signatures[0].keyid");
}

// ---- what is asked beyond the truth ------------------------------------------------------------

TEST(gates, that_were_missed_are_gate_findings) {
  value predicate = good_predicate();
  predicate["gates"][0]["measured"] = 50;
  predicate["gates"][0]["passed"] = false;
  const verdict v = judged(signed_text(statement_of(predicate)));
  EXPECT_TRUE(v.is_valid()) << listed(v.found);
  EXPECT_FALSE(v.gates_pass());
  EXPECT_EQ(only_field(v), "gates[0].passed");
}

TEST(gates, ask_for_a_gpu_by_its_class) {
  question asked = plain_question();
  asked.gpu_kernels = true;
  EXPECT_TRUE(judged(signed_text(statement_of(good_predicate())), asked).gates_pass());
  value software = good_predicate();
  software["devices"][0]["class"] = "cpu";
  const verdict v = judged(signed_text(statement_of(software)), asked);
  EXPECT_TRUE(v.is_valid()) << "it does not say that it is a GPU";
  EXPECT_FALSE(v.gates_pass());
  EXPECT_EQ(only_field(v), "kernel_stats");
}

TEST(gates, ask_for_a_share_of_fused_kernels) {
  question asked = plain_question();
  asked.fused_percent = 60.0;
  const std::string text = signed_text(statement_of(good_predicate()));
  EXPECT_TRUE(judged(text, asked).gates_pass());
  asked.fused_percent = 60.1;
  EXPECT_EQ(only_field(judged(text, asked)), "coverage.fused");
}

// ---- files -------------------------------------------------------------------------------------

std::string sum_of_text(std::string_view text) {
  sha256 sum;
  sum.add(text);
  return sum.hex();
}

TEST(files, plugins_are_those_that_are_installed) {
  const bitnet::test::scratch_folder scratch;
  const auto plugin = scratch.write("mine.so", "0123456789");
  value predicate = good_predicate();
  predicate["plugins"][0]["path"] = plugin.string();
  predicate["plugins"][0]["sha256"] = sum_of_text("0123456789");
  question asked = plain_question();
  asked.look_at_plugins = true;
  verdict v = judged(signed_text(statement_of(predicate)), asked);
  EXPECT_TRUE(v.is_valid()) << listed(v.found);
  EXPECT_EQ(only_field(v), "plugins[1].sha256") << "a note: it is not installed here";
  EXPECT_EQ(v.found.front().level, level::note);
  for (const char* other : {"012345678X", "longer than it was"}) {
    scratch.write("mine.so", other);
    v = judged(signed_text(statement_of(predicate)), asked);
    EXPECT_FALSE(v.is_valid()) << other;
    EXPECT_EQ(v.found.front().field, "plugins[0].sha256");
  }
}

TEST(files, the_model_is_the_one_that_is_given) {
  const bitnet::test::scratch_folder scratch;
  value predicate = good_predicate();
  value& file = predicate["model"]["files"][0];
  file["bytes"] = 5;
  file["sha256"] = sum_of_text("model");
  predicate["model"]["digest"] = model_sum(predicate["model"]["files"]);
  predicate["model_sha"] = file["sha256"];
  question asked = plain_question();
  asked.model = scratch.write("renamed.gguf", "model");
  const std::string text = signed_text(statement_of(predicate));
  EXPECT_TRUE(judged(text, asked).is_valid()) << listed(judged(text, asked).found);
  scratch.write("renamed.gguf", "modeX");
  EXPECT_EQ(only_field(judged(text, asked)), "model.files[0].sha256");
  asked.model = scratch.path() / "absent.gguf";
  EXPECT_EQ(only_field(judged(text, asked)), "model.files[0].sha256");
}

// What the tools of OpenSSF's Model Signing have for two files of "a" and "b" in a folder.
TEST(files, of_a_folder_have_one_digest) {
  const value files = {{{"name", "b"}, {"sha256", sum_of_text("b")}},
                       {{"name", "a"}, {"sha256", sum_of_text("a")}}};
  EXPECT_EQ(model_sum(files), "e5a01fee14e0ed5c48714f22180f25ad8365b53f9779f79dc4a3d7e93963f94a");
}

}  // namespace
}  // namespace bitnet::receipt
