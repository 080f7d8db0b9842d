#include "serve/model_routes.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "openai/body.hpp"

namespace bitnet::host {
namespace {

using http::exchange_ptr;
using nlohmann::ordered_json;

const char* word_of(model_state state) {
  switch (state) {
    case model_state::unloaded:
      return "unloaded";
    case model_state::loading:
      return "loading";
    case model_state::loaded:
      return "loaded";
    case model_state::unloading:
      return "unloading";
    case model_state::failed:
      return "failed";
  }
  return "";
}

// Seconds since 1970: the time of loading, else the file's modification time.
int64_t created_at(const model_row& row) {
  if (row.use) return static_cast<const served_model&>(*row.use).facts().created;
  struct stat file{};
  return ::stat(row.source.file.c_str(), &file) == 0 ? file.st_mtime : 0;
}

// OpenAI's form, with llama-server's `status`, and `meta` if the model is loaded.
ordered_json model_json(const model_row& row) {
  ordered_json out = {{"id", row.source.name},
                      {"object", "model"},
                      {"created", created_at(row)},
                      {"owned_by", "bitnet"},
                      {"status", {{"value", word_of(row.state)}}}};
  if (!row.error.empty()) out["status"]["error"] = row.error;
  if (!row.use) return out;
  const model_facts& facts = static_cast<const served_model&>(*row.use).facts();
  out["meta"] = {{"n_vocab", facts.info.n_vocab},
                 {"n_ctx_train", facts.info.n_context},
                 {"n_embd", facts.info.n_embedding},
                 {"n_params", facts.info.n_parameters},
                 {"size", facts.info.weight_bytes}};
  return out;
}

http::answer models_answer(const serving& in) {
  ordered_json all = ordered_json::array();
  for (const model_row& row : in.models().list()) all.push_back(model_json(row));
  return answer_of(ordered_json{{"object", "list"}, {"data", std::move(all)}});
}

http::answer model_answer(const serving& in, std::string_view name) {
  const auto rows = in.models().list();
  const auto found =
      std::ranges::find_if(rows, [&](const model_row& row) { return row.source.name == name; });
  if (found != rows.end()) return answer_of(model_json(*found));
  return http::error_answer({.status = 404,
                             .message = "there is no model of this name; GET /v1/models lists them",
                             .param = "model",
                             .code = "model_not_found"});
}

// Returns the model name in the body of a load or unload.
openai::parsed<std::string> name_in(const std::string& text) {
  const auto body = openai::parse_object(text, "the body");
  if (!body) return std::unexpected(body.error());
  openai::field_reader in(*body);
  std::string name;
  if (in.any("model") == nullptr) in.wrong("model", "a name as GET /v1/models has it");
  in.text("model", name);
  if (const auto& why = in.error()) return std::unexpected(*why);
  return name;
}

http::answer done_answer(const std::string& name) {
  return answer_of(ordered_json{{"success", true}, {"model", name}});
}

http::answer loaded_answer(const model_found& found, const std::string& name) {
  return found ? done_answer(name) : answer_of(error_of(found.error()));
}

// Answers once the model is loaded or has failed to load.
void load(serving& in, const exchange_ptr& client) {
  const auto name = name_in(client->asked().body);
  if (!name) return in.reject(client, answer_of(name.error()));
  const auto reply = [client = client, open = in.open_work(), name = *name](
                         const model_found& found) { client->reply(loaded_answer(found, name)); };
  // The exchange is moved back, so that the loop's thread is its last owner.
  auto later = [&io = in.io(), reply](model_found found) mutable {
    boost::asio::post(io, [reply = std::move(reply), found = std::move(found)] { reply(found); });
  };
  if (const auto now = in.models().load(*name, std::move(later))) reply(*now);
}

void unload(serving& in, const exchange_ptr& client) {
  const auto name = name_in(client->asked().body);
  if (!name) return in.reject(client, answer_of(name.error()));
  const auto done = in.models().unload(*name);
  client->reply(done ? done_answer(*name) : answer_of(error_of(done.error())));
}

auto administering(const served& with, void (*call)(serving&, const exchange_ptr&)) {
  return [&with, call](const exchange_ptr& client) {
    if (const auto no = with.life->rejection(std::chrono::steady_clock::now()))
      return client->reply(*no);
    call(*with.engine, client);
  };
}

const std::vector<http::parameter> named = {{"model", "string", "as /v1/models has it", true}};

}  // namespace

void add_models(http::route_table& to, const served& with) {
  to.add({.method = "GET",
          .paths = {"/v1/models", "/models"},
          .summary = "The models",
          .handle =
              [&with](const exchange_ptr& client) { client->reply(models_answer(*with.engine)); },
          .access = http::access_level::open,
          .answer = "ModelList"});
  to.add({.method = "GET",
          .paths = {"/v1/models/{model}", "/models/{model}"},
          .summary = "A model, by its name",
          .handle =
              [&with](const exchange_ptr& client) {
                client->reply(model_answer(*with.engine, client->asked().path_value("model")));
              },
          .access = http::access_level::open,
          .answer = "Model"});
  to.add({.method = "POST",
          .paths = {"/models/load", "/v1/models/load"},
          .summary = "Load a model",
          .handle = administering(with, load),
          .access = http::access_level::admin,
          .answer = "ModelChange",
          .body = named});
  to.add({.method = "POST",
          .paths = {"/models/unload", "/v1/models/unload"},
          .summary = "Unload a model when its last request has ended",
          .handle = administering(with, unload),
          .access = http::access_level::admin,
          .answer = "ModelChange",
          .body = named});
}

}  // namespace bitnet::host
