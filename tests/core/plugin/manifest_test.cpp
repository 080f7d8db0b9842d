// What a manifest may hold. One row, one change to a good manifest.

#include "plugin/manifest/manifest.hpp"

#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "../../fakes/loader_fixture.hpp"
#include "bitnet/abi/info.h"

namespace bitnet::plugin {
namespace {

using test::folder;
using test::manifest_text;

struct row {
  const char* why;
  std::map<std::string, std::string> changes;  // to a good manifest; "" leaves a field out
  code want;
  std::vector<const char*> mentions;  // of the reason
};

std::ostream& operator<<(std::ostream& out, const row& r) {
  return out << r.why;
}

// "n,n,...": a list of so many items.
std::string names(int n) {
  std::string out = "n";
  while (--n > 0) out += ",n";
  return out;
}

class manifest_fields : public testing::TestWithParam<row> {};

TEST_P(manifest_fields, are_checked) {
  const row& r = GetParam();
  SCOPED_TRACE(r.why);
  const auto parsed = parse_manifest(manifest_text("good", "lib.so", r.changes), "50-good.yaml");
  if (r.want == code::ok) {
    ASSERT_TRUE(parsed.has_value()) << parsed.error().reason;
    EXPECT_EQ(parsed->name, "good");
    return;
  }
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(code_text(parsed.error().code), code_text(r.want)) << parsed.error().reason;
  EXPECT_EQ(parsed.error().status, BITNET_REJECTED);
  for (const char* text : r.mentions)
    EXPECT_NE(parsed.error().reason.find(text), std::string::npos)
        << "'" << text << "' is not in: " << parsed.error().reason;
}

const row rows[] = {
    {"as it should be", {}, code::ok, {}},
    {"all optional fields",
     {{"url", "https://example.org"},
      {"priority", "-7"},
      {"probe", "{timeout_ms: 100}"},
      {"packages", "{libcuda.so.1: libcuda1}"}},
     code::ok,
     {}},
    {"a quoted name is a name too", {{"name", "\"good\""}}, code::ok, {}},

    {"no name", {{"name", ""}}, code::manifest_field, {"50-good.yaml:1:1: 'name' is missing"}},
    {"no version", {{"version", ""}}, code::manifest_field, {"'version' is missing"}},
    {"no vendor", {{"vendor", ""}}, code::manifest_field, {"'vendor' is missing"}},
    {"no license", {{"license", ""}}, code::manifest_field, {"'license' is missing"}},
    {"no library", {{"library", ""}}, code::manifest_field, {"'library' is missing"}},
    {"no abi", {{"abi", ""}}, code::manifest_field, {"'abi' is missing"}},
    {"no class", {{"class", ""}}, code::manifest_field, {"'class' is missing"}},
    {"half an abi",
     {{"abi", "{major: 0, min: 0}"}},
     code::manifest_field,
     {"'abi.max' is missing"}},

    {"a name with a capital",
     {{"name", "Good"}},
     code::manifest_field,
     {"50-good.yaml:2:7: ", "[a-z0-9]", "'Good'"}},
    {"a name that is too long", {{"name", std::string(33, 'a')}}, code::manifest_field, {"{0,31}"}},
    {"a name that means something else",
     {{"name", "auto"}},
     code::manifest_field,
     {"50-good.yaml:2:7: 'name' must not be auto or none"}},
    {"nor none", {{"name", "none"}}, code::manifest_field, {"must not be auto or none"}},
    {"a class of our dreams",
     {{"class", "quantum"}},
     code::manifest_field,
     {"50-good.yaml:8:8: 'class' must be cpu, gpu, npu or other, found 'quantum'"}},
    {"a text that is a list",
     {{"vendor", "[a, b]"}},
     code::manifest_field,
     {"50-good.yaml:4:9: 'vendor' must be text, found a list"}},
    {"a text that is a map", {{"vendor", "{a: b}"}}, code::manifest_field, {"found a map"}},
    {"a text that is not there",
     {{"vendor", "~"}},
     code::manifest_field,
     {"'vendor' must be text, found nothing"}},
    {"a text with an escape sequence",
     {{"vendor", "\"\\e[2J\""}},
     code::manifest_field,
     {"'vendor' must be printable UTF-8 on one line"}},
    {"a text of two lines", {{"vendor", "\"a\\nb\""}}, code::manifest_field, {"on one line"}},
    {"a text without end",
     {{"vendor", std::string(257, 'v')}},
     code::manifest_field,
     {"at most 256 bytes"}},
    {"a number that is a word",
     {{"priority", "high"}},
     code::manifest_field,
     {"'priority' must be an integer from -1000 to 1000, found 'high'"}},
    {"a number in quotes is text", {{"priority", "\"7\""}}, code::manifest_field, {"'priority'"}},
    {"a number with a tail", {{"priority", "7x"}}, code::manifest_field, {"found '7x'"}},
    {"a number beyond its range", {{"priority", "1001"}}, code::manifest_field, {"found '1001'"}},
    {"a number beyond every type",
     {{"priority", "99999999999999999999"}},
     code::manifest_field,
     {}},
    {"a negative count",
     {{"abi", "{major: -1, min: 0, max: 0}"}},
     code::manifest_field,
     {"'abi.major' must be an integer"}},
    {"a hash in upper case",
     {{"sha256", std::string(64, 'A')}},
     code::manifest_field,
     {"'sha256' must be 64 hexadecimal digits in lower case"}},
    {"half a hash", {{"sha256", std::string(32, 'a')}}, code::manifest_field, {"'sha256'"}},
    {"a list as number", {{"priority", "[7]"}}, code::manifest_field, {"found a list"}},
    {"an empty range",
     {{"abi", "{major: 0, min: 3, max: 2}"}},
     code::manifest_field,
     {"'abi.min' must not be above 'abi.max'"}},
    {"an abi that is a number",
     {{"abi", "0"}},
     code::manifest_field,
     {"'abi' must be a map, found '0'"}},
    {"a probe that is a number", {{"probe", "5"}}, code::manifest_field, {"'probe' must be a map"}},
    {"no time to probe",
     {{"probe", "{timeout_ms: 0}"}},
     code::manifest_field,
     {"'probe.timeout_ms'"}},
    {"variables that are no list",
     {{"probe", "{env: VISIBLE_DEVICES}"}},
     code::manifest_field,
     {"'probe.env' must be a list"}},
    {"a variable that is none",
     {{"probe", "{env: [GOOD, 'a=b']}"}},
     code::manifest_field,
     {"'probe.env' must hold names of variables", "'a=b'"}},
    {"a variable that is a list",
     {{"probe", "{env: [[GOOD]]}"}},
     code::manifest_field,
     {"'probe.env' must hold names of variables", "found a list"}},
    {"a kernel module with a path",
     {{"probe", "{modules: [../x]}"}},
     code::manifest_field,
     {"'probe.modules' must hold names of kernel modules", "'../x'"}},
    {"a library with a path",
     {{"probe", "{libraries: [/lib/libfft.so.3]}"}},
     code::manifest_field,
     {"'probe.libraries' must hold names of libraries", "'/lib/libfft.so.3'"}},
    {"a folder that depends on where one is",
     {{"probe", "{folders: [etc/x]}"}},
     code::manifest_field,
     {"'probe.folders' must hold absolute paths", "'etc/x'"}},
    {"a folder that leads back",
     {{"probe", "{folders: [/etc/x/../y]}"}},
     code::manifest_field,
     {"'probe.folders'"}},
    {"a node that is none",
     {{"probe", "{nodes: [/etc/passwd]}"}},
     code::manifest_field,
     {"'probe.nodes' must hold paths like /dev/accel/*", "'/etc/passwd'"}},
    {"nodes of many folders",
     {{"probe", "{nodes: ['/dev/*/x']}"}},
     code::manifest_field,
     {"'probe.nodes'"}},
    {"two stars", {{"probe", "{nodes: ['/dev/*x*']}"}}, code::manifest_field, {"'probe.nodes'"}},
    {"too many of them",
     {{"probe", "{modules: [" + names(65) + "]}"}},
     code::manifest_field,
     {"'probe.modules' must be a list of at most 64 items"}},
    {"late nodes that are a list",
     {{"probe", "{late_nodes: [/dev/x]}"}},
     code::manifest_field,
     {"'probe.late_nodes' must be a map"}},
    {"a late node elsewhere",
     {{"probe", "{late_nodes: {driver: /etc/x}}"}},
     code::manifest_field,
     {"'probe.late_nodes.driver' must be a kernel module with a file like /dev/accel0"}},
    {"a late node of a path",
     {{"probe", "{late_nodes: {../driver: /dev/x}}"}},
     code::manifest_field,
     {"must be a kernel module"}},
    {"pipes that are a list",
     {{"probe", "{pipes: [/tmp/x]}"}},
     code::manifest_field,
     {"'probe.pipes' must be a map"}},
    {"pipes in a folder that is none",
     {{"probe", "{pipes: {PLACE: tmp/x}}"}},
     code::manifest_field,
     {"'probe.pipes.PLACE' must be a variable with a folder like /tmp/service"}},
    {"pipes everywhere", {{"probe", "{pipes: {PLACE: /}}"}}, code::manifest_field, {"PLACE"}},
    {"pipes of a variable that is none",
     {{"probe", "{pipes: {place: /tmp/x}}"}},
     code::manifest_field,
     {"must be a variable"}},
    {"an alias that means any device",
     {{"aliases", "[auto]"}},
     code::manifest_field,
     {"'aliases' must hold names like a backend's", "'auto'"}},
    {"an alias that means a class", {{"aliases", "[gpu]"}}, code::manifest_field, {"'gpu'"}},
    {"an alias with an index", {{"aliases", "['a:1']"}}, code::manifest_field, {"'a:1'"}},
    {"aliases that are a word",
     {{"aliases", "fine"}},
     code::manifest_field,
     {"'aliases' must be a list"}},
    {"a flag that is another word",
     {{"by_name_only", "yes"}},
     code::manifest_field,
     {"'by_name_only' must be true or false, found 'yes'"}},
    {"a flag in quotes is text",
     {{"by_name_only", "\"true\""}},
     code::manifest_field,
     {"'by_name_only' must be true or false"}},
    {"a flag that is a list",
     {{"by_name_only", "[true]"}},
     code::manifest_field,
     {"'by_name_only' must be true or false, found a list"}},
    {"a conflict that is no name", {{"conflicts", "['a b']"}}, code::manifest_field, {"'a b'"}},
    {"conflicts that are a word",
     {{"conflicts", "fine"}},
     code::manifest_field,
     {"'conflicts' must be a list"}},
    {"requirements that are a list",
     {{"requires", "[x]"}},
     code::manifest_field,
     {"'requires' must be a map"}},
    {"a PCI device without a class",
     {{"requires", "{pci: ['10de:*']}"}},
     code::manifest_field,
     {"'requires.pci' must hold VENDOR:DEVICE:CLASS", "'10de:*'"}},
    {"a PCI device with a fourth part",
     {{"requires", "{pci: ['10de:*:03*:1']}"}},
     code::manifest_field,
     {"'10de:*:03*:1'"}},
    {"a PCI device in capitals",
     {{"requires", "{pci: ['10DE:*:*']}"}},
     code::manifest_field,
     {"'10DE:*:*'"}},
    {"a PCI device of three digits",
     {{"requires", "{pci: ['10d:*:*']}"}},
     code::manifest_field,
     {"'10d:*:*'"}},
    {"a node that is no device",
     {{"requires", "{nodes: [/etc/passwd]}"}},
     code::manifest_field,
     {"'requires.nodes'", "'/etc/passwd'"}},
    {"features of no architecture",
     {{"requires", "{cpu: [avx2]}"}},
     code::manifest_field,
     {"'requires.cpu' must be a map"}},
    {"a feature in capitals",
     {{"requires", "{cpu: {x86_64: [AVX2]}}"}},
     code::manifest_field,
     {"'requires.cpu.x86_64'", "'AVX2'"}},
    {"an architecture of two words",
     {{"requires", "{cpu: {'x86 64': [avx2]}}"}},
     code::manifest_field,
     {"'requires.cpu.x86 64' must be an architecture"}},
    {"packages that are a list",
     {{"packages", "[a]"}},
     code::manifest_field,
     {"'packages' must be a map"}},
    {"a package that is a list",
     {{"packages", "{liba.so: [x]}"}},
     code::manifest_field,
     {"'packages.liba.so' must be text"}},

    {"no schema", {{"schema", ""}}, code::manifest_schema, {"first field must be 'schema: 1'"}},
    {"a schema of the future",
     {{"schema", "2"}},
     code::manifest_schema,
     {"50-good.yaml:1:9: schema 2 is newer than this core, which reads schema 1"}},
    {"a schema that is none",
     {{"schema", "one"}},
     code::manifest_field,
     {"'schema' must be an integer"}},
};

INSTANTIATE_TEST_SUITE_P(rows, manifest_fields, testing::ValuesIn(rows));

TEST(manifest, fields_arrive) {
  const auto m =
      parse_manifest(manifest_text("good", "lib.so",
                                   {{"abi", "{major: 0, min: 1, max: 4}"},
                                    {"class", "npu"},
                                    {"url", "https://example.org"},
                                    {"priority", "60"},
                                    {"by_name_only", "true"},
                                    {"aliases", "[second, the.same]"},
                                    {"conflicts", "[third]"},
                                    {"requires",
                                     "{cpu: {x86_64: [avx2, sse4_1], aarch64: [asimddp]}, "
                                     "libraries: [libfft.so.3], nodes: ['/dev/accel/*'], "
                                     "pci: ['10de:*:03*', 1002:73bf:030000]}"},
                                    {"probe",
                                     "{timeout_ms: 100, env: [A_1, B], modules: [driver, x_2], "
                                     "libraries: [libfft.so.3, libc++.so.1], folders: [/etc/x.d], "
                                     "nodes: ['/dev/accel/*', '/dev/one*', /dev/two], "
                                     "late_nodes: {driver: /dev/late}, "
                                     "pipes: {PLACE: /tmp/x, B: /tmp/y}}"},
                                    {"packages", "{libcuda.so.1: libcuda1, libx.so: x}"}}),
                     "m");
  ASSERT_TRUE(m.has_value()) << m.error().reason;
  EXPECT_EQ(m->version, "1.2.3");
  EXPECT_EQ(m->vendor, "org.example");
  EXPECT_EQ(m->license, "CC0-1.0");
  EXPECT_EQ(m->url, "https://example.org");
  EXPECT_EQ(m->library, "lib.so");
  EXPECT_EQ(m->abi_major, 0U);
  EXPECT_EQ(m->abi_min, 1U);
  EXPECT_EQ(m->abi_max, 4U);
  EXPECT_EQ(m->device_class, BITNET_DEVICE_NPU);
  EXPECT_EQ(m->priority, 60);
  EXPECT_TRUE(m->by_name_only);
  EXPECT_EQ(m->probe_timeout_ms, 100U);
  EXPECT_EQ(m->aliases, (std::vector<std::string>{"second", "the.same"}));
  EXPECT_EQ(m->conflicts, (std::vector<std::string>{"third"}));
  using texts = std::vector<std::string>;
  using paths = std::vector<std::filesystem::path>;
  const probe_facts& on = m->depends_on;
  EXPECT_EQ(on.env, (texts{"A_1", "B", "PLACE"}));
  EXPECT_EQ(on.modules, (texts{"driver", "x_2"}));
  EXPECT_EQ(on.libraries, (texts{"libfft.so.3", "libc++.so.1"}));
  EXPECT_EQ(on.folders, (paths{"/etc/x.d"}));
  EXPECT_EQ(on.nodes, (paths{"/dev/accel/*", "/dev/one*", "/dev/two"}));
  EXPECT_EQ(on.late_nodes.at("driver"), "/dev/late");
  EXPECT_EQ(on.pipes.at("PLACE"), "/tmp/x");
  EXPECT_EQ(on.pipes.at("B"), "/tmp/y");
  EXPECT_EQ(m->needs.cpu.at("x86_64"), (texts{"avx2", "sse4_1"}));
  EXPECT_EQ(m->needs.cpu.at("aarch64"), (texts{"asimddp"}));
  EXPECT_EQ(m->needs.libraries, (texts{"libfft.so.3"}));
  EXPECT_EQ(m->needs.nodes, (paths{"/dev/accel/*"}));
  EXPECT_EQ(m->needs.pci, (texts{"10de:*:03*", "1002:73bf:030000"}));
  EXPECT_EQ(m->packages.at("libcuda.so.1"), "libcuda1");
  EXPECT_TRUE(m->warnings.empty());
}

TEST(manifest, unknown_keys_are_notes_and_no_failure) {
  const auto m = parse_manifest(manifest_text("good", "lib.so",
                                              {{"colour", "blue"},
                                               {"abi", "{major: 0, min: 1, max: 1, patch: 1}"},
                                               {"probe", "{isolate: true}"}}),
                                "50-good.yaml");
  ASSERT_TRUE(m.has_value()) << m.error().reason;
  ASSERT_EQ(m->warnings.size(), 3U);
  EXPECT_NE(m->warnings[0].find("'abi.patch' is ignored"), std::string::npos) << m->warnings[0];
  EXPECT_NE(m->warnings[1].find("'probe.isolate' is ignored"), std::string::npos);
  EXPECT_EQ(m->warnings[2], "50-good.yaml:9:1: unknown key 'colour' is ignored");
}

// Whole texts: what is rejected before fields mean anything.
struct text_row {
  const char* why;
  std::string text;
  std::vector<const char*> mentions;
};

std::ostream& operator<<(std::ostream& out, const text_row& r) {
  return out << r.why;
}

class manifest_texts : public testing::TestWithParam<text_row> {};

TEST_P(manifest_texts, are_rejected) {
  const text_row& r = GetParam();
  SCOPED_TRACE(r.why);
  const auto parsed = parse_manifest(r.text, "m.yaml");
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(code_text(parsed.error().code), "BN-M-SYNTAX") << parsed.error().reason;
  for (const char* text : r.mentions)
    EXPECT_NE(parsed.error().reason.find(text), std::string::npos)
        << "'" << text << "' is not in: " << parsed.error().reason;
}

const text_row text_rows[] = {
    {"comments only", "# nothing\n", {"holds nothing"}},
    {"a list", "- schema: 1\n", {"must be a map of fields, found a list"}},
    {"a word", "hello\n", {"must be a map of fields, found 'hello'"}},
    {"an anchor", "schema: 1\nname: &a good\n", {"m.yaml:2:", "anchors (&name) are not allowed"}},
    {"an anchor on a map", "schema: 1\nabi: &a {major: 0}\n", {"anchors"}},
    {"an anchor on a list", "schema: 1\nabi: &a [1]\n", {"anchors"}},
    {"an anchor on nothing", "schema: 1\nabi: &a\n", {"anchors"}},
    {"an alias", "schema: 1\nabi: *a\n", {}},
    {"an alias of something", "a: &a 1\nb: *a\n", {"anchors"}},
    {"a billion laughs", "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", {"anchors"}},
    {"a tag", "schema: !!int 1\n", {"tags (!name) are not allowed"}},
    {"a tag on a map", "schema: !foo {a: b}\n", {"tags"}},
    {"a merge key is just a key",
     "schema: 1\n<<: {name: x}\nschema: 1\n",
     {"'schema' is there twice"}},
    {"a key twice",
     "schema: 1\nname: a\nname: b\n",
     {"m.yaml:3:1: key 'name' is there twice; first in line 2"}},
    {"a key twice inside", "schema: 1\nabi: {major: 0, major: 1}\n", {"'major' is there twice"}},
    {"a key that is a list", "? [a]\n: b\n", {"a key must be a word"}},
    {"two documents", "schema: 1\n---\nschema: 1\n", {"more than one document"}},
    {"deep nesting", "a: [[[[[[[[[[1]]]]]]]]]]\n", {"nested more than 8 levels deep"}},
    {"brackets to the end", std::string(60000, '['), {"m.yaml:1:"}},
    {"deep block nesting",
     [] {
       std::string text;
       for (int i = 0; i < 200; ++i) text += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
       return text;
     }(),
     {"nested more than 8 levels deep"}},
    {"an unclosed bracket", "schema: [1\n", {"m.yaml:"}},
    {"a tab as indentation", "schema: 1\nabi:\n\tmajor: 0\n", {"m.yaml:"}},
    {"binary data",
     std::string("schema: 1\n\x7f\x45\x4c\x46\x00", 15),
     {"m.yaml:2:1: is not text"}},
    {"UTF-16", std::string("\xff\xfes\0c\0h\0", 8), {"is not text"}},
};

INSTANTIATE_TEST_SUITE_P(rows, manifest_texts, testing::ValuesIn(text_rows));

struct name_row {
  const char* file;
  const char* name;  // "" when it is no manifest's name
};

TEST(manifest, file_names_hold_the_backend_name) {
  for (const auto& [file, name] : std::vector<name_row>{
           {"50-cpu.yaml", "cpu"},
           {"00-level-zero.yaml", "level-zero"},
           {"99-a.yaml", "a"},
           {"cpu.yaml", ""},
           {"5-cpu.yaml", ""},
           {"500-cpu.yaml", ""},
           {"50-.yaml", ""},
           {"50-CPU.yaml", ""},
           {"50_cpu.yaml", ""},
           {"x0-cpu.yaml", ""},
           {"0x-cpu.yaml", ""},
       }) {
    const auto found = name_of_manifest(std::filesystem::path("/some/where") / file);
    EXPECT_EQ(found.value_or(""), name) << file;
    if (!found) {
      EXPECT_EQ(found.error().code, code::manifest_name);
    }
  }
}

TEST(manifest, library_must_not_point_outside) {
  const folder f;
  const auto plugins = f.path() / "plugins";
  f.write("plugins/inside.so", "x");
  f.write("outside.so", "x");
  std::filesystem::create_symlink(plugins / "inside.so", plugins / "alias.so");
  std::filesystem::create_symlink(f.path() / "outside.so", plugins / "escape.so");

  EXPECT_EQ(locate_library("inside.so", plugins).value_or(""), plugins / "inside.so");
  EXPECT_EQ(locate_library("alias.so", plugins).value_or(""), plugins / "alias.so");
  EXPECT_EQ(locate_library("absent.so", plugins).value_or(""), plugins / "absent.so");
  EXPECT_EQ(locate_library("/opt/x.so", plugins).value_or(""), "/opt/x.so");
  for (const char* bad : {"../outside.so", "..", ".", "./inside.so", "sub/inside.so",
                          "sub/../inside.so", "/opt/../etc/x.so", "/opt/./x.so", "escape.so"}) {
    const auto located = locate_library(bad, plugins);
    ASSERT_FALSE(located.has_value()) << bad;
    EXPECT_EQ(located.error().code, code::manifest_outside) << bad;
    EXPECT_NE(located.error().reason.find("pointing outside"), std::string::npos)
        << located.error().reason;
  }
}

TEST(manifest, library_lies_in_the_first_folder_that_has_it) {
  const folder f;
  const auto first = f.path() / "first";
  const auto second = f.path() / "second";
  const std::vector<std::filesystem::path> both{first, second};
  f.write("first/both.so", "x");
  f.write("second/both.so", "x");
  f.write("second/later.so", "x");
  std::filesystem::create_symlink("/nowhere/x.so", first / "dangling.so");
  std::filesystem::create_symlink(second / "later.so", first / "escape.so");
  EXPECT_EQ(locate_library("both.so", both).value_or(""), first / "both.so");
  EXPECT_EQ(locate_library("later.so", both).value_or(""), second / "later.so");
  EXPECT_EQ(locate_library("absent.so", both).value_or(""), second / "absent.so");
  EXPECT_EQ(locate_library("/opt/x.so", both).value_or(""), "/opt/x.so");
  EXPECT_EQ(locate_library("dangling.so", both).value_or(""), first / "dangling.so")
      << "what is broken there is reported";
  for (const char* bad : {"..", ".", "../second/later.so", "escape.so"}) {
    const auto located = locate_library(bad, both);
    ASSERT_FALSE(located.has_value()) << bad;
    EXPECT_EQ(located.error().code, code::manifest_outside) << bad;
  }
}

TEST(manifest, classes_have_names) {
  EXPECT_EQ(class_name(BITNET_DEVICE_CPU), "cpu");
  EXPECT_EQ(class_name(BITNET_DEVICE_GPU), "gpu");
  EXPECT_EQ(class_name(BITNET_DEVICE_NPU), "npu");
  EXPECT_EQ(class_name(BITNET_DEVICE_OTHER), "other");
  EXPECT_EQ(class_name(99), "other");
}

}  // namespace
}  // namespace bitnet::plugin
