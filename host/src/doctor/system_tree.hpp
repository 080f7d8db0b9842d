#pragma once
// Reads files of the kernel and the system below a root folder. It trusts none of their contents:
// it reads bounded parts of regular files and bounded lists of names, never a device.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bitnet::host::doctor {

class system_tree {
 public:
  // `root` contains proc, sys, dev and etc. All paths are relative to it.
  explicit system_tree(std::filesystem::path root = "/") : root_(std::move(root)) {}

  // A longer file is cut: of /proc/cpuinfo only the first processors are read.
  static constexpr std::size_t longest_text = 65'536;  // bytes
  static constexpr std::size_t most_names = 4096;      // per folder

  [[nodiscard]] std::optional<std::string> text(const std::filesystem::path& path) const;
  // The first line, escaped for printing, without surrounding blanks; "" if there is none.
  [[nodiscard]] std::string line(const std::filesystem::path& path) const;
  // The decimal number that a file begins with. "max" gives nothing.
  [[nodiscard]] std::optional<uint64_t> number(const std::filesystem::path& path) const;
  // Names in a folder, sorted.
  [[nodiscard]] std::vector<std::string> names(const std::filesystem::path& folder) const;
  // The last component of a symbolic link's target: for a device's `driver`, the driver's name.
  [[nodiscard]] std::string link_end(const std::filesystem::path& path) const;
  [[nodiscard]] bool exists(const std::filesystem::path& path) const;

  [[nodiscard]] bool is_this_machine() const { return root_ == "/"; }
  [[nodiscard]] std::filesystem::path whole(const std::filesystem::path& path) const {
    return root_ / path;
  }

 private:
  std::filesystem::path root_;
};

// Parses a text that is a decimal number as a whole.
[[nodiscard]] std::optional<uint64_t> number_of(std::string_view text);
// The text after `name` and a colon on one line: "MemTotal: 16 kB", "model name : X".
[[nodiscard]] std::optional<std::string_view> field_of(std::string_view text,
                                                       std::string_view name);
// How many numbers a list such as "0-3,8" has; nothing if the text is not such a list.
[[nodiscard]] std::optional<uint64_t> count_in(std::string_view list);
// Splits a text at blanks, tabs and line ends.
[[nodiscard]] std::vector<std::string_view> words_of(std::string_view text);

}  // namespace bitnet::host::doctor
