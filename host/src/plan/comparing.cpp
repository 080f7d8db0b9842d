#include "plan/comparing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "plan/forms.hpp"
#include "plan/kernel_aliases.hpp"
#include "text/items.hpp"

namespace bitnet::host::plans {
namespace {

std::vector<std::string> other_model(const identity& wanted, const identity& had) {
  std::vector<std::string> out;
  const auto say = [&](const char* what, const std::string& a, const std::string& b) {
    if (a != b) out.push_back(fmt::format("the model: wanted {} {}, had {}", what, a, b));
  };
  say("architecture", wanted.architecture, had.architecture);
  say("layers", fmt::to_string(wanted.n_layers), fmt::to_string(had.n_layers));
  say("parameters", fmt::to_string(wanted.n_parameters), fmt::to_string(had.n_parameters));
  if (!wanted.fingerprint.empty() && !had.fingerprint.empty())
    say("fingerprint", wanted.fingerprint, had.fingerprint);
  return out;
}

bool same_place(const part& a, const part& b) {
  return a.device == b.device && a.first_layer == b.first_layer && a.n_layers == b.n_layers &&
         a.embedding == b.embedding && a.head == b.head;
}

std::string places_text(const std::vector<part>& parts) {
  std::string out;
  for (const part& p : parts)
    out += fmt::format("{}{} on {}", out.empty() ? "" : "; ", section_text(p), p.device);
  return out;
}

std::string text_of_ids(const std::vector<std::string>& ids) {
  return ids.empty() ? "none that was counted" : fmt::format("{}", fmt::join(ids, ", "));
}

// The layers that a row of the program shares with a row of a plan: "layers 0-2".
std::string place_of(const row& wanted, const row* had) {
  if (!wanted.layers) return "outside of the layers";
  layer_range both = *wanted.layers;
  if (had != nullptr && had->layers) {
    both.first = std::max(both.first, had->layers->first);
    both.last = std::min(both.last, had->layers->last);
  }
  return (both.first == both.last ? "layer " : "layers ") + text_of(both);
}

bool meets(const row& wanted, const row& had) {
  if (wanted.op != had.op || wanted.layers.has_value() != had.layers.has_value()) return false;
  if (!wanted.formats.empty() && !had.formats.empty() && wanted.formats != had.formats)
    return false;
  return !wanted.layers ||
         (wanted.layers->first <= had.layers->last && had.layers->first <= wanted.layers->last);
}

// Number of shared layers; 1 for ops outside layers.
uint32_t shared_layers(const row& a, const row& b) {
  if (!a.layers || !b.layers) return 1;
  return std::min(a.layers->last, b.layers->last) - std::max(a.layers->first, b.layers->first) + 1;
}

bool are_named(const std::vector<std::string>& names, const std::vector<std::string>& ids) {
  const auto has_name = [&](const std::string& id) {
    return std::ranges::any_of(names, [&](const std::string& name) { return is_named(name, id); });
  };
  return !ids.empty() && std::ranges::all_of(ids, has_name);
}

// Compares a plan's rows with those of a running part.
class judge {
 public:
  judge(const part& had, std::vector<std::string>& out) : had_(had), out_(out) {}

  void compare(const row& wanted) {
    uint32_t met = 0;
    for (const row& one : had_.rows) {
      if (!meets(wanted, one)) continue;
      met += shared_layers(wanted, one);
      compare(wanted, one);
    }
    const uint32_t all = wanted.layers ? wanted.layers->last - wanted.layers->first + 1 : 1;
    if (met < all) add(wanted, nullptr, fmt::format("wanted in each, had in {} of {}", met, all));
  }

 private:
  void add(const row& wanted, const row* had, const std::string& what) {
    out_.push_back(
        fmt::format("{} on {}, op {}: {}", place_of(wanted, had), had_.device, wanted.op, what));
  }

  void compare(const row& wanted, const row& one) {
    if (!wanted.level.empty() && wanted.level != one.level)
      add(wanted, &one, fmt::format("wanted level {}, had {}", wanted.level, one.level));
    compare_step(wanted, one, "a step of one token", wanted.token, one.token);
    compare_step(wanted, one, "a step of a prompt", wanted.prompt, one.prompt);
  }

  void compare_step(const row& wanted, const row& one, const char* step,
                    const std::vector<std::string>& names, const std::vector<std::string>& ids) {
    if (names.empty() || are_named(names, ids)) return;
    add(wanted, &one,
        fmt::format("{}: wanted kernel {}, had {}; {}", step, text_of_ids(names), text_of_ids(ids),
                    forms_text(had_.backend)));
  }

  const part& had_;
  std::vector<std::string>& out_;
};

}  // namespace

bool is_named(const std::string& name, const std::string& id) {
  if (name == id) return true;
  const kernel_alias* const alias = find_kernel_alias(name);
  if (alias == nullptr || !alias->instead.empty()) return false;
  // For "qkv_rope_kv.ternary2.avx2": composites of ternary products are meant, too.
  const auto pieces = text::items(id, '.');
  if (pieces.size() != 3 || !alias->stem.ends_with(pieces[1])) return false;
  return std::ranges::any_of(text::items(alias->ends, ' '),
                             [&](std::string_view begin) { return pieces[2].starts_with(begin); });
}

std::vector<std::string> differences(const plan& wanted, const plan& had) {
  std::vector<std::string> out = other_model(wanted.model, had.model);
  if (!out.empty()) return out;
  if (!std::ranges::equal(wanted.parts, had.parts, same_place)) {
    out.push_back(
        fmt::format("wanted {}, had {}", places_text(wanted.parts), places_text(had.parts)));
    return out;
  }
  for (std::size_t i = 0; i < wanted.parts.size(); ++i) {
    judge on(had.parts[i], out);
    for (const row& one : wanted.parts[i].rows) on.compare(one);
  }
  return out;
}

}  // namespace bitnet::host::plans
