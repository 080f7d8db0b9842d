#pragma once
// The models that a server can load: which of them are loaded, and which goes for another one.
//
// A thread of the table loads a model when a request names it. Memory is counted first: where the
// budget has no room, the model goes that was used the longest ago, an idle one before a busy one.
// A model that goes takes no new requests, and is closed when its last request has ended; requests
// that name it meanwhile wait until it is loaded once more. Loads have the order of the requests.
//
// Threads: any, but for what says otherwise.

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

#include "models/model_source.hpp"
#include "result.hpp"

namespace bitnet::host {

// Destroyed on the table's thread, behind leave_loop().
class loaded_model {
 public:
  virtual ~loaded_model() = default;
  // The loop: it has no call to make there from now on.
  virtual void leave_loop() = 0;
  // Any thread. What it takes of the budget now.
  [[nodiscard]] virtual uint64_t bytes() const = 0;
};

// The model stays loaded as long as there is one.
using model_use = std::shared_ptr<loaded_model>;

struct model_refusal {
  enum class kind : uint8_t { unknown, not_loaded, no_room, failed, busy };
  kind what = kind::unknown;
  std::string message;                 // what is wrong, and what to do
  int exit_code = exit_code::failure;  // of a load that failed: as the program leaves with
};
using model_found = std::expected<model_use, model_refusal>;
using model_receiver = std::function<void(model_found)>;

enum class model_state : uint8_t { unloaded, loading, loaded, unloading, failed };

struct model_row {
  model_source source;
  model_state state = model_state::unloaded;
  std::string error;  // of a load that failed
  model_use use;      // where it is loaded
};

struct model_table_options {
  std::vector<model_source> models = {};  // the first is that of requests without a name
  std::string folder = {};                // with more of them; "": none
  bool any_name = false;                  // there is one model, whatever a request calls it
  std::size_t most_loaded = 0;            // at once; 0: as many as memory has room for
  uint64_t memory = 0;                    // bytes of all; 0: what is free before the first load
  uint64_t kv_bytes = 0;                  // of each model's keys and values; 0: what is useful
  bool loads_on_demand = true;            // false: only load() loads
};

// The table's thread calls both.
struct model_loader {
  std::function<result<model_need>(const model_source&)> measure = {};
  // `kv_bytes`: room for keys and values that the budget has; 0: the library's choice.
  std::function<result<std::unique_ptr<loaded_model>>(const model_source&, uint64_t kv_bytes)>
      load = {};
  // One line of what was loaded and what went.
  std::function<void(const std::string&)> on_note = {};
};

class model_table {
 public:
  // `io` outlives the table, and what it has loaded.
  model_table(boost::asio::io_context& io, model_table_options how, model_loader by);
  // Waits for the load that runs.
  ~model_table();
  model_table(const model_table&) = delete;
  model_table& operator=(const model_table&) = delete;

  // The model of this name; "" is the first that the options name, or the only one. Nothing: it is
  // loaded first, and `later` called then, on the table's thread.
  [[nodiscard]] std::optional<model_found> want(std::string_view name, model_receiver later);
  // The same, for an administrator: also where nothing is loaded on demand, or where it failed.
  [[nodiscard]] std::optional<model_found> load(std::string_view name, model_receiver later);
  // It takes no new requests, and is closed when its last one has ended.
  [[nodiscard]] std::expected<void, model_refusal> unload(std::string_view name);

  // Of the folder as it is now, too.
  [[nodiscard]] std::vector<model_row> list();
  // The model of this name where it is loaded; "": any that is, the first before others.
  [[nodiscard]] model_use loaded(std::string_view name = {}) const;
  // The loop: no receiver is called any more, and every model leaves the loop.
  void end();

 private:
  struct contents;
  std::shared_ptr<contents> contents_;
};

}  // namespace bitnet::host
