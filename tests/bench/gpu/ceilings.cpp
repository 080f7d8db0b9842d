// What a driver reaches on loops that do nothing but read, copy or multiply: the limits beside
// which a backend's time per token is put. Prints the median and the spread of several rounds.
//
//   bench_<api>_ceilings [--json] [--rounds 9] [--megabytes 512] [--device 0]

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "measure.hpp"

namespace {

using namespace bitnet::ceilings;
using json = nlohmann::ordered_json;

struct options {
  bool as_json = false;
  uint32_t rounds = 9, megabytes = 512, device = 0;
};

double median(std::vector<double> x) {
  std::ranges::sort(x);
  return (x[(x.size() - 1) / 2] + x[x.size() / 2]) / 2;
}

void print(const driver& on, const measurement& m, bool as_json) {
  if (as_json) {
    json out = {{"api", api},
                {"device", on.device()},
                {"driver", on.software()},
                {"bytes", m.bytes},
                {"ceilings", json::array()}};
    for (const measured& one : m.all)
      out["ceilings"].push_back({{"name", one.name},
                                 {"unit", one.unit},
                                 {"median", median(one.samples)},
                                 {"least", std::ranges::min(one.samples)},
                                 {"most", std::ranges::max(one.samples)},
                                 {"form", one.how},
                                 {"samples", one.samples}});
    fmt::print("{}\n", out.dump(2, ' ', false, json::error_handler_t::replace));
    return;
  }
  fmt::print("| {} | median | least | most | unit | form |\n", api);
  fmt::print("| --- | ---: | ---: | ---: | --- | --- |\n");
  for (const measured& one : m.all)
    fmt::print("| {} | {:.2f} | {:.2f} | {:.2f} | {} | {} |\n", one.name, median(one.samples),
               std::ranges::min(one.samples), std::ranges::max(one.samples), one.unit, one.how);
  fmt::print("\ndevice: {}\ndriver: {}\n{} rounds over {} MB\n", on.device(), on.software(),
             m.all.front().samples.size(), m.bytes / 1'000'000);
}

options parse(std::span<char*> words) {
  options out;
  const std::map<std::string_view, uint32_t*> numbers = {
      {"--rounds", &out.rounds}, {"--megabytes", &out.megabytes}, {"--device", &out.device}};
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--json") {
      out.as_json = true;
      continue;
    }
    const auto known = numbers.find(word);
    const std::string_view value = i + 1 < words.size() ? words[i + 1] : "";
    if (known == numbers.end() ||
        std::from_chars(value.begin(), value.end(), *known->second).ptr != value.end() ||
        value.empty())
      throw std::invalid_argument(
          fmt::format("'{}': expected [--json] [--rounds N] [--megabytes N] [--device N]", word));
    ++i;
  }
  if (out.rounds == 0) throw std::invalid_argument("--rounds 0: expected at least 1");
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const options set = parse({argv, static_cast<size_t>(argc)});
    const std::unique_ptr<driver> on = open(set.device);
    print(*on, measure(*on, set.rounds, set.megabytes), set.as_json);
    return 0;
  } catch (const unavailable& none) {
    fmt::print(stderr, "{}\n", none.what());
    return 77;
  } catch (const std::invalid_argument& wrong) {
    fmt::print(stderr, "{}\n", wrong.what());
    return 2;
  } catch (const std::exception& broken) {
    fmt::print(stderr, "{}\n", broken.what());
    return 1;
  }
}
