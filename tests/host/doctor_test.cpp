// What `bitnet doctor` says of machines that lie in folders, and what it says to do first.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "doctor/report.hpp"
#include "fake_machine.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// The hints that are installed, which are so judged, too.
doctor::hardware_hints installed_hints() {
  const char* source = std::getenv("BITNET_SOURCE_DIR");
  const std::filesystem::path file =
      std::filesystem::path(source == nullptr ? "." : source) / "host/hardware-hints.yaml";
  auto hints = doctor::parse_hints(test::scratch_folder::read(file), "hints");
  if (!hints) throw std::runtime_error(hints.error().message);
  return *std::move(hints);
}

constexpr const char* cpu_works = R"({"selected": "cpu", "device": "cpu:0", "backends": [
  {"name": "cpu", "code": "BN-OK", "stage": "selected", "devices":
    [{"index": 0, "class": "cpu", "usable": true, "rank": 1, "arch": "x86-64 avx2"}],
   "probe": {"self_test": "add: right; mul: right"}}]})";

// The same with another backend.
json with(const std::string& backend) {
  json out = json::parse(cpu_works);
  out["backends"].push_back(json::parse(backend));
  return out;
}

json driving(const std::string& name, const std::string& address) {
  return with(R"({"name": ")" + name +
              R"(", "code": "BN-OK", "devices": [{"index": 0, "class": "gpu", "usable": true,
                  "rank": 1, "pci_address": ")" +
              address + R"("}]})");
}

ordered_json examined(const fake_machine& machine, const json& runtime) {
  const auto hints = installed_hints();
  return doctor::examine(doctor::system_tree(machine.root()), {hints, runtime, {}});
}

bool has_no_null(const ordered_json& value) {
  if (value.is_null()) return false;
  if (!value.is_structured()) return true;
  return std::ranges::all_of(value, has_no_null);
}

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  return text.substr(text.rfind('\n', end) + 1, end - text.rfind('\n', end));
}

std::string states_of(const ordered_json& report) {
  std::string out;
  for (const ordered_json& one : report["devices"])
    out += (out.empty() ? "" : " ") + one.value("state", "?");
  return out;
}

struct row {
  const char* why;
  std::function<void(fake_machine&)> build;
  json runtime;
  const char* states;  // of its devices
  const char* first;   // a part of the last line
};

constexpr const char* nothing = "nothing is to be done";
constexpr const char* card = "0000:01:00.0";

json cpu() {
  return json::parse(cpu_works);
}

std::vector<row> machines_with_nvidia() {
  return {
      {"no GPU", [](fake_machine&) {}, cpu(), "", nothing},
      {"NVIDIA without a driver", [](auto& m) { m.pci(card, "10de", "030200", ""); }, cpu(),
       "no-driver", "install nvidia-driver"},
      {"NVIDIA with nouveau", [](auto& m) { m.pci(card, "10de", "030000", "nouveau"); }, cpu(),
       "other-driver", "install nvidia-driver"},
      {"NVIDIA with its driver, and no backend",
       [](auto& m) {
         m.pci(card, "10de", "030200", "nvidia").node("dev/nvidia0", 0666);
         m.node("dev/nvidiactl", 0666).file("sys/module/nvidia/version", "550.54\n");
       },
       cpu(), "no-backend", "install bitnet-backend-cuda with libcuda1, or bitnet-backend-vulkan"},
      {"NVIDIA in a container without /dev",
       [](auto& m) { m.pci(card, "10de", "030200", "nvidia").file(".dockerenv", ""); }, cpu(),
       "no-node", "pass /dev/nvidia* into the container"},
      {"NVIDIA that cuda drives, with a long domain",
       [](auto& m) { m.pci(card, "10de", "030200", "nvidia").node("dev/nvidia0", 0666); },
       driving("cuda", "00000000:01:00.0"), "driven", nothing},
      {"a second NVIDIA that a variable hides",
       [](auto& m) {
         m.pci(card, "10de", "030200", "nvidia").pci("0000:02:00.0", "10de", "030200", "nvidia");
         m.node("dev/nvidia0", 0666);
       },
       driving("cuda", card), "driven not-listed", "CUDA_VISIBLE_DEVICES"},
  };
}

std::vector<row> machines_with_amd() {
  return {
      {"AMD with amdgpu, the user outside of render",
       [](auto& m) {
         m.pci(card, "1002", "030000", "amdgpu").node("dev/dri/renderD128", 0660, card);
       },
       cpu(), "no-access", "sudo usermod -aG render \"$USER\""},
      {"AMD with amdgpu, the user in render",
       [](auto& m) {
         m.pci(card, "1002", "030000", "amdgpu").node("dev/dri/renderD128", 0660, card);
         m.user_in_render();
       },
       cpu(), "no-backend", "install bitnet-backend-vulkan with mesa-vulkan-drivers"},
      {"AMD without its kernel driver", [](auto& m) { m.pci(card, "1002", "030000", ""); }, cpu(),
       "no-driver", "sudo modprobe amdgpu"},
      {"AMD's node with a mode that no group has",
       [](auto& m) {
         m.pci(card, "1002", "030000", "amdgpu").node("dev/dri/renderD128", 0600, card);
       },
       cpu(), "no-access", "by a rule of udev"},
      {"AMD whose vulkan has no driver",
       [](auto& m) {
         m.pci(card, "1002", "030000", "amdgpu").node("dev/dri/renderD128", 0666, card);
       },
       with(R"({"name": "vulkan", "code": "BN-P-UNAVAILABLE", "reason": "no driver",
                "hint": "install a driver for Vulkan", "devices": []})"),
       "failing", "install a driver for Vulkan"},
      {"an accelerator of AMD",
       [](auto& m) {
         m.pci(card, "1002", "120000", "amdgpu").node("dev/dri/renderD128", 0666, card);
       },
       driving("opencl", card), "driven", nothing},
  };
}

std::vector<row> machines_with_others() {
  return {
      {"an integrated GPU of Intel",
       [](auto& m) {
         m.pci("0000:00:02.0", "8086", "030000", "i915");
         m.node("dev/dri/renderD128", 0666, "0000:00:02.0");
       },
       cpu(), "no-backend", "install bitnet-backend-vulkan"},
      {"Intel Arc that vulkan drives",
       [](auto& m) {
         m.pci("0000:03:00.0", "8086", "038000", "xe");
         m.node("dev/dri/renderD128", 0666, "0000:03:00.0");
       },
       driving("vulkan", "0000:03:00.0"), "driven", nothing},
      {"two GPUs, of which one is closed",
       [](auto& m) {
         m.pci(card, "10de", "030200", "nvidia").pci("0000:05:00.0", "1002", "030000", "amdgpu");
         m.node("dev/nvidia0", 0666).node("dev/dri/renderD129", 0660, "0000:05:00.0");
       },
       driving("cuda", card), "driven no-access", "usermod -aG render"},
      {"an access that is a command before a driver that is a restart",
       [](auto& m) {
         m.pci(card, "10de", "030200", "").pci("0000:05:00.0", "1002", "030000", "amdgpu");
         m.node("dev/dri/renderD129", 0660, "0000:05:00.0");
       },
       cpu(), "no-driver no-access", "usermod -aG render"},
      {"a GPU for a virtual machine", [](auto& m) { m.pci(card, "10de", "030200", "vfio-pci"); },
       cpu(), "passed-on", nothing},
      {"a virtual machine's display",
       [](auto& m) { m.pci("0000:00:01.0", "1af4", "038000", "virtio-pci"); }, cpu(), "idle",
       nothing},
      {"an NPU of Intel", [](auto& m) { m.pci("0000:00:0b.0", "8086", "120000", "intel_vpu"); },
       cpu(), "idle", nothing},
      {"an NPU of AMD", [](auto& m) { m.pci("0000:c5:00.1", "1022", "118000", "amdxdna"); }, cpu(),
       "idle", nothing},
      {"an unknown vendor", [](auto& m) { m.pci(card, "1ed5", "030000", "mtgpu"); }, cpu(),
       "unknown", nothing},
      {"a backend that does not say which device it drives",
       [](auto& m) { m.pci(card, "10de", "030200", "nvidia"); },
       with(R"({"name": "opencl", "code": "BN-OK", "devices":
                [{"index": 0, "class": "gpu", "usable": true, "rank": 1}]})"),
       "unknown", nothing},
      {"a driver in software drives no GPU",
       [](auto& m) {
         m.pci(card, "1002", "030000", "amdgpu").node("dev/dri/renderD128", 0666, card);
       },
       with(R"({"name": "vulkan", "code": "BN-OK", "devices":
                [{"index": 0, "class": "cpu", "usable": true, "rank": 2}]})"),
       "failing", "bitnet backends info vulkan"},
  };
}

std::vector<row> machines_with_limits() {
  return {
      {"the governor powersave", [](auto& m) { m.governor("powersave", "acpi-cpufreq"); }, cpu(),
       "", "cpupower"},
      {"a driver for which powersave is a name",
       [](auto& m) { m.governor("powersave", "intel_pstate"); }, cpu(), "", nothing},
      {"large pages are switched off",
       [](auto& m) {
         m.file("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
       },
       cpu(), "", "echo madvise"},
      {"half a processor by cgroup 2",
       [](auto& m) {
         m.file("proc/self/cgroup", "0::/box/inner\n").file("sys/fs/cgroup/cgroup.controllers", "");
         m.file("sys/fs/cgroup/box/cpu.max", "50000 100000\n");
         m.file("sys/fs/cgroup/box/inner/cpu.max", "max 100000\n");
       },
       cpu(), "", "cpu.max"},
      {"little memory by cgroup 1",
       [](auto& m) {
         m.file("proc/self/cgroup", "4:memory:/box\n");
         m.file("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "536870912\n");
         m.file("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "1048576\n");
         m.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
       },
       cpu(), "", "raise the memory limit of the control group, which is 512 MiB"},
  };
}

std::vector<row> machines_without_backends() {
  return {
      {"nothing is installed", [](fake_machine&) {},
       json::parse(R"({"selected": "none", "problem": "none", "backends": []})"), "",
       "install bitnet-backend-cpu"},
      {"the processor's backend is rejected", [](fake_machine&) {},
       json::parse(R"({"selected": "none", "problem": "none can be used", "backends": [
         {"name": "cpu", "code": "BN-T-MODE", "reason": "others may write", "hint": "chmod it"}]})"),
       "", "chmod it"},
      {"a backend computes wrongly", [](fake_machine&) {},
       with(R"({"name": "cuda", "code": "BN-P-SELF-TEST", "reason": "wrong",
                "hint": "do not use it"})"),
       "", "do not use it"},
  };
}

class machines : public testing::TestWithParam<std::vector<row> (*)()> {};

TEST_P(machines, get_advice_on_what_to_do_first) {
  for (const row& r : GetParam()()) {
    fake_machine machine;
    r.build(machine);
    const ordered_json report = examined(machine, r.runtime);
    EXPECT_EQ(states_of(report), r.states) << r.why;
    const std::string text = doctor::report_text(report);
    EXPECT_TRUE(last_line(text).starts_with("first: ")) << r.why << "\n" << text;
    EXPECT_NE(last_line(text).find(r.first), std::string::npos) << r.why << "\n" << text;
    EXPECT_TRUE(has_no_null(report)) << r.why << "\n" << report.dump(1);
    EXPECT_EQ(report["first"] == "", report["findings"].empty()) << r.why;
  }
}

INSTANTIATE_TEST_SUITE_P(doctor, machines,
                         testing::Values(machines_with_nvidia, machines_with_amd,
                                         machines_with_others, machines_with_limits,
                                         machines_without_backends));

TEST(doctor, a_machine_is_described) {
  fake_machine machine;
  machine.file("etc/os-release", "NAME=x\nPRETTY_NAME=\"Example 12\"\n")
      .file("proc/self/limits",
            "Limit   Soft Limit   Hard Limit   Units\n"
            "Max processes             7000   8000   processes\n"
            "Max locked memory         unlimited   unlimited   bytes\n")
      .file("proc/self/cgroup", "0::/box\n")
      .file("sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
      .file("sys/fs/cgroup/box/cpu.max", "150000 100000\n")
      .file("sys/fs/cgroup/box/memory.max", "8589934592\n")
      .file("sys/fs/cgroup/box/memory.current", "3221225472\n")
      .file("sys/fs/cgroup/box/memory.stat", "anon 1\ninactive_file 1073741824\nfile 2\n")
      .file("sys/fs/cgroup/box/pids.max", "512\n");
  const ordered_json report = examined(machine, json::parse(cpu_works));
  EXPECT_EQ(report["machine"]["processor"], "Example CPU");
  EXPECT_EQ(report["machine"]["system"], "Example 12");
  EXPECT_EQ(report["machine"]["architecture"], "x86_64");
  EXPECT_EQ(report["machine"]["forms"], (ordered_json{"avx2", "sse41", "scalar"}));
  EXPECT_EQ(report["machine"]["runs"], "avx2");
  EXPECT_EQ(report["machine"]["cpus_online"], 2);
  EXPECT_EQ(report["pages"]["transparent"], "madvise");
  EXPECT_EQ(report["pages"]["large_page_bytes"], 2097152);
  EXPECT_EQ(report["governor"]["governors"], ordered_json{"schedutil"});
  EXPECT_EQ(report["limits"]["cpu_quota"], 1.5);
  EXPECT_EQ(report["limits"]["cgroup_version"], 2);
  EXPECT_EQ(report["limits"]["cgroup_tasks"], 512);
  EXPECT_EQ(report["limits"]["cgroup_memory_bytes"], uint64_t{8} << 30U);
  EXPECT_EQ(report["limits"]["processes"], 7000);
  EXPECT_FALSE(report["limits"].contains("locked_bytes")) << "unlimited";
  EXPECT_FALSE(report["limits"].contains("open_files")) << "unknown";
  EXPECT_EQ(report["memory"]["total_bytes"], uint64_t{16} << 30U);
  EXPECT_EQ(report["memory"]["free_bytes"], uint64_t{6} << 30U) << "8 - (3 - 1) in the group";
  EXPECT_EQ(report["backends"][0]["self_test"]["right"], 2);
}

TEST(doctor, an_aarch64_board_has_its_own_forms) {
  fake_machine machine;
  machine.file("proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd asimddp\nCPU part\t: 0xd0b\n")
      .file("sys/firmware/devicetree/base/model", std::string("Example Board 5\0", 16))
      .node("dev/dri/renderD128", 0660);
  const ordered_json report = examined(machine, json::parse(cpu_works));
  EXPECT_EQ(report["machine"]["architecture"], "aarch64");
  EXPECT_EQ(report["machine"]["board"], "Example Board 5");
  EXPECT_EQ(report["machine"]["forms"], (ordered_json{"neon-dotprod", "neon", "scalar"}));
  EXPECT_FALSE(report["machine"].contains("processor"));
  EXPECT_EQ(report["nodes"][0]["join"], "render");
}

TEST(doctor, versions_and_owners_are_reported) {
  fake_machine machine;
  machine.pci(card, "10de", "030200", "nvidia")
      .file("sys/module/nvidia/version", "550.54.15\n")
      .node("dev/nvidia0", 0660)
      .file("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: X\nDevice Minor: 0\n");
  const ordered_json report = examined(machine, json::parse(cpu_works));
  EXPECT_EQ(report["devices"][0]["driver_version"], "550.54.15");
  EXPECT_EQ(report["nodes"][0]["path"], "/dev/nvidia0");
  EXPECT_EQ(report["nodes"][0]["address"], card);
  EXPECT_EQ(report["nodes"][0]["usable"], false);
  EXPECT_EQ(report["devices"][0]["state"], "no-access");
}

// Whatever a tree holds: an end, no null, and text that no terminal obeys.
void expect_survival(fake_machine& machine, const char* why) {
  const ordered_json report = examined(machine, json::parse(cpu_works));
  EXPECT_TRUE(has_no_null(report)) << why;
  EXPECT_EQ(report.dump().find('\x1b'), std::string::npos) << why;
  EXPECT_TRUE(last_line(doctor::report_text(report)).starts_with("first: ")) << why;
}

TEST(doctor, hostile_trees_change_nothing_else) {
  {
    fake_machine machine;
    std::filesystem::remove_all(machine.root() / "proc");
    std::filesystem::remove_all(machine.root() / "sys");
    expect_survival(machine, "an empty machine");
  }
  {
    fake_machine machine;
    machine.link("proc/meminfo", "meminfo").link("proc/cpuinfo", "../proc/cpuinfo");
    machine.link("sys/bus/pci/devices", "devices").link("dev/dri", "../dev/dri");
    expect_survival(machine, "loops");
  }
  {
    fake_machine machine;
    machine.file("proc/cpuinfo", std::string(20U << 20U, 'x'))
        .file("proc/self/cgroup", "0::/" + std::string(1U << 20U, '/') + "\n")
        .file("proc/sys/kernel/osrelease", std::string(1U << 20U, '\x1b'));
    expect_survival(machine, "huge files");
  }
  {
    fake_machine machine;
    for (const char* fifo : {"proc/meminfo", "proc/self/status", "etc/group"}) {
      std::filesystem::remove(machine.root() / fifo);
      ASSERT_EQ(mkfifo((machine.root() / fifo).c_str(), 0600), 0);
    }
    expect_survival(machine, "pipes that have no writer");
  }
  {
    fake_machine machine;
    machine.file("proc/meminfo", "MemTotal: 99999999999999999999 kB\nMemAvailable: -1 kB\n")
        .file("sys/devices/system/cpu/online", "0-99999999999,7-3,x\n")
        .file("sys/fs/cgroup/cpu.max", "0 0\n")
        .file("proc/self/cgroup", "0::/\n::\n:\nx\n4:/etc:/\n0::/../../../etc\n");
    expect_survival(machine, "numbers that are none");
    EXPECT_EQ(examined(machine, json::parse(cpu_works))["memory"], ordered_json::object());
  }
}

TEST(doctor, broken_pci_devices_are_left_out) {
  fake_machine machine;
  machine.pci("0000:01:00.0", "zzzz", "030000", "")
      .pci("0000:02:00.0", "10de", "03", "")
      .pci("0000:03:00.0", "10de1", "030000", "")
      .pci("not an address", "10de", "030000", "")
      .pci("0000:04:00.0", "10de", "020000", "e1000")
      .pci("0000:05:00.0", "10DE", "030000", "\x1b[2J");
  std::filesystem::create_directories(machine.root() / "sys/bus/pci/devices/0000:06:00.0/class");
  const ordered_json report = examined(machine, json::parse(cpu_works));
  ASSERT_EQ(report["devices"].size(), 1U) << report["devices"].dump(1);
  EXPECT_EQ(report["devices"][0]["address"], "0000:05:00.0");
  EXPECT_EQ(report["devices"][0]["vendor"], "10de");
  EXPECT_EQ(report["devices"][0]["driver"], "\\x1b[2J");
}

TEST(doctor, a_library_that_reports_nonsense_is_survived) {
  const fake_machine machine;
  for (const char* text :
       {"{}", "[]", "null", "7", R"({"backends": 3})", R"({"backends": [3, null, "x", []]})",
        R"({"backends": [{"devices": [null, 7]}]})",
        R"({"selected": 3, "backends": [{"probe": 7, "name": 8, "devices": {"x": 1}}]})"}) {
    const ordered_json report = examined(machine, json::parse(text));
    EXPECT_NE(doctor::report_text(report).find("first: "), std::string::npos) << text;
  }
}

TEST(doctor, caches_are_counted) {
  const fake_machine machine;
  const test::scratch_folder caches;
  caches.write("probe/a.json", "12345");
  caches.write("probe/deeper/b.json", "123");
  const auto hints = installed_hints();
  const json runtime = json::parse(cpu_works);
  const ordered_json report = doctor::examine(
      doctor::system_tree(machine.root()),
      {hints, runtime, {{"probes", caches.path() / "probe"}, {"weights", caches.path() / "none"}}});
  ASSERT_EQ(report["caches"].size(), 2U);
  EXPECT_EQ(report["caches"][0]["files"], 2);
  EXPECT_EQ(report["caches"][0]["bytes"], 8);
  EXPECT_EQ(report["caches"][1]["files"], 0);
  EXPECT_EQ(report["caches"][1]["writable"], true);
}

TEST(hardware_hints, what_is_wrong_is_named_with_its_line) {
  struct wrong {
    const char* text;
    const char* says;
  };
  for (const auto& [text, says] : std::initializer_list<wrong>{
           {"", "expected keys and values for the file"},
           {"hardware: []\n", "expected the key schema"},
           {"schema: 2\n", "h.yaml:1: expected schema 1"},
           {"schema: 1\nhardware: 3\n", "h.yaml:2: expected a list for hardware"},
           {"schema: 1\nhardware:\n  - {class: '03', name: x}\n", "expected the key vendor"},
           {"schema: 1\nhardware:\n  - {vendor: 10dez, class: '03', name: x}\n",
            "h.yaml:3: expected digits of base 16 for vendor, found '10dez'"},
           {"schema: 1\nhardware:\n  - 7\n", "expected keys and values for an item of hardware"},
           {"schema: [\n", "h.yaml:"},
       }) {
    const auto hints = doctor::parse_hints(text, "h.yaml");
    ASSERT_FALSE(hints) << text;
    EXPECT_NE(hints.error().message.find(says), std::string::npos) << hints.error().message;
  }
  EXPECT_FALSE(doctor::parse_hints(std::string(100'000, '#'), "h.yaml"));
  EXPECT_FALSE(doctor::parse_hints(std::string(60'000, '['), "h.yaml"));
  const auto later = doctor::parse_hints("schema: 1\nnew_key: 3\nhardware: []\n", "h.yaml");
  EXPECT_TRUE(later) << "a key of a later version";
}

TEST(hardware_hints, the_first_row_that_fits_counts) {
  const auto hints = doctor::parse_hints(
      "schema: 1\nhardware:\n"
      "  - {vendor: 10de, class: '0302', name: no display}\n"
      "  - {vendor: 10de, class: '03', name: display}\n",
      "h.yaml");
  ASSERT_TRUE(hints);
  doctor::pci_device device;
  device.vendor = "10de";
  device.device_class = "030200";
  ASSERT_NE(doctor::hint_for(*hints, device), nullptr);
  EXPECT_EQ(doctor::hint_for(*hints, device)->name, "no display");
  device.device_class = "030000";
  EXPECT_EQ(doctor::hint_for(*hints, device)->name, "display");
  device.device_class = "120000";
  EXPECT_EQ(doctor::hint_for(*hints, device), nullptr);
}

}  // namespace
}  // namespace bitnet::host
