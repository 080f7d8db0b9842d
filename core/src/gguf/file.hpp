#pragma once
// Opens a model on disk: one GGUF file, or all shards of a split one by its first.
//
// Shards  Named <stem>-00001-of-00003.gguf and so on, in one folder. The first has the metadata,
//         each has tensors.
// Errors  Those of mapping and container, and BITNET_NOT_FOUND for a missing shard; messages begin
//         with the file's path.
// Source  docs/reference/gguf.md#split-files

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gguf/container.hpp"
#include "gguf/mapping.hpp"

namespace bitnet::gguf {

struct split_keys {
  uint64_t number = 0;  // of this shard, from 0
  uint64_t count = 1;
  std::optional<int64_t> tensors;  // in all shards together
};

// Reorders heads of `width` rows or columns; the first `first` ones stay. The file stores them
// group by group; the result has the first of each group, the second of each, ...
struct head_reordering {
  uint64_t groups = 0;  // 0: nothing is reordered
  uint64_t in_group = 0;
  uint64_t width = 0;
  uint64_t first = 0;
  bool columns = false;  // reorders columns, not rows
};

// A file, or a member of it, that a composed file does not use.
struct left_out_member {
  std::string file;    // name in the folder
  std::string member;  // "": the whole file
  std::string why;
};

// "file: member"
std::string name_of(const left_out_member& one);

class file {
 public:
  enum class shards : uint8_t { all, first };  // first: for the metadata only
  static result<file> open(const std::filesystem::path& path, shards which = shards::all);
  // Views a whole unsplit file in memory, which the caller keeps alive.
  static result<file> view(std::span<const std::byte> bytes);

  struct placed_tensor {
    tensor_info info;
    uint32_t shard = 0;          // index of containers()
    uint64_t rotated_heads = 0;  // see formats::source
    head_reordering head_order{};
  };
  // A tensor of another file format. With metadata in GGUF's form it is read like a GGUF file's.
  struct foreign_tensor {
    std::string name;
    std::vector<uint64_t> ne;
    uint32_t type = 0;
    std::span<const std::byte> bytes;  // in one of `mappings`, or of `keeps`
    uint64_t rotated_heads = 0;
    head_reordering head_order{};
    std::shared_ptr<const std::vector<float>> keeps = nullptr;  // numbers that no file has
  };
  // `passed_over`: names of tensors that are not needed for text.
  static result<file> compose(std::vector<std::byte> metadata, std::vector<mapping> mappings,
                              std::vector<foreign_tensor> tensors,
                              std::vector<std::string> passed_over,
                              std::vector<left_out_member> left_out = {});

  [[nodiscard]] const container& metadata() const { return containers_.front(); }
  [[nodiscard]] std::span<const container> containers() const { return containers_; }
  [[nodiscard]] std::span<const mapping> mappings() const { return mappings_; }  // empty for a view
  [[nodiscard]] std::span<const placed_tensor> tensors() const { return tensors_; }
  [[nodiscard]] const mapping* mapping_of(std::span<const std::byte> part) const;  // or nullptr
  // Lets the kernel drop the pages of a part: guarded_map.
  void give_back(std::span<const std::byte> part) const;
  [[nodiscard]] const placed_tensor* find(std::string_view name) const;  // nullptr: not there
  [[nodiscard]] bool is_composed() const { return foreign_ != nullptr; }
  [[nodiscard]] std::span<const std::string> passed_over() const;   // of a composed file
  [[nodiscard]] std::span<const left_out_member> left_out() const;  // of a composed file
  // The GGUF metadata of a composed file; empty if it lies in a mapping.
  [[nodiscard]] std::span<const std::byte> composed_metadata() const;
  [[nodiscard]] uint64_t total_bytes() const;
  // Checks that every mapped file still has its size.
  [[nodiscard]] result<void> check_size() const;
  // Checks that no byte that was read was missing.
  [[nodiscard]] result<void> check_read() const;

 private:
  result<void> add_shards(const split_keys& first);
  result<void> collect();
  result<void> sort();

  struct foreign {
    std::vector<std::byte> metadata;
    std::vector<foreign_tensor> tensors;
    std::vector<std::string> passed_over;
    std::vector<left_out_member> left_out;
  };

  std::unique_ptr<const foreign> foreign_;  // of a composed file: owns what its views point to
  std::vector<mapping> mappings_;
  std::vector<container> containers_;
  std::vector<placed_tensor> tensors_;  // sorted by name
};

}  // namespace bitnet::gguf
