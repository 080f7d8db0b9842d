#include "probe/outcome.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "plugin/codes/text.hpp"
#include "probe/json_values.hpp"
#include "text/zero_bytes.hpp"

namespace bitnet::probe {
namespace {

using nlohmann::json;
using plugin::code;

constexpr std::size_t max_text_bytes = 4096;
constexpr std::size_t max_disabled = 1024;
constexpr std::size_t max_remarks = 16;

std::unexpected<plugin::defect> senseless(const std::string& what) {
  return plugin::reject(code::probe_message,
                        fmt::format("its probe's answer makes no sense: {}", what));
}

// Takes members of the expected type and keeps the first error.
class members {
 public:
  explicit members(const json& from) : from_(from) {}

  std::string text(const char* key, std::size_t limit = max_text_bytes) {
    const json* one = find(key);
    if (one == nullptr) return {};
    if (!one->is_string()) return blame(key), std::string();
    return plugin::printable(one->get_ref<const std::string&>(), limit);
  }
  // Keeps line ends.
  std::string lines(const char* key, std::size_t limit) {
    const json* one = find(key);
    if (one == nullptr) return {};
    if (!one->is_string()) return blame(key), std::string();
    const std::string& all = one->get_ref<const std::string&>();
    if (all.size() > limit) return blame(key), std::string();
    std::string out;
    for (std::size_t begin = 0; begin < all.size();) {
      const std::size_t end = std::min(all.find('\n', begin), all.size());
      out += plugin::printable(std::string_view(all).substr(begin, end - begin), limit) + "\n";
      begin = end + 1;
    }
    return out;
  }
  bool yes(const char* key) {
    const json* one = find(key);
    if (one == nullptr) return false;
    if (!one->is_boolean()) return blame(key), false;
    return one->get<bool>();
  }
  template <class Int>
  Int number(const char* key) {
    const json* one = find(key);
    if (one == nullptr) return 0;
    if (!one->is_number_unsigned()) return blame(key), Int{0};
    const auto value = one->get<uint64_t>();
    if (value > std::numeric_limits<Int>::max()) return blame(key), Int{0};
    return static_cast<Int>(value);
  }
  // May be negative.
  int32_t whole(const char* key) {
    const json* one = find(key);
    if (one == nullptr) return 0;
    if (!one->is_number_integer()) return blame(key), 0;
    if (one->is_number_unsigned() && one->get<uint64_t>() > INT32_MAX) return blame(key), 0;
    const auto value = one->get<int64_t>();
    if (value < INT32_MIN || value > INT32_MAX) return blame(key), 0;
    return static_cast<int32_t>(value);
  }
  const json* list(const char* key, std::size_t limit) {
    const json* one = find(key);
    if (one != nullptr && (!one->is_array() || one->size() > limit)) return blame(key), nullptr;
    return one;
  }
  const json* object(const char* key) {
    const json* one = find(key);
    if (one != nullptr && !one->is_object()) return blame(key), nullptr;
    return one;
  }
  void blame(const char* key) {
    if (bad_.empty()) bad_ = key;
  }
  [[nodiscard]] const std::string& bad() const { return bad_; }

 private:
  const json* find(const char* key) {
    const auto at = from_.find(key);
    return at == from_.end() ? nullptr : &*at;
  }
  const json& from_;
  std::string bad_;
};

template <std::size_t N>
void keep(const std::string& text, char (&out)[N]) {
  const std::string cut = text.substr(0, N - 1);
  std::fill(std::copy(cut.begin(), cut.end(), out), out + N, '\0');
}

json to_json(const compute::activity& a) {
  if (!a.rejected.empty()) return {{"refused", a.rejected}};
  if (!a.reported) return json::object();
  const bitnet_device_status& s = *a.reported;
  return {{"known", s.known},
          {"memory_total_bytes", s.memory_total_bytes},
          {"memory_free_bytes", s.memory_free_bytes},
          {"pool_bytes", s.pool_bytes},
          {"pool_used_bytes", s.pool_used_bytes},
          {"utilisation_percent", s.utilisation_percent},
          {"temperature_millicelsius", s.temperature_millicelsius},
          {"power_milliwatts", s.power_milliwatts},
          {"clock_khz", s.clock_khz},
          {"memory_clock_khz", s.memory_clock_khz},
          {"throttled", s.throttled},
          {"ecc_corrected", s.ecc_corrected},
          {"ecc_uncorrected", s.ecc_uncorrected},
          {"health", s.health},
          {"pool_peak_bytes", s.pool_peak_bytes},
          {"pool_hits", s.pool_hits},
          {"pool_misses", s.pool_misses}};
}

// nullopt if it is malformed.
std::optional<compute::activity> to_activity(const json& from) {
  members m(from);
  compute::activity out;
  out.rejected = m.text("refused", 1024);
  if (from.contains("known")) {
    bitnet_device_status s{};
    s.struct_size = sizeof s;
    s.known = m.number<uint32_t>("known");
    s.memory_total_bytes = m.number<uint64_t>("memory_total_bytes");
    s.memory_free_bytes = m.number<uint64_t>("memory_free_bytes");
    s.pool_bytes = m.number<uint64_t>("pool_bytes");
    s.pool_used_bytes = m.number<uint64_t>("pool_used_bytes");
    s.utilisation_percent = m.number<uint32_t>("utilisation_percent");
    s.temperature_millicelsius = m.whole("temperature_millicelsius");
    s.power_milliwatts = m.number<uint32_t>("power_milliwatts");
    s.clock_khz = m.number<uint32_t>("clock_khz");
    s.memory_clock_khz = m.number<uint32_t>("memory_clock_khz");
    s.throttled = m.number<uint32_t>("throttled");
    s.ecc_corrected = m.number<uint64_t>("ecc_corrected");
    s.ecc_uncorrected = m.number<uint64_t>("ecc_uncorrected");
    s.health = m.number<uint32_t>("health");
    if ((s.known & BITNET_STATUS_POOL_USE) != 0) {  // answers cached by an older version have none
      s.pool_peak_bytes = m.number<uint64_t>("pool_peak_bytes");
      s.pool_hits = m.number<uint64_t>("pool_hits");
      s.pool_misses = m.number<uint64_t>("pool_misses");
    }
    if (bitnet_wrong_device_status(&s) != nullptr) return std::nullopt;
    out.reported = s;
  }
  if (!m.bad().empty()) return std::nullopt;
  return out;
}

json to_json(const device_report& d) {
  json kernels = json::array();
  for (const bitnet_kernel_info& k : d.kernels)
    kernels.push_back({{"id", plugin::printable_array(k.id)},
                       {"op", k.op},
                       {"format", k.format},
                       {"level", k.level},
                       {"exact", k.exact},
                       {"precision", k.precision}});
  const bitnet_device_info& i = d.info;
  return {{"class", i.device_class},
          {"name", plugin::printable_array(i.name)},
          {"uuid", plugin::printable_array(i.uuid)},
          {"pci_address", plugin::printable_array(i.pci_address)},
          {"arch", plugin::printable_array(i.arch)},
          {"driver_version", plugin::printable_array(i.driver_version)},
          {"memory_total_bytes", i.memory_total_bytes},
          {"compute_units", i.compute_units},
          {"buffer_alignment_bytes", i.buffer_alignment_bytes},
          {"max_allocation_bytes", i.max_allocation_bytes},
          {"kv_dtypes", i.kv_dtypes},
          {"attention_flags", i.attention_flags},
          {"logits_flags", i.logits_flags},
          {"products_per_s", d.rates.small},
          {"token_products_per_s", d.rates.token},
          {"prompt_products_per_s", d.rates.prompt},
          {"status", to_json(d.status)},
          {"kernels", std::move(kernels)}};
}

std::optional<device_report> to_device(const json& from) {
  if (!from.is_object()) return std::nullopt;
  members m(from);
  device_report out;
  bitnet_device_info& i = out.info;
  i.struct_size = sizeof i;
  i.device_class = m.number<uint32_t>("class");
  keep(m.text("name"), i.name);
  keep(m.text("uuid"), i.uuid);
  keep(m.text("pci_address"), i.pci_address);
  keep(m.text("arch"), i.arch);
  keep(m.text("driver_version"), i.driver_version);
  i.memory_total_bytes = m.number<uint64_t>("memory_total_bytes");
  i.compute_units = m.number<uint32_t>("compute_units");
  i.buffer_alignment_bytes = m.number<uint32_t>("buffer_alignment_bytes");
  i.max_allocation_bytes = m.number<uint64_t>("max_allocation_bytes");
  i.kv_dtypes = m.number<uint32_t>("kv_dtypes");
  i.attention_flags = m.number<uint32_t>("attention_flags");
  i.logits_flags = m.number<uint32_t>("logits_flags");
  out.rates = {m.number<uint64_t>("products_per_s"), m.number<uint64_t>("token_products_per_s"),
               m.number<uint64_t>("prompt_products_per_s")};
  if (i.device_class < BITNET_DEVICE_CPU || i.device_class > BITNET_DEVICE_OTHER) m.blame("class");
  if (i.buffer_alignment_bytes != 0 && !std::has_single_bit(i.buffer_alignment_bytes))
    m.blame("buffer_alignment_bytes");
  if (const json* status = m.object("status"); status != nullptr) {
    auto read = to_activity(*status);
    if (!read) return std::nullopt;
    out.status = *std::move(read);
  }
  if (const json* kernels = m.list("kernels", max_kernels); kernels != nullptr)
    for (const json& one : *kernels) {
      if (!one.is_object()) return std::nullopt;
      members k(one);
      bitnet_kernel_info info{};
      info.struct_size = sizeof info;
      keep(k.text("id"), info.id);
      info.op = k.number<uint32_t>("op");
      info.format = k.number<uint32_t>("format");
      info.level = k.number<uint32_t>("level");
      info.exact = k.number<uint32_t>("exact");
      info.precision = k.number<uint32_t>("precision");
      if (!k.bad().empty()) return std::nullopt;
      out.kernels.push_back(info);
    }
  if (!m.bad().empty()) return std::nullopt;
  return out;
}

json to_json(const facts& f) {
  json out = {{"version", f.version},
              {"life_flags", f.life_flags},
              {"disabled", f.disabled},
              {"self_test", f.self_test},
              {"sandbox", f.sandbox},
              {"devices", json::array()},
              {"peak_bytes", f.peak_bytes},
              {"unloads", f.unloads},
              {"remarks", f.remarks},
              {"wrong_results", f.wrong_results},
              {"again", f.again}};
  for (const device_report& d : f.devices) out["devices"].push_back(to_json(d));
  if (f.fault)
    out["fault"] = {{"code", plugin::code_text(f.fault->code)},
                    {"status", static_cast<uint32_t>(f.fault->status)},
                    {"reason", f.fault->reason},
                    {"hint", f.fault->hint}};
  return out;
}

plugin::checked<facts> to_facts(const json& from) {
  if (!from.is_object()) return senseless("it is no object");
  members m(from);
  facts out;
  out.version = m.text("version", 256);
  out.life_flags = m.number<uint32_t>("life_flags");
  out.peak_bytes = m.number<uint64_t>("peak_bytes");
  out.unloads = m.yes("unloads");
  out.again = m.yes("again");
  out.self_test = m.text("self_test");
  out.sandbox = m.text("sandbox", 256);
  if (const json* disabled = m.list("disabled", max_disabled); disabled != nullptr)
    for (const json& id : *disabled) {
      if (!id.is_string()) return senseless("a disabled kernel has no name");
      out.disabled.push_back(plugin::printable(id.get_ref<const std::string&>(), 63));
    }
  if (const json* wrong = m.list("wrong_results", out.disabled.size()); wrong != nullptr)
    for (const json& one : *wrong) {
      if (!one.is_string()) return senseless("a wrong result is no text");
      out.wrong_results.push_back(plugin::printable(one.get_ref<const std::string&>()));
    }
  if (const json* remarks = m.list("remarks", max_remarks); remarks != nullptr)
    for (const json& one : *remarks) {
      if (!one.is_string()) return senseless("a remark is no text");
      out.remarks.push_back(plugin::printable(one.get_ref<const std::string&>()));
    }
  if (const json* devices = m.list("devices", max_devices); devices != nullptr)
    for (const json& one : *devices) {
      auto device = to_device(one);
      if (!device)
        return senseless(fmt::format("device {} is not well formed", out.devices.size()));
      out.devices.push_back(std::move(*device));
    }
  if (const json* fault = m.object("fault"); fault != nullptr) {
    members d(*fault);
    const auto known = plugin::code_of(d.text("code", 64));
    plugin::defect defect;
    defect.code = known.value_or(code::ok);
    defect.status = d.number<uint8_t>("status");
    defect.reason = d.text("reason");
    defect.hint = d.text("hint");
    if (defect.code == code::ok || defect.reason.empty() || !d.bad().empty() ||
        defect.status == BITNET_OK)
      return senseless("its fault is not well formed");
    out.fault = std::move(defect);
  }
  if (!m.bad().empty()) return senseless(fmt::format("'{}' is not well formed", m.bad()));
  return out;
}

// Own messages never nest so deep; deep nesting ends the parse.
std::optional<json> parse(std::string_view text) {
  if (text::zero_byte(text)) return std::nullopt;
  constexpr int deepest = 8;
  json out = json::parse(
      text, [](int depth, json::parse_event_t, json&) { return depth <= deepest; }, false);
  if (out.is_discarded()) return std::nullopt;
  return out;
}

// The identity of a device, and of a kernel.
std::string identity(const bitnet_device_info& i) {
  return fmt::format("{} {} {} {} {}", i.device_class, plugin::printable_array(i.name),
                     plugin::printable_array(i.uuid), plugin::printable_array(i.pci_address),
                     plugin::printable_array(i.arch));
}

std::string identity(const bitnet_kernel_info& k) {
  return fmt::format("{} {} {} {} {}", plugin::printable_array(k.id), k.op, k.format, k.level,
                     k.precision);
}

}  // namespace

std::string stage_name(stage s) {
  constexpr std::array<const char*, n_stages> names = {"start", "S1 open", "S2 enumerate",
                                                       "S3 self-test", "S4 close"};
  return names[static_cast<std::size_t>(s)];
}

std::string write_facts(const facts& f) {
  return dump(to_json(f));
}

plugin::checked<facts> read_facts(std::string_view text) {
  const auto parsed = parse(text);
  if (!parsed) return senseless("it is no JSON");
  return to_facts(*parsed);
}

std::string write_outcome(const outcome& f) {
  json out = {{"what", to_json(f.what)},        {"reached", static_cast<uint32_t>(f.reached)},
              {"stage_ms", f.stage_ms},         {"output", f.output},
              {"output_bytes", f.output_bytes}, {"notes", f.notes}};
  return dump(out);
}

plugin::checked<outcome> read_outcome(std::string_view text) {
  const auto parsed = parse(text);
  if (!parsed || !parsed->is_object()) return senseless("it is no JSON object");
  members m(*parsed);
  outcome out;
  const json* what = m.object("what");
  if (what == nullptr) return senseless("it says nothing");
  auto read = to_facts(*what);
  if (!read) return std::unexpected(std::move(read.error()));
  out.what = std::move(*read);
  const auto reached = m.number<uint8_t>("reached");
  if (reached >= n_stages) return senseless(fmt::format("there is no stage {}", reached));
  out.reached = static_cast<stage>(reached);
  constexpr std::size_t max_output = std::size_t{256} << 10;  // '?' may have become U+FFFD
  out.output = m.lines("output", max_output);
  out.output_bytes = m.number<uint64_t>("output_bytes");
  if (const json* times = m.list("stage_ms", n_stages); times != nullptr)
    for (std::size_t i = 0; i < times->size(); ++i) {
      if (!(*times)[i].is_number_unsigned()) return senseless("a time is no number");
      out.stage_ms[i] = static_cast<uint32_t>((*times)[i].get<uint64_t>());
    }
  if (const json* notes = m.list("notes", most_notes); notes != nullptr)
    for (const json& note : *notes) {
      if (!note.is_string()) return senseless("a note is no text");
      out.notes.push_back(plugin::printable(note.get_ref<const std::string&>()));
    }
  if (!m.bad().empty()) return senseless(fmt::format("'{}' is not well formed", m.bad()));
  return out;
}

std::string why_disabled(const facts& f, std::size_t index) {
  const bool known = index < f.wrong_results.size();
  return fmt::format("it failed the self-test{}{}", known ? ": " : "",
                     known ? f.wrong_results[index] : "");
}

std::vector<std::string> differences(const std::string& version_a,
                                     const std::vector<device_report>& a,
                                     const std::string& version_b,
                                     const std::vector<device_report>& b) {
  std::vector<std::string> out;
  if (version_a != version_b)
    out.push_back(fmt::format("version: {}, then {}", version_a, version_b));
  if (a.size() != b.size()) {
    out.push_back(fmt::format("devices: {}, then {}", a.size(), b.size()));
    return out;
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::string which = fmt::format("device {}", i);
    if (identity(a[i].info) != identity(b[i].info))
      out.push_back(
          fmt::format("{}: '{}', then '{}'", which, identity(a[i].info), identity(b[i].info)));
    if (a[i].kernels.size() != b[i].kernels.size())
      out.push_back(
          fmt::format("{}: {} kernels, then {}", which, a[i].kernels.size(), b[i].kernels.size()));
    else
      for (std::size_t k = 0; k < a[i].kernels.size(); ++k)
        if (identity(a[i].kernels[k]) != identity(b[i].kernels[k])) {
          out.push_back(fmt::format("{}: kernel '{}', then '{}'", which,
                                    plugin::printable_array(a[i].kernels[k].id),
                                    plugin::printable_array(b[i].kernels[k].id)));
          break;
        }
  }
  return out;
}

}  // namespace bitnet::probe
