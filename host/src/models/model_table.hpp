#pragma once
// The models that a server can load: which are loaded, and which is unloaded to make room.
//
// The table's thread loads a model when a request names it. It counts memory first: if the budget
// has no room, it unloads the least recently used model, an idle one before a busy one. A model
// that is being unloaded takes no new requests and is closed after its last one; requests that name
// it meanwhile wait for the next load. Loads follow the order of the requests.
//
// Threads: any, unless stated otherwise.

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basic/result.hpp"
#include "models/model_source.hpp"

namespace bitnet::host {

// Destroyed on the table's thread, after leave_loop().
class loaded_model {
 public:
  virtual ~loaded_model() = default;
  // The loop calls it: the model must not use the loop from now on.
  virtual void leave_loop() = 0;
  // Any thread. Bytes of the budget that the model takes now.
  [[nodiscard]] virtual uint64_t bytes() const = 0;
};

// Keeps the model loaded while it exists.
using model_use = std::shared_ptr<loaded_model>;

struct model_rejection {
  enum class kind : uint8_t { unknown, not_loaded, no_room, failed, busy };
  kind what = kind::unknown;
  std::string message;                 // the problem, and what to do
  int exit_code = exit_code::failure;  // of a failed load: the program's exit code for it
};
using model_found = std::expected<model_use, model_rejection>;
using model_receiver = std::function<void(model_found)>;

enum class model_state : uint8_t { unloaded, loading, loaded, unloading, failed };

struct model_row {
  model_source source;
  model_state state = model_state::unloaded;
  std::string error;  // of a failed load
  model_use use;      // set if it is loaded
};

struct model_table_options {
  std::vector<model_source> models = {};  // the first serves requests that name none
  std::string folder = {};                // a folder with more models; "": none
  bool any_name = false;                  // the only model answers to any name
  std::size_t most_loaded = 0;            // concurrently; 0: limited by memory only
  uint64_t memory = 0;                    // budget in bytes; 0: what is free before the first load
  uint64_t kv_bytes = 0;                  // per model, for keys and values; 0: as much as is useful
  bool loads_on_demand = true;            // false: only load() loads
};

// The table's thread calls both functions.
struct model_loader {
  std::function<result<model_need>(const model_source&)> measure = {};
  // `kv_bytes`: the budget's room for keys and values; 0: the library's choice.
  std::function<result<std::unique_ptr<loaded_model>>(const model_source&, uint64_t kv_bytes)>
      load = {};
  // Receives a line about each model that was loaded or unloaded.
  std::function<void(const std::string&)> on_note = {};
};

class model_table {
 public:
  // `io` outlives the table and its loaded models.
  model_table(boost::asio::io_context& io, model_table_options how, model_loader by);
  // Waits for a running load.
  ~model_table();
  model_table(const model_table&) = delete;
  model_table& operator=(const model_table&) = delete;

  // The model of this name; "" means the first one in the options, or the only one. Returns nothing
  // if it has to be loaded first; then the table's thread calls `later`.
  [[nodiscard]] std::optional<model_found> want(std::string_view name, model_receiver later);
  // The same for an administrator: loads also without loads_on_demand, or after a failure.
  [[nodiscard]] std::optional<model_found> load(std::string_view name, model_receiver later);
  // The model takes no new requests, and is closed after its last one.
  [[nodiscard]] std::expected<void, model_rejection> unload(std::string_view name);

  // Reads the folder anew.
  [[nodiscard]] std::vector<model_row> list();
  // The model of this name, if it is loaded; "": any loaded one, preferably the first.
  [[nodiscard]] model_use loaded(std::string_view name = {}) const;
  // The loop calls it: no receiver is called any more, and every model leaves the loop.
  void end();

 private:
  struct contents;
  std::shared_ptr<contents> contents_;
};

}  // namespace bitnet::host
