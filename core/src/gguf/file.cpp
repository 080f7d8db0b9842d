#include "gguf/file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "gguf/text.hpp"

namespace bitnet::gguf {
namespace {

constexpr uint64_t most_shards = 99999;  // five digits in the file name

result<split_keys> read_split(const container& c) {
  const auto number = c.integer("split.no");
  const auto count = c.integer("split.count");
  const auto tensors = c.integer("split.tensors.count");
  for (const auto* r : {&number, &count, &tensors})
    if (!*r) return std::unexpected(r->error());
  split_keys s;
  if (const auto n = count->value_or(1); n > 1) {
    const auto at = number->value_or(-1);
    if (std::cmp_greater(n, most_shards) || at < 0 || at >= n)
      return fail(BITNET_BAD_DATA,
                  fmt::format("claims to be part {} (from 0) of {}; expected at most {} parts", at,
                              n, most_shards));
    s = {.number = static_cast<uint64_t>(at),
         .count = static_cast<uint64_t>(n),
         .tensors = *tensors};
  }
  return s;
}

std::string five_digits(uint64_t n) {
  const std::string digits = std::to_string(n);
  return std::string(5 - std::min<size_t>(digits.size(), 5), '0') + digits;
}

// "-00001-of-00003.gguf"; `number` from 0.
std::string suffix(uint64_t number, uint64_t count) {
  return fmt::format("-{}-of-{}.gguf", five_digits(number + 1), five_digits(count));
}

}  // namespace

result<file> file::open(const std::filesystem::path& path, shards which) {
  auto mapped = mapping::open(path);
  if (!mapped) return pass_on(std::move(mapped), quote(path.native()));
  auto parsed = container::parse(mapped->bytes());
  if (!parsed) return pass_on(std::move(parsed), quote(path.native()));
  file f;
  f.mappings_.push_back(std::move(*mapped));
  f.containers_.push_back(std::move(*parsed));
  auto part = read_split(f.metadata());
  if (!part) return pass_on(std::move(part), quote(path.native()));
  if (which == shards::all && part->count > 1)
    if (auto ok = f.add_shards(*part); !ok) return pass_on(std::move(ok), quote(path.native()));
  if (auto ok = f.collect(); !ok) return pass_on(std::move(ok), quote(path.native()));
  return f;
}

result<file> file::view(std::span<const std::byte> bytes) {
  auto parsed = container::parse(bytes);
  if (!parsed) return std::unexpected(parsed.error());
  file f;
  f.containers_.push_back(std::move(*parsed));
  if (auto ok = f.collect(); !ok) return std::unexpected(ok.error());
  return f;
}

result<file> file::compose(std::vector<std::byte> metadata, std::vector<mapping> mappings,
                           std::vector<foreign_tensor> tensors,
                           std::vector<std::string> passed_over,
                           std::vector<left_out_member> left_out) {
  file f;
  f.foreign_ = std::make_unique<const foreign>(std::move(metadata), std::move(tensors),
                                               std::move(passed_over), std::move(left_out));
  auto parsed = container::parse(f.foreign_->metadata);
  if (!parsed) return std::unexpected(parsed.error());
  f.containers_.push_back(std::move(*parsed));
  f.mappings_ = std::move(mappings);
  for (const foreign_tensor& t : f.foreign_->tensors) {
    placed_tensor placed;
    placed.info.name = t.name;
    placed.info.rank = static_cast<uint32_t>(t.ne.size());
    for (size_t d = 0; d < t.ne.size(); ++d) {
      placed.info.ne[d] = t.ne[d];
      placed.info.elements *= t.ne[d];
    }
    placed.info.type = t.type;
    placed.info.bytes = t.bytes;
    placed.info.available = t.bytes.size();
    placed.rotated_heads = t.rotated_heads;
    placed.head_order = t.head_order;
    f.tensors_.push_back(placed);
  }
  if (auto ok = f.sort(); !ok) return std::unexpected(ok.error());
  return f;
}

result<void> file::add_shards(const split_keys& first) {
  const uint64_t count = first.count;
  const std::filesystem::path path = mappings_.front().path();  // a copy, since mappings_ grows
  const std::string name = path.filename().native();
  const std::string own = suffix(first.number, count);
  if (!name.ends_with(own))
    return fail(
        BITNET_BAD_DATA,
        fmt::format(
            "is part {} of {}, so its name should end in {}; give all parts their original names",
            first.number + 1, count, own));
  const std::string stem = name.substr(0, name.size() - own.size());
  if (first.number != 0)
    return fail(BITNET_BAD_DATA,
                fmt::format("is part {} of {}; open the first, {}", first.number + 1, count,
                            quote(stem + suffix(0, count))));
  for (uint64_t i = 1; i < count; ++i) {
    const auto beside = path.parent_path() / (stem + suffix(i, count));
    const std::string which =
        fmt::format("part {} of {}, {}", i + 1, count, quote(beside.native()));
    auto mapped = mapping::open(beside);
    if (!mapped) return pass_on(std::move(mapped), which);
    auto parsed = container::parse(mapped->bytes());
    if (!parsed) return pass_on(std::move(parsed), which);
    auto part = read_split(*parsed);
    if (!part) return pass_on(std::move(part), which);
    if (part->number != i || part->count != count)
      return fail(BITNET_BAD_DATA,
                  fmt::format("{} says that it is part {} of {}; the parts are of different models",
                              which, part->number + 1, part->count));
    mappings_.push_back(std::move(*mapped));
    containers_.push_back(std::move(*parsed));
  }
  uint64_t found = 0;
  for (const container& c : containers_) found += c.tensors().size();
  if (first.tensors && !std::cmp_equal(*first.tensors, found))
    return fail(
        BITNET_BAD_DATA,
        fmt::format(
            "split.tensors.count is {}, but the {} parts hold {} tensors; a part is damaged",
            *first.tensors, count, found));
  return {};
}

result<void> file::collect() {
  for (uint32_t shard = 0; shard < containers_.size(); ++shard)
    for (const tensor_info& t : containers_[shard].tensors())
      tensors_.push_back({.info = t, .shard = shard});
  return sort();
}

result<void> file::sort() {
  const auto name_of = [](const placed_tensor& t) { return t.info.name; };
  std::ranges::sort(tensors_, {}, name_of);
  const auto twice = std::ranges::adjacent_find(tensors_, {}, name_of);
  if (twice != tensors_.end())
    return fail(BITNET_BAD_DATA, fmt::format("tensor {} is in two parts", quote(twice->info.name)));
  return {};
}

const file::placed_tensor* file::find(std::string_view name) const {
  const auto at = std::ranges::lower_bound(tensors_, name, {},
                                           [](const placed_tensor& t) { return t.info.name; });
  return at != tensors_.end() && at->info.name == name ? &*at : nullptr;
}

const mapping* file::mapping_of(std::span<const std::byte> part) const {
  const auto found =
      std::ranges::find_if(mappings_, [&](const mapping& one) { return one.holds(part); });
  return found == mappings_.end() ? nullptr : &*found;
}

void file::give_back(std::span<const std::byte> part) const {
  if (const mapping* of = mapping_of(part)) of->give_back(part);
}

std::span<const std::string> file::passed_over() const {
  if (!foreign_) return {};
  return foreign_->passed_over;
}

std::span<const std::byte> file::composed_metadata() const {
  if (!foreign_) return {};
  return foreign_->metadata;
}

std::string name_of(const left_out_member& one) {
  return one.member.empty() ? one.file : fmt::format("{}: {}", one.file, one.member);
}

std::span<const left_out_member> file::left_out() const {
  if (!foreign_) return {};
  return foreign_->left_out;
}

uint64_t file::total_bytes() const {
  uint64_t sum = 0;
  for (const mapping& m : mappings_) sum += m.bytes().size();
  return sum;
}

result<void> file::check_read() const {
  for (const mapping& m : mappings_)
    if (auto ok = m.check_read(); !ok) return ok;
  return {};
}

result<void> file::check_size() const {
  for (const mapping& m : mappings_)
    if (auto ok = m.check_size(); !ok) return ok;
  return {};
}

}  // namespace bitnet::gguf
