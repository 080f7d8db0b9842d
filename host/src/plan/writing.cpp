#include <yaml-cpp/yaml.h>

#include "plan/file.hpp"
#include "text/printable.hpp"

namespace bitnet::host::plans {
namespace {

void put_words(YAML::Emitter& to, const char* key, const std::vector<std::string>& words) {
  if (words.empty()) return;
  to << YAML::Key << key << YAML::Value;
  if (words.size() == 1)
    to << words.front();
  else
    to << YAML::Flow << words;
}

void put_row(YAML::Emitter& to, const row& one) {
  to << YAML::BeginMap << YAML::Key << "op" << YAML::Value << one.op;
  if (one.layers) to << YAML::Key << "layers" << YAML::Value << text_of(*one.layers);
  put_words(to, "format", one.formats);
  if (!one.level.empty()) to << YAML::Key << "level" << YAML::Value << one.level;
  put_words(to, "kernel", one.token);
  put_words(to, "prompt-kernel", one.prompt);
  to << YAML::EndMap;
}

void put_part(YAML::Emitter& to, const part& one) {
  to << YAML::BeginMap << YAML::Key << "device" << YAML::Value << one.device;
  to << YAML::Key << "embedding" << YAML::Value << one.embedding;
  to << YAML::Key << "layers" << YAML::Value
     << (one.n_layers == 0 ? "none"
                           : text_of({one.first_layer, one.first_layer + one.n_layers - 1}));
  to << YAML::Key << "head" << YAML::Value << one.head;
  to << YAML::Key << "ops" << YAML::Value << YAML::BeginSeq;
  for (const row& r : one.rows) put_row(to, r);
  to << YAML::EndSeq << YAML::EndMap;
}

}  // namespace

std::string write_plan(const plan& of) {
  YAML::Emitter to;
  to << YAML::BeginMap << YAML::Key << "bitnet-plan" << YAML::Value << 1;
  to << YAML::Key << "model" << YAML::Value << YAML::BeginMap;
  // Model names come from files; shorten them so that the plan can be read again.
  const std::string dots = "...";  // marks a cut name
  const std::string name = text::printable(of.model.name, longest_word - dots.size());
  if (!name.empty()) to << YAML::Key << "name" << YAML::Value << YAML::DoubleQuoted << name;
  to << YAML::Key << "architecture" << YAML::Value << of.model.architecture;
  to << YAML::Key << "layers" << YAML::Value << of.model.n_layers;
  to << YAML::Key << "parameters" << YAML::Value << of.model.n_parameters;
  if (!of.model.fingerprint.empty())
    to << YAML::Key << "fingerprint" << YAML::Value << of.model.fingerprint;
  to << YAML::EndMap;
  put_words(to, "forms", of.forms);
  to << YAML::Key << "parts" << YAML::Value << YAML::BeginSeq;
  for (const part& one : of.parts) put_part(to, one);
  to << YAML::EndSeq << YAML::EndMap;
  return std::string(to.c_str()) + "\n";
}

}  // namespace bitnet::host::plans
