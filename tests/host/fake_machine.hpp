#pragma once
// A machine as a folder with proc, sys, dev and etc in it, as `bitnet doctor` reads one.

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "../scratch_folder.hpp"

namespace bitnet::host {

class fake_machine {
 public:
  // A machine at which nothing is wrong: two processors, 16 GiB, no GPU, user 4242 in no group.
  fake_machine() {
    file("proc/cpuinfo",
         "processor\t: 0\nmodel name\t: Example CPU\nflags\t\t: lm sse4_1 avx2 f16c\n\n"
         "processor\t: 1\nmodel name\t: Example CPU\nflags\t\t: lm sse4_1 avx2 f16c\n");
    file("proc/meminfo",
         "MemTotal:       16777216 kB\nMemAvailable:   12582912 kB\nSwapTotal:             0 kB\n"
         "SwapFree:              0 kB\nHugePages_Total:       0\nHugePages_Free:        0\n");
    file("proc/sys/kernel/osrelease", "6.1.0\n");
    file("sys/devices/system/cpu/online", "0-1\n");
    file("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    file("sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n");
    governor("schedutil", "acpi-cpufreq");
    user("");
    file("etc/group", "root:x:0:\nrender:x:" + std::to_string(render_group()) + ":ann\n");
  }

  fake_machine& file(const std::string& path, std::string_view content) {
    folder_.write(path, content);
    return *this;
  }
  fake_machine& link(const std::string& path, const std::string& to) {
    const auto at = folder_.path() / path;
    std::filesystem::create_directories(at.parent_path());
    std::filesystem::remove(at);
    std::filesystem::create_symlink(to, at);
    return *this;
  }
  // On the PCI bus; `driver` "" for none.
  fake_machine& pci(const std::string& address, const std::string& vendor,
                    const std::string& device_class, const std::string& driver) {
    const std::string at = "sys/bus/pci/devices/" + address + "/";
    file(at + "vendor", "0x" + vendor + "\n");
    file(at + "device", "0x1234\n");
    file(at + "class", "0x" + device_class + "\n");
    if (!driver.empty()) link(at + "driver", "../../../../bus/pci/drivers/" + driver);
    return *this;
  }
  // A regular file stands for the device: none is ever opened. `address`: of a render node.
  fake_machine& node(const std::string& path, mode_t mode, const std::string& address = "") {
    file(path, "");
    const auto at = folder_.path() / path;
    if (geteuid() == 0 && chown(at.c_str(), 0, render_group()) != 0)
      throw std::runtime_error("cannot give away " + path);
    chmod(at.c_str(), mode);
    const std::string name = at.filename();
    if (!address.empty()) link("sys/class/drm/" + name + "/device", "../../../" + address);
    return *this;
  }
  fake_machine& user(const std::string& groups) {
    return file("proc/self/status",
                "Name:\tbitnet\nUid:\t4242\t4242\t4242\t4242\nGid:\t4242\t4242\t4242\t4242\n"
                "Groups:\t" +
                    groups + " \nCpus_allowed_list:\t0-1\n");
  }
  fake_machine& user_in_render() { return user("4242 " + std::to_string(render_group())); }
  fake_machine& governor(const std::string& name, const std::string& driver) {
    for (const char* policy : {"policy0", "policy1"}) {
      const std::string at = std::string("sys/devices/system/cpu/cpufreq/") + policy + "/";
      file(at + "scaling_governor", name + "\n");
      file(at + "scaling_driver", driver + "\n");
    }
    return *this;
  }

  [[nodiscard]] const std::filesystem::path& root() const { return folder_.path(); }
  // Of nodes: only root may give a file to any group.
  static gid_t render_group() { return geteuid() == 0 ? 105 : getegid(); }

 private:
  test::scratch_folder folder_;
};

}  // namespace bitnet::host
