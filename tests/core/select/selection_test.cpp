// Which of several backends computes, what the report says about each, and what a person reads when
// none does. One row, one situation.

#include "select/selection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "../../fakes/loader_fixture.hpp"
#include "../../fakes/probing.hpp"

namespace bitnet::select {
namespace {

using test::folder;
using test::manifest_text;
using test::recording_host;

// An installed backend: the fake's name, its manifest's class and priority, and the number in the
// manifest's file name.
struct installed {
  std::string fake;
  std::string device_class = "other";
  int priority = 50;
  std::string aliases = "[]";
};

class machine {
 public:
  explicit machine(const std::vector<installed>& all) {
    std::filesystem::create_directories(directory());
    for (const installed& one : all) add(one);
  }
  void add(const installed& one) const {
    folder_.write("backends.d/50-" + one.fake + ".yaml",
                  manifest_text(one.fake, folder_.fake(one.fake),
                                {{"class", one.device_class},
                                 {"priority", std::to_string(one.priority)},
                                 {"aliases", one.aliases}}));
  }
  [[nodiscard]] std::filesystem::path directory() const { return folder_.path() / "backends.d"; }
  [[nodiscard]] const folder& files() const { return folder_; }
  registry scan() { return registry::scan({directory()}, host, {}, test::probing()); }

  recording_host host;

 private:
  folder folder_;
};

const backend_report* find(const report& r, const std::string& name) {
  for (const backend_report& b : r.backends)
    if (b.name == name) return &b;
  return nullptr;
}

const installed cpu_a{"alpha", "cpu"}, cpu_b{"beta", "cpu"}, gpu_twin{"twin", "gpu"},
    npu{"neural", "npu"}, rocm{"rocm", "gpu", 50, "[hip]"}, opencl{"opencl", "gpu"}, other{"good"},
    zero{"zero", "gpu"}, unavailable{"unavailable", "gpu"}, broken{"null-slot", "cpu"},
    no_entry{"no-entry", "gpu"};

struct row {
  const char* why;
  std::vector<installed> machine;
  request wanted;
  bitnet_status status;
  const char* line;
  const char* device;                 // selected
  std::vector<const char*> mentions;  // of the message
};

std::ostream& operator<<(std::ostream& out, const row& r) {
  return out << r.why;
}

class selection : public testing::TestWithParam<row> {};

TEST_P(selection, follows_the_rules) {
  const row& r = GetParam();
  SCOPED_TRACE(r.why);
  machine m(r.machine);
  registry all = m.scan();
  report out;
  const auto chosen = all.select(r.wanted, out);
  EXPECT_EQ(out.line(), r.line);
  EXPECT_EQ(out.selected_device, r.device);
  if (r.status == BITNET_OK) {
    ASSERT_TRUE(chosen.has_value()) << chosen.error().message;
    EXPECT_EQ(chosen->backend->name() + ":" + std::to_string(chosen->device_index), r.device);
    EXPECT_STREQ(chosen->device.name, "fake device");
    const backend_report* winner = find(out, out.selected);
    ASSERT_NE(winner, nullptr);
    EXPECT_EQ(winner->stage, "selected");
    EXPECT_EQ(winner->code, "BN-OK");
  } else {
    ASSERT_FALSE(chosen.has_value());
    EXPECT_EQ(chosen.error().status, r.status) << chosen.error().message;
    for (const char* text : r.mentions)
      EXPECT_NE(chosen.error().message.find(text), std::string::npos)
          << "'" << text << "' is not in: " << chosen.error().message;
  }
  // Whatever happened, every candidate is in the report with a code and a reason.
  EXPECT_EQ(out.backends.size(), r.machine.size());
  for (const backend_report& b : out.backends) {
    EXPECT_TRUE(b.code.starts_with("BN-")) << b.name;
    EXPECT_FALSE(b.reason.empty()) << b.name;
  }
}

const row rows[] = {
    {"one backend",
     {other},
     {},
     BITNET_OK,
     "requested=auto detected=[good] selected=good",
     "good:0",
     {}},
    {"gpu before npu before cpu, whatever the names are; the rest cannot win and is not asked",
     {other, cpu_a, npu, gpu_twin},
     {},
     BITNET_OK,
     "requested=auto detected=[twin,neural,alpha] selected=twin",
     "twin:0",
     {}},
    {"a high priority does not lift a cpu over a gpu",
     {{"alpha", "cpu", 900}, {"twin", "gpu", -900}},
     {},
     BITNET_OK,
     "requested=auto detected=[twin,alpha] selected=twin",
     "twin:0",
     {}},
    {"inside a class the priority decides",
     {cpu_a, {"beta", "cpu", 51}},
     {},
     BITNET_OK,
     "requested=auto detected=[beta,alpha] selected=beta",
     "beta:0",
     {}},
    {"and then the name",
     {cpu_b, cpu_a},
     {},
     BITNET_OK,
     "requested=auto detected=[alpha,beta] selected=alpha",
     "alpha:0",
     {}},
    {"a plugin that broke a rule does not stop a good one",
     {broken, no_entry, cpu_b},
     {},
     BITNET_OK,
     "requested=auto detected=[beta] selected=beta",
     "beta:0",
     {}},
    {"nor does one without a device",
     {zero, unavailable, cpu_b},
     {},
     BITNET_OK,
     "requested=auto detected=[beta] selected=beta",
     "beta:0",
     {}},
    {"a device that goes away between probe and load is passed over",
     {{"shrinks", "gpu"}, cpu_a},
     {},
     BITNET_OK,
     "requested=auto detected=[alpha] selected=alpha",
     "alpha:0",
     {}},
    {"an unknown class ranks like other: behind the processor, so that it is not probed",
     {{"future-class"}, cpu_a},
     {},
     BITNET_OK,
     "requested=auto detected=[alpha] selected=alpha",
     "alpha:0",
     {}},

    {"an explicit name opens that one only",
     {cpu_a, gpu_twin},
     {.text = "alpha"},
     BITNET_OK,
     "requested=alpha detected=[alpha] selected=alpha",
     "alpha:0",
     {}},
    {"cpu is a class",
     {cpu_a, cpu_b, gpu_twin},
     {.text = "cpu"},
     BITNET_OK,
     "requested=cpu detected=[alpha,beta] selected=alpha",
     "alpha:0",
     {}},
    {"gpu is any device of that class",
     {cpu_a, gpu_twin},
     {.text = "gpu"},
     BITNET_OK,
     "requested=gpu detected=[twin] selected=twin",
     "twin:0",
     {}},
    {"npu too",
     {cpu_a, npu},
     {.text = "npu"},
     BITNET_OK,
     "requested=npu detected=[neural] selected=neural",
     "neural:0",
     {}},
    {"an index picks the device",
     {gpu_twin},
     {.text = "twin:1"},
     BITNET_OK,
     "requested=twin:1 detected=[twin] selected=twin",
     "twin:1",
     {}},
    {"and counts through a class",
     {gpu_twin, rocm},
     {.text = "gpu:2"},
     BITNET_OK,
     "requested=gpu:2 detected=[rocm,twin] selected=twin",
     "twin:1",
     {}},
    {"an alias of its manifest is another word for it",
     {rocm, cpu_a},
     {.text = "hip:0"},
     BITNET_OK,
     "requested=hip:0 detected=[rocm] selected=rocm",
     "rocm:0",
     {}},
    {"case and blanks do not matter",
     {rocm, cpu_a},
     {.text = " CPU "},
     BITNET_OK,
     "requested=cpu detected=[alpha] selected=alpha",
     "alpha:0",
     {}},
    {"a list is an order of preference; the first that works leaves the rest alone",
     {cpu_a, gpu_twin},
     {.text = "alpha,twin"},
     BITNET_OK,
     "requested=alpha,twin detected=[alpha] selected=alpha",
     "alpha:0",
     {}},
    {"whose missing items are passed over",
     {cpu_a},
     {.text = "cuda, alpha"},
     BITNET_OK,
     "requested=cuda,alpha detected=[alpha] selected=alpha",
     "alpha:0",
     {}},
    {"and which may end in auto",
     {cpu_a},
     {.text = "cuda,auto"},
     BITNET_OK,
     "requested=cuda,auto detected=[alpha] selected=alpha",
     "alpha:0",
     {}},

    {"the first name only, if that is insisted on",
     {cpu_a},
     {.text = "cuda,alpha", .require_first = true},
     BITNET_UNAVAILABLE,
     "requested=cuda detected=[alpha] selected=none",
     "",
     {"requested backend 'cuda' is not available", "no backend of that name is installed",
      "detected: [alpha]", "install bitnet-backend-cuda"}},
    {"insisting wins over fallback",
     {cpu_a},
     {.text = "cuda", .require_first = true, .allow_fallback = true},
     BITNET_UNAVAILABLE,
     "requested=cuda detected=[alpha] selected=none",
     "",
     {"'cuda' is not available"}},
    {"fallback chooses as auto would",
     {cpu_a, npu},
     {.text = "cuda", .allow_fallback = true},
     BITNET_OK,
     "requested=cuda detected=[neural,alpha] selected=neural",
     "neural:0",
     {}},
    {"fallback passes over a plugin that was rejected",
     {no_entry, cpu_a},
     {.text = "no-entry", .allow_fallback = true},
     BITNET_OK,
     "requested=no-entry detected=[alpha] selected=alpha",
     "alpha:0",
     {}},

    {"an absent name is unavailable and the message names what works",
     {cpu_a},
     {.text = "cuda"},
     BITNET_UNAVAILABLE,
     "requested=cuda detected=[alpha] selected=none",
     "",
     {"requested backend 'cuda' is not available", "no backend of that name is installed",
      "detected: [alpha]", "try: install bitnet-backend-cuda"}},
    {"gpu fails when there is none",
     {cpu_a},
     {.text = "gpu"},
     BITNET_UNAVAILABLE,
     "requested=gpu detected=[alpha] selected=none",
     "",
     {"no backend for devices of class gpu is installed", "detected: [alpha]"}},
    {"gpu backends without a device say why",
     {unavailable, zero, cpu_a},
     {.text = "gpu"},
     BITNET_UNAVAILABLE,
     "requested=gpu detected=[alpha] selected=none",
     "",
     {"unavailable: driver library libfake.so.1 is not installed", "fake 100",
      "zero: no device on this machine"}},
    {"a manifest that calls its cpu a gpu does not make it one",
     {{"alpha", "gpu"}},
     {.text = "gpu"},
     BITNET_UNAVAILABLE,
     "requested=gpu detected=[alpha] selected=none",
     "",
     {"alpha: it has no device of class gpu"}},
    {"an index beyond the devices",
     {gpu_twin},
     {.text = "twin:2"},
     BITNET_UNAVAILABLE,
     "requested=twin:2 detected=[twin] selected=none",
     "",
     {"there is no device 2; twin has 2 devices", "request the device twin:1"}},
    {"beyond a single one",
     {cpu_a},
     {.text = "cpu:1"},
     BITNET_UNAVAILABLE,
     "requested=cpu:1 detected=[alpha] selected=none",
     "",
     {"cpu has 1 device, counted from 0"}},
    {"no item of a list",
     {cpu_a},
     {.text = "cuda,rocm"},
     BITNET_UNAVAILABLE,
     "requested=cuda,rocm detected=[alpha] selected=none",
     "",
     {"none of the requested backends can be used", "cuda: no backend", "rocm: no backend"}},
    // Names that people know from elsewhere: what is true, and no package that does not exist.
    {"another name of a backend, and none for its devices is installed",
     {cpu_a},
     {.text = "hip"},
     BITNET_UNAVAILABLE,
     "requested=hip detected=[alpha] selected=none",
     "",
     {"bitnet's backend for HIP is called rocm, and it is not installed; its vulkan backend is for "
      "AMD's GPUs too",
      "try: install bitnet-backend-rocm and request the device rocm"}},
    {"the same, and one for these devices is",
     {cpu_a, opencl},
     {.text = "hip:1"},
     BITNET_UNAVAILABLE,
     "requested=hip:1 detected=[opencl,alpha] selected=none",
     "",
     {"bitnet's backend for HIP is called rocm", "try: request the device opencl"}},
    {"of Intel",
     {cpu_a},
     {.text = "oneapi"},
     BITNET_UNAVAILABLE,
     "requested=oneapi detected=[alpha] selected=none",
     "",
     {"bitnet's backend for oneAPI is called level-zero",
      "its opencl backend is for Intel's GPUs too", "try: install bitnet-backend-level-zero"}},
    {"one that no Linux has",
     {cpu_a},
     {.text = "metal"},
     BITNET_UNAVAILABLE,
     "requested=metal detected=[alpha] selected=none",
     "",
     {"has no backend for Metal, which only systems of Apple have",
      "detected: [alpha]; try: request the device auto"}},
    {"a class of devices of which there are none",
     {cpu_a},
     {.text = "npu"},
     BITNET_UNAVAILABLE,
     "requested=npu detected=[alpha] selected=none",
     "",
     {"bitnet has no backend for NPUs, and no other one is installed",
      "try: request the device auto"}},
    {"a slip",
     {cpu_a},
     {.text = "vulcan"},
     BITNET_UNAVAILABLE,
     "requested=vulcan detected=[alpha] selected=none",
     "",
     {"no backend of that name is installed",
      "try: look at what `bitnet backends` lists (bitnet's own are " BITNET_TEST_PACKAGES
      "), or request the device auto"}},
    {"the reason of a backend without devices",
     {zero},
     {},
     BITNET_UNAVAILABLE,
     "requested=auto detected=[] selected=none",
     "",
     {"no backend that can compute on this machine is installed: zero: no device on this machine",
      "detected: []", "try: install bitnet-backend-cpu"}},

    {"an explicit request for a plugin that broke a rule is rejected",
     {no_entry, cpu_a},
     {.text = "no-entry"},
     BITNET_REJECTED,
     "requested=no-entry detected=[alpha] selected=none",
     "",
     {"requested backend 'no-entry' was rejected", "exports no entry symbol bitnet_backend_abi0",
      "detected: [alpha]"}},
    {"the only candidate broke a rule",
     {broken},
     {},
     BITNET_REJECTED,
     "requested=auto detected=[] selected=none",
     "",
     {"no backend can be used", "required slot 'queue_submit' is null"}},
    {"one broke a rule, another is merely absent",
     {broken, zero},
     {},
     BITNET_UNAVAILABLE,
     "requested=auto detected=[] selected=none",
     "",
     {"queue_submit", "no device"}},
    {"other ABI majors count as rejected",
     {{"other-major", "cpu"}},
     {.text = "other-major"},
     BITNET_REJECTED,
     "requested=other-major detected=[] selected=none",
     "",
     {"backend other-major speaks ABI major 1, this core speaks 0",
      "install a bitnet that speaks 1 or a backend for 0"}},
    {"so does a list of rejected ones",
     {broken, no_entry},
     {.text = "null-slot,no-entry"},
     BITNET_REJECTED,
     "requested=null-slot,no-entry detected=[] selected=none",
     "",
     {"null-slot: ", "no-entry: "}},

    {"a malformed request",
     {cpu_a},
     {.text = "cpu,,gpu", .requested_by = "BITNET_DEVICE"},
     BITNET_INVALID_ARGUMENT,
     "requested=cpu,,gpu detected=[] selected=none",
     "",
     {"malformed device request 'cpu,,gpu' (from BITNET_DEVICE)", "empty"}},
    {"no manifest at all",
     {},
     {},
     BITNET_UNAVAILABLE,
     "requested=auto detected=[] selected=none",
     "",
     {"no backend is installed: install bitnet-backend-cpu", "looked in /tmp/",
      "backends.d (0 manifests)", "install bitnet-backend-cpu"}},
};

INSTANTIATE_TEST_SUITE_P(rows, selection, testing::ValuesIn(rows));

TEST(selection_report, says_why_each_one_lost) {
  machine m({cpu_a, cpu_b, gpu_twin, zero, no_entry});
  registry all = m.scan();
  report out;
  ASSERT_TRUE(all.select({}, out));
  EXPECT_EQ(find(out, "twin")->reason, "chosen: twin:0, class gpu, priority 50");
  EXPECT_EQ(find(out, "alpha")->code, "BN-S-OUTRANKED");
  EXPECT_EQ(find(out, "alpha")->reason, "usable, but twin:0 ranks higher: gpu comes before cpu");
  EXPECT_EQ(find(out, "alpha")->stage, "probed");
  EXPECT_EQ(find(out, "zero")->code, "BN-P-NO-DEVICE");
  EXPECT_EQ(find(out, "zero")->stage, "loaded");
  EXPECT_EQ(find(out, "no-entry")->code, "BN-I-NO-ENTRY");
  EXPECT_EQ(find(out, "no-entry")->stage, "found");
  EXPECT_FALSE(find(out, "no-entry")->hint.empty());
}

TEST(selection_report, says_which_one_has_too_few_devices) {
  machine m({cpu_a, gpu_twin});
  registry all = m.scan();
  report out;
  EXPECT_FALSE(all.select({.text = "twin:2"}, out));
  EXPECT_EQ(find(out, "twin")->code, "BN-S-INDEX");
  EXPECT_EQ(find(out, "twin")->reason,
            "usable, but there is no device 2; twin has 2 devices, counted from 0");
  EXPECT_EQ(find(out, "alpha")->code, "BN-S-NOT-ASKED");
}

TEST(selection_report, compares_priorities_and_names) {
  machine m({cpu_a, {"beta", "cpu", 60}});
  registry all = m.scan();
  report out;
  ASSERT_TRUE(all.select({.text = "cpu"}, out));
  EXPECT_EQ(find(out, "alpha")->reason, "usable, but beta:0 ranks higher: priority 60 is above 50");
  machine n({cpu_a, cpu_b});
  registry equal = n.scan();
  ASSERT_TRUE(equal.select({}, out));
  EXPECT_EQ(find(out, "beta")->reason,
            "usable, but alpha:0 ranks higher: equal in class, kernels, memory, priority and "
            "measured speed, so the name decides");
  ASSERT_TRUE(equal.select({.text = "beta,alpha"}, out));
  EXPECT_EQ(find(out, "alpha")->reason, "usable, but beta:0 fits the request better");
}

TEST(selection_report, backends_outside_the_request_are_not_opened) {
  machine m({cpu_a, gpu_twin});
  registry all = m.scan();
  report out;
  ASSERT_TRUE(all.select({.text = "cpu"}, out));
  EXPECT_EQ(find(out, "twin")->code, "BN-S-NOT-ASKED");
  EXPECT_EQ(find(out, "twin")->reason, "not asked for");
  EXPECT_EQ(find(out, "twin")->stage, "found") << "not even inspected";
  EXPECT_TRUE(find(out, "twin")->devices.empty());
  EXPECT_FALSE(m.host.said("twin"));
  EXPECT_TRUE(m.host.said("alpha: opened to load"));
}

TEST(selection_policy, backends_outside_the_allow_list_are_not_opened) {
  machine m({cpu_a, cpu_b, gpu_twin});
  plugin::policy rules;
  rules.allowed = {{"beta", ""}};
  registry all = registry::scan({m.directory()}, m.host, rules, test::probing());
  report out;
  ASSERT_TRUE(all.select({}, out));
  EXPECT_EQ(out.line(), "requested=auto detected=[beta] selected=beta");
  EXPECT_EQ(find(out, "twin")->code, "BN-T-NOT-ALLOWED");
  EXPECT_EQ(find(out, "twin")->stage, "found");
  EXPECT_FALSE(m.host.said("twin: opened"));
  const auto rejected = all.select({.text = "twin"}, out);
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().status, BITNET_UNAVAILABLE);
  EXPECT_NE(rejected.error().message.find("the allow-list names only beta"), std::string::npos)
      << rejected.error().message;
}

TEST(selection_policy, a_signature_may_be_required) {
  machine m({cpu_a});
  m.files().write("keys/README", "no keys");
  plugin::policy rules;
  rules.require_signature = true;
  rules.trusted_keys = m.files().path() / "keys";
  registry all = registry::scan({m.directory()}, m.host, rules, test::probing());
  report out;
  const auto rejected = all.select({}, out);
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().status, BITNET_REJECTED);
  EXPECT_EQ(find(out, "alpha")->code, "BN-T-SIGNATURE");
  EXPECT_FALSE(m.host.said("alpha: opened")) << "no byte of it ran";
}

TEST(selection_policy, the_hash_of_the_manifest_counts) {
  machine m({});
  const auto library = m.files().fake("alpha");
  m.files().write("backends.d/50-alpha.yaml",
                  manifest_text("alpha", library, {{"sha256", std::string(64, '0')}}));
  registry all = m.scan();
  report out;
  const auto rejected = all.select({}, out);
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().status, BITNET_REJECTED);
  EXPECT_EQ(find(out, "alpha")->code, "BN-T-HASH");
  EXPECT_FALSE(m.host.said("alpha: opened"));
}

class variable {
 public:
  variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~variable() { unsetenv(name_); }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;

 private:
  const char* name_;
};

// As `cmake --install --prefix` leaves it. What is found there is trusted by the same rules.
TEST(selection_policy, a_prefix_of_ones_own_has_its_libraries) {
  const folder f;
  recording_host host;
  const auto library =
      f.write("own/lib/bitnet/backends-0/alpha.so", folder::read(folder::built("alpha")), 0755);
  f.write("own/share/bitnet/backends.d/50-alpha.yaml",
          manifest_text("alpha", "alpha.so", {{"class", "cpu"}}));
  const auto code_now = [&] {
    registry all =
        registry::scan({f.path() / "own/share/bitnet/backends.d"}, host, {}, test::probing());
    report out;
    (void)all.select({}, out);
    return find(out, "alpha")->code;
  };
  EXPECT_EQ(code_now(), "BN-OK");
  std::filesystem::permissions(library, std::filesystem::perms(0777));
  EXPECT_EQ(code_now(), "BN-T-MODE");
  std::filesystem::permissions(library, std::filesystem::perms(0755));
  std::filesystem::permissions(library.parent_path(), std::filesystem::perms(0777));
  EXPECT_EQ(code_now(), "BN-T-MODE") << "of a folder that the manifest does not lie in";
}

TEST(selection_policy, variables_take_backends_away) {
  const machine m({cpu_a, cpu_b, gpu_twin});
  struct {
    const char *name, *value, *line, *hint;
  } const settings[] = {
      {"BITNET_BACKENDS", "alpha", "requested=auto detected=[alpha] selected=alpha",
       "add twin to BITNET_BACKENDS, or unset it"},
      {"BITNET_BACKENDS", "beta, alpha", "requested=auto detected=[alpha,beta] selected=alpha",
       "add twin to BITNET_BACKENDS, or unset it"},
      {"BITNET_BACKENDS_DISABLE", "t*", "requested=auto detected=[alpha,beta] selected=alpha",
       "take t* out of BITNET_BACKENDS_DISABLE"},
      {"BITNET_BACKENDS_DISABLE", "twin,?lpha", "requested=auto detected=[beta] selected=beta",
       "take twin out of BITNET_BACKENDS_DISABLE"},
  };
  for (const auto& [name, value, line, hint] : settings) {
    const variable set(name, value);
    recording_host host;
    registry all = registry::scan({m.directory()}, host, {}, test::probing());
    report out;
    ASSERT_TRUE(all.select({}, out)) << value;
    EXPECT_EQ(out.line(), line);
    EXPECT_EQ(find(out, "twin")->code, "BN-S-FILTERED");
    EXPECT_EQ(find(out, "twin")->reason.find(std::string("left out by ") + name), 0U);
    EXPECT_EQ(find(out, "twin")->hint, hint);
    EXPECT_TRUE(host.said(name)) << "every use is reported";
  }
}

TEST(selection_report, a_fallback_says_that_it_is_one) {
  machine m({cpu_a, cpu_b});
  registry all = m.scan();
  report out;
  ASSERT_TRUE(all.select({.text = "cuda", .allow_fallback = true}, out));
  EXPECT_EQ(find(out, "alpha")->reason, "chosen as fallback: alpha:0, class cpu, priority 50");
  EXPECT_TRUE(nlohmann::json::parse(out.json()).value("fallback", false));
  EXPECT_EQ(find(out, "beta")->code, "BN-S-OUTRANKED");
  ASSERT_TRUE(all.select({.text = "alpha"}, out));
  EXPECT_FALSE(nlohmann::json::parse(out.json()).contains("fallback")) << "a choice forgets it";
}

TEST(selection_report, losers_are_never_opened_here_and_the_winner_stays_open) {
  machine m({cpu_a, gpu_twin});
  registry all = m.scan();
  report out;
  auto chosen = all.select({}, out);
  ASSERT_TRUE(chosen);
  const auto count = [&m](const char* line) {
    return std::ranges::count(m.host.lines, std::string("2 ") + line);
  };
  EXPECT_FALSE(m.host.said("alpha"));
  for (const char* name : {"alpha", "twin"}) {
    ASSERT_TRUE(find(out, name)->probed);
    EXPECT_EQ(find(out, name)->probed->output, "log: opened to probe\nlog: closed\n");
  }
  EXPECT_EQ(count("twin: opened to load"), 1);
  EXPECT_EQ(count("twin: closed"), 0);
  chosen->backend.reset();
  EXPECT_EQ(count("twin: closed"), 1);
}

TEST(selection_report, probe_all_keeps_the_choice_and_adds_the_rest) {
  machine m({cpu_a, gpu_twin});
  registry all = m.scan();
  report out;
  ASSERT_TRUE(all.select({.text = "cpu", .requested_by = "command line"}, out));
  all.probe_all(out);
  EXPECT_EQ(out.line(), "requested=cpu detected=[twin,alpha] selected=alpha");
  EXPECT_EQ(out.requested_by, "command line");
  EXPECT_EQ(find(out, "alpha")->stage, "selected");
  EXPECT_EQ(find(out, "twin")->stage, "probed");
  EXPECT_EQ(find(out, "twin")->devices.size(), 2U);
}

TEST(selection_report, probe_all_alone_says_what_is_usable) {
  machine m({cpu_a, gpu_twin});
  registry all = m.scan();
  report out;
  all.probe_all(out);
  EXPECT_EQ(out.line(), "requested=auto detected=[twin,alpha] selected=none");
  EXPECT_EQ(find(out, "alpha")->code, "BN-OK");
  EXPECT_EQ(find(out, "alpha")->reason, "usable, 1 device");
  EXPECT_EQ(find(out, "twin")->reason, "usable, 2 devices");
}

TEST(selection_report, json_has_the_documented_fields) {
  machine m({cpu_a, zero, no_entry});
  registry all = m.scan();
  report out;
  ASSERT_TRUE(all.select({.text = "auto", .requested_by = "command line"}, out));
  const auto json = nlohmann::json::parse(out.json());
  EXPECT_EQ(json["requested"], "auto");
  EXPECT_EQ(json["requested_by"], "command line");
  EXPECT_EQ(json["detected"], nlohmann::json::array({"alpha"}));
  EXPECT_EQ(json["selected"], "alpha");
  EXPECT_EQ(json["device"], "alpha:0");
  ASSERT_EQ(json["backends"].size(), 3U);
  const auto& alpha = json["backends"][0];
  for (const char* key : {"name", "stage", "code", "reason", "hint", "manifest", "library",
                          "version", "vendor", "license", "build_id", "abi", "devices", "kernels"})
    EXPECT_TRUE(alpha.contains(key)) << key;
  EXPECT_EQ(alpha["version"], "1.2.3");
  EXPECT_EQ(alpha["abi"], BITNET_ABI_RANGE);
  EXPECT_EQ(alpha["devices"][0]["class"], "cpu");
  EXPECT_EQ(alpha["devices"][0]["name"], "fake device");
  EXPECT_FALSE(alpha["devices"][0].contains("pci_address")) << "an unknown value is left out";
  EXPECT_EQ(alpha["kernels"][0]["id"], "rms_norm.fake");
  EXPECT_EQ(alpha["kernels"][0]["level"], "reference");
  EXPECT_EQ(json["searched"][0]["directory"], m.directory().string());
  EXPECT_EQ(json["searched"][0]["result"], "3 manifests");
  EXPECT_FALSE(json["backends"][1].contains("build_id")) << "what could not be read is left out";
}

TEST(selection_report, json_names_levels_and_survives_any_path) {
  report r;
  r.searched.push_back({"/tmp/\xff", "absent"});
  backend_report& b = r.backends.emplace_back();
  b.name = "x";
  device_report& d = b.devices.emplace_back();
  for (const uint32_t level : {BITNET_LEVEL_REFERENCE, BITNET_LEVEL_OPTIMISED, BITNET_LEVEL_FUSED,
                               BITNET_LEVEL_NONE, BITNET_LEVEL_FUSED})
    d.kernels.push_back({sizeof(bitnet_kernel_info), 1, 0, level, 0, 0, "k"});
  const auto json = nlohmann::json::parse(r.json());
  std::vector<std::string> levels;
  for (const auto& k : json["backends"][0]["kernels"]) levels.push_back(k["level"]);
  EXPECT_EQ(levels, (std::vector<std::string>{"reference", "optimised", "fused", "none"}))
      << "and the same kernel of two devices is one";
}

TEST(selection_report, json_without_a_choice_has_no_device) {
  machine m({});
  registry all = m.scan();
  report out;
  ASSERT_FALSE(all.select({}, out));
  const auto json = nlohmann::json::parse(out.json());
  EXPECT_EQ(json["selected"], "none");
  EXPECT_FALSE(json.contains("device"));
  EXPECT_EQ(json["backends"], nlohmann::json::array());
}

TEST(selection_report, the_advice_survives_the_size_of_a_bitnet_error) {
  std::vector<installed> many;
  for (const char* fake : {"zero", "unavailable", "count-fails", "device-fails", "kernels-fail",
                           "null-slot", "no-entry", "overrun", "short-table", "needy"})
    many.push_back({fake, "gpu"});
  machine m(many);
  m.add(cpu_a);
  registry all = m.scan();
  report out;
  const auto chosen = all.select({.text = "gpu"}, out);
  ASSERT_FALSE(chosen.has_value());
  EXPECT_LT(chosen.error().message.size(), sizeof(bitnet_error::message));
  EXPECT_NE(chosen.error().message.find("...; detected: [alpha]; try: "), std::string::npos)
      << chosen.error().message;
}

TEST(selection_report, a_device_name_cannot_write_to_the_terminal) {
  machine m({{"rude-name"}});
  registry all = m.scan();
  report out;
  auto chosen = all.select({}, out);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(std::string(chosen->device.name), "\\x1b[2J" + std::string(56, 'x'));
}

// "mirror" shows the device that "rocm" shows.
TEST(selection, a_device_that_two_backends_show_counts_once) {
  machine m({{"rocm", "gpu", 60}, {"mirror", "gpu", 40}, {"alpha", "cpu"}});
  registry all = m.scan();
  report out;
  ASSERT_TRUE(all.select({"gpu"}, out).has_value());
  EXPECT_EQ(out.selected_device, "rocm:0");
  all.probe_all(out);
  const backend_report* mirror = find(out, "mirror");
  ASSERT_NE(mirror, nullptr);
  EXPECT_EQ(mirror->code, "BN-S-SAME");
  EXPECT_EQ(mirror->standings.at(0).same_as, "rocm:0");
  EXPECT_EQ(mirror->standings.at(0).rank, 2U);
  EXPECT_EQ(find(out, "alpha")->standings.at(0).rank, 3U);
  report again;
  EXPECT_FALSE(m.scan().select({"gpu:1"}, again).has_value()) << "there is one gpu";
  ASSERT_TRUE(m.scan().select({"mirror"}, again).has_value()) << "by its name it can be had";
  EXPECT_EQ(again.selected_device, "mirror:0");
}

// Both compute and show one device; the second has the higher priority.
TEST(selection, of_one_device_the_backend_that_was_measured_faster_is_chosen) {
  machine m({{"one-gpu", "gpu", 40}, {"one-gpu-slowly", "gpu", 60}});
  registry all = m.scan();
  report out;
  all.probe_all(out);
  ASSERT_TRUE(all.select({"gpu"}, out).has_value());
  EXPECT_EQ(out.selected_device, "one-gpu:0");
  const backend_report* slow = find(out, "one-gpu-slowly");
  ASSERT_NE(slow, nullptr);
  EXPECT_EQ(slow->code, "BN-S-SAME");
  EXPECT_NE(slow->reason.find("one-gpu:0, which ranks higher: measured "), std::string::npos)
      << slow->reason;
  EXPECT_EQ(slow->standings.at(0).same_as, "one-gpu:0");
  const auto of_quick = find(out, "one-gpu")->standings.at(0).facts.rates,
             of_slow = slow->standings.at(0).facts.rates;
  EXPECT_GT(of_quick.token, 0U) << "quick enough for the larger program";
  EXPECT_GT(of_quick.prompt, 0U);
  EXPECT_EQ(of_slow.token, 0U) << "a step of it would take too long";
  EXPECT_LT(of_slow.small, of_quick.small);
}

TEST(selection, a_fake_is_marked_and_computes_nothing) {
  machine m({cpu_a, rocm});
  registry all = m.scan();
  all.pretend({{"cuda", 2}, {"rocm", 1}});
  report out;
  const auto chosen = all.select({"cuda,rocm"}, out);
  ASSERT_FALSE(chosen.has_value());
  EXPECT_EQ(chosen.error().status, BITNET_UNAVAILABLE);
  EXPECT_NE(chosen.error().message.find("computes nothing"), std::string::npos);
  EXPECT_EQ(out.line(), "requested=cuda,rocm detected=[cuda(fake),rocm(fake)] selected=cuda(fake)");
  EXPECT_TRUE(find(out, "cuda")->fake);
  EXPECT_TRUE(find(out, "rocm")->fake) << "the real one gives way";
  EXPECT_FALSE(find(out, "alpha")->fake);
  EXPECT_NE(out.json().find("\"fake\":true"), std::string::npos);
  ASSERT_TRUE(all.select({"alpha"}, out).has_value()) << "what is real computes beside it";
}

TEST(selection, strict_mode_lets_no_doubt_pass) {
  const struct {
    std::vector<installed> machine;
    request wanted;
    bool passes;
    const char* why;
  } cases[] = {
      {{cpu_a}, {.text = "auto", .strict = true}, true, "nothing is wrong"},
      {{cpu_a, zero}, {.text = "auto", .strict = true}, true, "no device is no doubt"},
      {{cpu_a, broken}, {.text = "auto", .strict = true}, false, "one of the candidates is broken"},
      {{cpu_a, broken}, {.text = "auto"}, true, "which is a note without strict mode"},
      {{cpu_a, broken}, {.text = "alpha", .strict = true}, true, "it was not asked for"},
      {{cpu_a},
       {.text = "alpha", .allow_fallback = true, .strict = true},
       false,
       "fallback is doubt"}};
  for (const auto& r : cases) {
    machine m(r.machine);
    report out;
    const auto chosen = m.scan().select(r.wanted, out);
    EXPECT_EQ(chosen.has_value(), r.passes) << r.why;
    if (!chosen) {
      EXPECT_NE(chosen.error().message.find("strict mode"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace bitnet::select
