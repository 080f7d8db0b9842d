#include "huggingface/safetensors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "gguf/bytes.hpp"
#include "gguf/text.hpp"
#include "huggingface/config.hpp"

namespace bitnet::huggingface {
namespace {

using gguf::quote;
using nlohmann::json;

constexpr uint64_t length_bytes = 8;
constexpr uint64_t longest_header = uint64_t{100} << 20;  // the format's own limit
constexpr size_t most_dimensions = 4;
constexpr size_t longest_name = 256;

struct dtype_row {
  std::string_view name;
  uint64_t bytes;
};
constexpr std::array dtypes = {dtype_row{"F32", 4}, dtype_row{"F16", 2}, dtype_row{"BF16", 2},
                               dtype_row{"U8", 1},  dtype_row{"I8", 1},  dtype_row{"I32", 4},
                               dtype_row{"I64", 8}, dtype_row{"F64", 8}, dtype_row{"BOOL", 1},
                               dtype_row{"I16", 2}};

result<stored_tensor> read_tensor(const std::string& name, const json& about,
                                  std::span<const std::byte> data) {
  const auto wrong = [&](const std::string& what) {
    return bad_data(fmt::format("tensor {}{}", quote(name), what));
  };
  if (name.empty() || name.size() > longest_name) return wrong(" has a name of a strange length");
  if (!about.is_object() || !about.contains("dtype") || !about["dtype"].is_string() ||
      !about.contains("shape") || !about["shape"].is_array() || !about.contains("data_offsets") ||
      !about["data_offsets"].is_array() || about["data_offsets"].size() != 2)
    return wrong(": expected an object with dtype, shape and data_offsets");
  stored_tensor t{
      .name = name, .dtype = about["dtype"].get<std::string>(), .shape = {}, .bytes = {}};
  const auto* type = std::ranges::find(dtypes, t.dtype, &dtype_row::name);
  if (type == dtypes.end())
    return fail(BITNET_UNSUPPORTED,
                fmt::format("tensor {} is of type {}, which this program does not read",
                            quote(name), quote(t.dtype)));
  if (about["shape"].size() > most_dimensions)
    return wrong(fmt::format(" has {} dimensions; expected at most 4", about["shape"].size()));
  uint64_t bytes = type->bytes;
  for (const json& n : about["shape"]) {
    if (!n.is_number_unsigned()) return wrong(": its shape is no list of counts");
    t.shape.push_back(n.get<uint64_t>());
    const auto product = gguf::checked_mul(bytes, t.shape.back());
    if (!product || *product == 0) return wrong(" is empty, or larger than 64 bits can count");
    bytes = *product;
  }
  const json &first = about["data_offsets"][0], &last = about["data_offsets"][1];
  if (!first.is_number_unsigned() || !last.is_number_unsigned())
    return wrong(": data_offsets are no counts");
  const auto begin = first.get<uint64_t>();
  const auto end = last.get<uint64_t>();
  if (begin > end || end > data.size())
    return wrong(
        fmt::format(" should lie at bytes {} to {}, but the file holds {} bytes of tensors: it is "
                    "cut off; download it again",
                    begin, end, data.size()));
  if (end - begin != bytes)
    return wrong(
        fmt::format(" takes {} bytes by its shape, {} by its offsets", bytes, end - begin));
  t.bytes = data.subspan(begin, bytes);
  return t;
}

}  // namespace

result<std::vector<stored_tensor>> read_safetensors(std::span<const std::byte> file) {
  if (file.size() < length_bytes)
    return bad_data(fmt::format("has {} bytes; a safetensors file has at least 8", file.size()));
  const auto length = gguf::load<uint64_t>(file);
  if (length > longest_header || length > file.size() - length_bytes)
    return bad_data(fmt::format(
        "announces a header of {} bytes in a file of {}: it is no safetensors file, or cut off",
        length, file.size()));
  const auto text = file.subspan(length_bytes, length);
  const char* at = reinterpret_cast<const char*>(text.data());
  const auto header = parse_object({at, text.size()}, "the header");
  if (!header) return std::unexpected(header.error());
  std::vector<stored_tensor> out;
  for (const auto& [name, about] : header->items()) {
    if (name == "__metadata__") continue;
    auto t = read_tensor(name, about, file.subspan(length_bytes + length));
    if (!t) return std::unexpected(t.error());
    out.push_back(std::move(*t));
  }
  return out;
}

}  // namespace bitnet::huggingface
