#include "probe/task.hpp"

#include <fmt/core.h>

#include <exception>
#include <nlohmann/json.hpp>

#include "probe/json_values.hpp"

namespace bitnet::probe {

using nlohmann::json;

std::string write_task(const task& t) {
  json params = json::array();
  for (const auto& [key, value] : t.params) params.push_back({key, value});
  json late = json::object();
  for (const auto& [module, node] : t.late_nodes) late[module] = node.string();
  json pipes = json::array();
  for (const std::filesystem::path& folder : t.pipes) pipes.push_back(folder.string());
  const plugin::file_identity& i = t.identity;
  return dump({{"name", t.name},
               {"library", t.library.string()},
               {"identity", {i.device, i.inode, i.size_bytes, i.modified_ns, i.changed_ns}},
               {"params", std::move(params)},
               {"parent", t.parent},
               {"unloadable", t.unloadable},
               {"scratch", t.scratch.string()},
               {"late_nodes", std::move(late)},
               {"pipes", std::move(pipes)},
               {"disabled", t.disabled},
               {"wrong_results", t.wrong_results}});
}

plugin::checked<task> read_task(std::string_view text) {
  try {
    const json from = json::parse(text);
    task out;
    out.name = from.at("name").get<std::string>();
    out.library = from.at("library").get<std::string>();
    const json& i = from.at("identity");
    out.identity = {integer_of<uint64_t>(i.at(0)), integer_of<uint64_t>(i.at(1)),
                    integer_of<uint64_t>(i.at(2)), integer_of<int64_t>(i.at(3)),
                    integer_of<int64_t>(i.at(4))};
    for (const json& pair : from.at("params"))
      out.params.emplace_back(pair.at(0).get<std::string>(), pair.at(1).get<std::string>());
    out.parent = integer_of<int>(from.at("parent"));
    out.unloadable = from.at("unloadable").get<bool>();
    out.scratch = from.at("scratch").get<std::string>();
    for (const auto& [module, node] : from.at("late_nodes").items())
      out.late_nodes.emplace(module, node.get<std::string>());
    for (const json& folder : from.at("pipes")) out.pipes.emplace_back(folder.get<std::string>());
    out.disabled = from.at("disabled").get<std::vector<std::string>>();
    out.wrong_results = from.at("wrong_results").get<std::vector<std::string>>();
    return out;
  } catch (const std::exception& e) {
    return plugin::reject(plugin::code::probe_helper,
                          fmt::format("the helper was given no task of ours: {}", e.what()));
  }
}

}  // namespace bitnet::probe
