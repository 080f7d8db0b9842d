// bitnet serve: a server of OpenAI's API.
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <optional>

#include "commands/commands.hpp"
#include "commands/request_defaults.hpp"
#include "commands/serve_models.hpp"
#include "http/access_log.hpp"
#include "http/server.hpp"
#include "process/interrupt.hpp"
#include "serve/serve_routes.hpp"
#include "service/supervisor.hpp"
#include "system/limits.hpp"
#include "trace/otlp.hpp"
#include "trace/span_exporter.hpp"

namespace bitnet::host {
namespace {

using serve_clock = std::chrono::steady_clock;

// ---- options -----------------------------------------------------------------------------------

// Reads --api-key and --api-key-file, or --admin-key-file.
result<http::api_keys> keys_of(const settings& set, const char* list, const char* file) {
  http::api_keys out;
  if (list != nullptr)
    for (const std::string& key : set.list(list))
      if (auto ok = out.add(key); !ok) return std::unexpected(ok.error());
  if (const std::string& path = set.text(file); !path.empty())
    if (auto ok = out.add_file(path); !ok) return std::unexpected(ok.error());
  return out;
}

struct all_keys {
  http::api_keys ordinary, admin;
};

result<all_keys> keys_of(const settings& set) {
  auto ordinary = keys_of(set, "api-key", "api-key-file");
  if (!ordinary) return std::unexpected(ordinary.error());
  auto admin = keys_of(set, nullptr, "admin-key-file");
  if (!admin) return std::unexpected(admin.error());
  return all_keys{*std::move(ordinary), *std::move(admin)};
}

// As many as the system's limit of open files allows, besides files and what backends open.
std::size_t connections_of(const settings& set) {
  constexpr std::size_t others = 128;
  const auto wanted = static_cast<std::size_t>(set.integer("max-connections"));
  const std::size_t open_files = limits::raise_open_files();
  return open_files == 0 ? wanted : std::min(wanted, std::max(open_files, 2 * others) - others);
}

result<http::policy> policy_of(const settings& set, const served& with) {
  http::policy out;
  out.routes = serve_routes(with);
  out.names.add(set.text("host"));
  auto keys = keys_of(set);
  if (!keys) return std::unexpected(keys.error());
  out.keys = std::move(keys->ordinary);
  out.admin_keys = std::move(keys->admin);
  for (const std::string& origin : set.list("cors-origin"))
    if (auto ok = out.origins.add(origin); !ok) return std::unexpected(ok.error());
  const std::chrono::seconds timeout(set.integer("timeout"));
  out.bounds.body_time = timeout;
  out.bounds.write_time = timeout;
  out.bounds.connections = connections_of(set);
  return out;
}

// Sockets of a service manager replace --host and --port.
result<http::listen_options> places_of(const invocation& in) {
  http::listen_options out;
  out.host = in.set.text("host");
  out.port = static_cast<uint16_t>(in.set.integer("port"));
  out.allow_unauthenticated = in.set.flag("allow-unauthenticated");
  out.certificate_file = in.set.text("ssl-cert-file");
  out.key_file = in.set.text("ssl-key-file");
  if (out.host.ends_with(".sock")) out.unix_path = std::exchange(out.host, "");
  auto inherited = http::inherited_sockets(in.variables.get("LISTEN_PID").value_or(""),
                                           in.variables.get("LISTEN_FDS").value_or(""));
  if (!inherited) return std::unexpected(inherited.error());
  if (inherited->empty()) return out;
  out.inherited = *std::move(inherited);
  out.host.clear();
  out.unix_path.clear();
  return out;
}

// Reports an answer to the log and to the traces.
void on_answer(const invocation& in, trace::span_exporter* traces, const http::access_line& line) {
  if (in.out.wants(log_level::detail)) in.out.detail(access_text(line), access_facts(line));
  if (traces == nullptr) return;
  if (auto one = trace::span_of(line, std::chrono::system_clock::now()))
    traces->add(*std::move(one));
}

// Opens the exporter of --otlp-traces-endpoint; NULL if it is not given.
result<std::unique_ptr<trace::span_exporter>> exporter_of(const invocation& in) {
  const std::string& url = in.set.text("otlp-traces-endpoint");
  if (url.empty()) return nullptr;
  auto to = trace::collector_of(url);
  if (!to) return std::unexpected(to.error());
  return std::make_unique<trace::span_exporter>(
      *std::move(to), bitnet_version(), [&in](const std::string& what) { in.out.warning(what); });
}

// ---- the service -------------------------------------------------------------------------------

// SIGHUP: reads the keys again.
void read_keys(const invocation& in, http::server& server) {
  auto keys = keys_of(in.set);
  if (!keys)
    return in.out.warning(fmt::format("the keys stay as they were: {}", keys.error().message));
  const std::size_t n = keys->ordinary.size() + keys->admin.size();
  server.set_keys(std::move(keys->ordinary), std::move(keys->admin));
  in.out.note(fmt::format("{} keys", n));
}

void read_certificate(const invocation& in, http::server& server) {
  const auto read = server.read_certificate();
  if (!read)
    in.out.warning(fmt::format("the certificate stays as it was: {}", read.error().message));
  else if (*read)
    in.out.note("the certificate was read again");
}

supervisor_hooks hooks_of(const invocation& in, http::server& server, serving& engine) {
  return {.look = [&engine] { return engine.work(); },
          .on_reload =
              [&in, &server] {
                read_keys(in, server);
                read_certificate(in, server);
              },
          .on_note = [&in](const std::string& text) { in.out.note(text); },
          .on_end =
              [&engine] {
                interrupt::request_for_good();  // also stops a running load
                engine.end();
              }};
}

// Loads the first model while /health reports that it is loading. If that fails, the loop calls
// `failed`. Without a first model the service is ready at once.
void load_first(boost::asio::io_context& io, model_table& models, bool is_there,
                const std::function<void()>& ready,
                const std::function<void(const model_rejection&)>& failed) {
  if (!is_there) return ready();
  const auto answer = [&io, ready, failed](const model_found& found) {
    boost::asio::post(io, [ready, failed, found] {
      if (found)
        ready();
      else
        failed(found.error());
    });
  };
  if (const auto now = models.load("", answer)) answer(*now);
}

// Runs until it is asked to end.
result<int> serve_until_end(const invocation& in, boost::asio::io_context& io, http::server& server,
                            service_life& life, serving& engine) {
  supervisor over(io, server, life, hooks_of(in, server, engine),
                  [&in](const char* name) { return in.variables.get(name).value_or(""); });
  std::optional<model_rejection> no_model;
  load_first(
      io, engine.models(), !engine.facts().first_name.empty(),
      [&] {
        over.is_ready();
        for (const std::string& address : server.addresses())
          in.out.note(fmt::format("listening on {}", address));
      },
      [&](const model_rejection& why) {
        no_model = why;
        over.give_up();
      });
  io.run();
  if (no_model) return fail(no_model->exit_code, no_model->message);
  if (!over.lost_model().empty())
    return fail(exit_code::unavailable,
                fmt::format("the device of the model {} was lost, and no other could take its "
                            "place; 'bitnet backends why' has the reasons",
                            over.lost_model()));
  return over.ended_in_order() ? exit_code::ok : exit_code::interrupted;
}

// Facts that all requests share, apart from the models.
serving_facts facts_of(const invocation& in, bitnet_runtime* runtime, receipt_folder* receipts) {
  return {.runtime = runtime,
          .template_name = in.set.text("chat-template"),
          .receipts = receipts,
          .on_backend_reload =
              [&in](const std::string& what) {
                in.out.note(fmt::format("reload by an administrator: {}", what));
              },
          .on_preference =
              [&in](const std::string& what) {
                in.out.note(fmt::format("preference of an administrator: {}", what));
              }};
}

}  // namespace

result<int> serve_command(const invocation& in) {
  auto requests = given_request_defaults(in.set);
  if (!requests) return std::unexpected(requests.error());
  requests->wish.keeps_billing_header = in.set.flag("keep-billing-header");
  requests->wish.moves_date_lines = in.set.flag("move-date-lines");
  auto choice = given_models(in);
  if (!choice) return std::unexpected(choice.error());
  auto where = places_of(in);
  if (!where) return std::unexpected(where.error());
  const auto traces = exporter_of(in);
  if (!traces) return std::unexpected(traces.error());

  // Destroyed in reverse order: connections hold requests, and requests use models.
  runtime_handle runtime;
  service_life life(std::chrono::seconds(in.set.integer("step-timeout")),
                    std::chrono::seconds(in.set.integer("drain-timeout")));
  boost::asio::io_context io;
  std::unique_ptr<model_table> models;
  std::unique_ptr<serving> engine;
  const auto receipts = receipt_folder::open(in, io);
  if (!receipts) return std::unexpected(receipts.error());
  served with{.life = &life,
              .has_page = in.set.flag("webui"),
              .traces = traces->get(),
              .receipts = receipts->get()};
  std::unique_ptr<http::server> server;
  with.n_connections = [&server] { return server->n_connections(); };

  // Check addresses and keys before a backend is probed.
  auto rules = policy_of(in.set, with);
  if (!rules) return std::unexpected(rules.error());
  auto listens = http::server::open(
      io, *std::move(rules), *std::move(where),
      {.on_answer =
           [&in, to = traces->get()](const http::access_line& line) { on_answer(in, to, line); },
       .on_trouble = [&in](const std::string& text) { in.out.warning(text); }});
  if (!listens) return std::unexpected(listens.error());
  server = *std::move(listens);

  interrupt::take_termination();
  auto opened = open_runtime(in);
  if (!opened) return std::unexpected(opened.error());
  runtime = *std::move(opened);
  if (*receipts) (*receipts)->set_runtime(runtime.get());
  serving_facts about = facts_of(in, runtime.get(), receipts->get());
  about.any_name = choice->any_name;
  if (!choice->models.empty()) about.first_name = choice->models.front().name;
  models = std::make_unique<model_table>(io, *std::move(choice),
                                         loader_of(in, runtime.get(), *requests));
  engine = std::make_unique<serving>(io, life, *models, std::move(about));
  with.engine = engine.get();
  return serve_until_end(in, io, *server, life, *engine);
}

}  // namespace bitnet::host
