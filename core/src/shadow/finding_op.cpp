#include "shadow/finding_op.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/floats.hpp"
#include "shadow/cut_program.hpp"

namespace bitnet::shadow {
namespace {

// ---- comparing ---------------------------------------------------------------------------------

template <class T>
T element(const std::vector<std::byte>& bytes, std::size_t i) {
  T out;
  std::memcpy(&out, bytes.data() + i * sizeof(T), sizeof(T));
  return out;
}

double number(const contents& from, std::size_t i) {
  switch (from.dtype) {
    case BITNET_DTYPE_F16:
      return from_f16(element<uint16_t>(from.bytes, i));
    case BITNET_DTYPE_I8:
      return element<int8_t>(from.bytes, i);
    case BITNET_DTYPE_I32:
      return element<int32_t>(from.bytes, i);
    default:
      return element<float>(from.bytes, i);
  }
}

std::size_t element_bytes(uint32_t dtype) {
  if (dtype == BITNET_DTYPE_I8) return 1;
  return dtype == BITNET_DTYPE_F16 ? 2 : 4;
}

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double out = std::abs(a - b);
  return std::isnan(out) ? std::numeric_limits<double>::infinity() : out;
}

struct difference {
  bool found = false;
  double max_abs = 0;
};

difference compare(const std::vector<contents>& one, const std::vector<contents>& other,
                   double tolerance) {
  difference out;
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (one[i].bytes == other[i].bytes) continue;
    out.found = out.found || tolerance == 0;
    const std::size_t n = one[i].bytes.size() / element_bytes(one[i].dtype);
    for (std::size_t k = 0; k < n; ++k)
      out.max_abs = std::max(out.max_abs, distance(number(one[i], k), number(other[i], k)));
  }
  out.found = out.found || out.max_abs > tolerance;
  return out;
}

// ---- searching ---------------------------------------------------------------------------------

using split = std::vector<std::span<const int32_t>>;

class search {
 public:
  search(cut_runner& live, cut_runner& shadow, double tolerance)
      : live_(live), shadow_(shadow), tolerance_(tolerance) {
    for (const op_range& at : common_ops(live.whole(), live.ops(), shadow.ops()))
      if (cut(at).shows_op) places_.push_back(at);
  }

  // Finds the first place that differs when the tokens are computed in these steps.
  result<std::optional<op_difference>> run(const split& steps) {
    found_ = places_.size() - 1;
    const auto end = look(found_, steps);
    if (!end) return std::unexpected(end.error());
    if (!end->found) return std::nullopt;
    how_ = *end;
    for (std::size_t same = 0; same < found_;) {
      const std::size_t middle = same + (found_ - same) / 2;
      const auto differs = narrow(middle, steps);
      if (!differs) return std::unexpected(differs.error());
      if (!*differs) same = middle + 1;
    }
    if (auto ok = walk_back(steps); !ok) return std::unexpected(std::move(ok.error()));
    return in_words(places_[found_]);
  }

 private:
  [[nodiscard]] cut_program cut(const op_range& at) const {
    return cut_behind(live_.whole(), at, tolerance_ == 0);
  }

  result<difference> look(std::size_t place, const split& steps) {
    const cut_program at = cut(places_[place]);
    const auto one = live_.run(at, steps);
    if (!one) return std::unexpected(one.error());
    const auto other = shadow_.run(at, steps);
    if (!other) return std::unexpected(other.error());
    return compare(*one, *other, tolerance_);
  }

  // Compares at a place before the found one; if it differs, it is the found one. A place that
  // cannot be read is removed from the list: the one behind it stands for both.
  result<bool> narrow(std::size_t place, const split& steps) {
    const auto here = look(place, steps);
    if (!here && here.error().status != BITNET_UNSUPPORTED) return std::unexpected(here.error());
    if (!here) {
      places_.erase(places_.begin() + static_cast<std::ptrdiff_t>(place));
      --found_;
      return true;
    }
    if (!here->found) return false;
    found_ = place;
    how_ = *here;
    return true;
  }

  result<void> walk_back(const split& steps) {
    while (found_ != 0) {
      const auto differs = narrow(found_ - 1, steps);
      if (!differs) return std::unexpected(differs.error());
      if (!*differs) break;
    }
    return {};
  }

  [[nodiscard]] op_difference in_words(const op_range& at) const {
    const engine::program_op& op = live_.ops()[at.first];
    op_difference out{.op = compute::op_name(op.op),
                      .index = at.first,
                      .of = live_.ops().size(),
                      .layer_or_name = {},
                      .max_abs = how_.max_abs};
    if (op.weights.size() == 1)
      out.layer_or_name = op.weights[0];
    else if (op.layer)
      out.layer_or_name = fmt::format("layer {}", *op.layer);
    return out;
  }

  cut_runner& live_;
  cut_runner& shadow_;
  const double tolerance_;
  std::vector<op_range> places_;
  std::size_t found_ = 0;  // index in places_ of the first that is known to differ
  difference how_;
};

// ---- what can be compared ----------------------------------------------------------------------

result<void> check_tokens(const engine::engine& on, std::span<const int32_t> tokens) {
  if (tokens.empty() || tokens.size() > most_tokens_to_bisect)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("1 to {} tokens can be compared op by op, and these are {}; give the "
                            "first of them",
                            most_tokens_to_bisect, tokens.size()));
  const uint32_t n_vocab = on.model().shape().n_vocab;
  for (const int32_t id : tokens)
    if (id < 0 || static_cast<uint32_t>(id) >= n_vocab)
      return fail(BITNET_INVALID_ARGUMENT,
                  fmt::format("token {} is not one of the model's {}; give ids of its tokenizer",
                              id, n_vocab));
  return {};
}

result<void> check_parts(const engine::engine& on, const char* which) {
  if (on.parts().size() == 1) return {};
  std::string devices;
  for (const auto& p : on.parts())
    devices += (devices.empty() ? "" : ", ") + p->choice().device_name();
  return fail(BITNET_INVALID_ARGUMENT,
              fmt::format("ops are compared between models with all layers on one device, and the "
                          "{} one is on {}: {}; put all of it on one device",
                          which, on.parts().size(), devices));
}

template <class T>
bool same_bytes(const std::vector<T>& one, const std::vector<T>& other) {
  return one.size() == other.size() &&
         std::memcmp(one.data(), other.data(), one.size() * sizeof(T)) == 0;
}

result<void> check_lists(const cut_runner& live, const cut_runner& shadow) {
  if (same_bytes(live.whole().ops, shadow.whole().ops) &&
      same_bytes(live.whole().values, shadow.whole().values))
    return {};
  return fail(BITNET_INVALID_ARGUMENT,
              fmt::format("both sides must compute one list of ops, and the lists, of {} and {} "
                          "ops, differ; compare two devices with one model file",
                          live.ops().size(), shadow.ops().size()));
}

}  // namespace

result<std::optional<op_difference>> first_op_that_differs(
    const std::shared_ptr<engine::engine>& live, const std::shared_ptr<engine::engine>& shadow,
    std::span<const int32_t> tokens, double tolerance) {
  if (!(tolerance >= 0) || std::isinf(tolerance))
    return fail(
        BITNET_INVALID_ARGUMENT,
        fmt::format("the tolerance must be 0 or a finite number above it, and is {}", tolerance));
  if (auto ok = check_tokens(*live, tokens); !ok) return std::unexpected(std::move(ok.error()));
  for (const auto& [on, which] : {std::pair{live.get(), "live"}, {shadow.get(), "shadow"}})
    if (auto ok = check_parts(*on, which); !ok) return std::unexpected(std::move(ok.error()));
  auto one = cut_runner::open(live, tokens.size());
  if (!one) return pass_on(std::move(one), "the live side");
  auto other = cut_runner::open(shadow, tokens.size());
  if (!other) return pass_on(std::move(other), "the shadow");
  if (auto ok = check_lists(**one, **other); !ok) return std::unexpected(std::move(ok.error()));
  search in(**one, **other, tolerance);
  auto found = in.run({tokens});
  if (!found || *found || tokens.size() == 1) return found;
  return in.run({tokens.first(tokens.size() - 1), tokens.last(1)});
}

}  // namespace bitnet::shadow
