#include "models/model_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <deque>
#include <filesystem>
#include <iterator>
#include <limits>
#include <mutex>
#include <utility>

#include "models/model_folder.hpp"
#include "service/worker.hpp"

namespace bitnet::host {
namespace asio = boost::asio;
using clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t most_receivers = 1024;  // that wait for a load
constexpr std::size_t most_loads = 4096;      // queued for the table's thread
// After this time a model that failed to load is tried again, not at each request.
constexpr std::chrono::seconds rest_after_failure{10};

std::string mib(uint64_t bytes) {
  return fmt::format("{} MiB", bytes >> 20);
}

model_rejection rejection_of(const failure& why) {
  return {model_rejection::kind::failed, why.message, why.exit_code};
}

std::unexpected<model_rejection> rejected(model_rejection::kind what, std::string message) {
  return std::unexpected(model_rejection{what, std::move(message)});
}

}  // namespace

struct model_table::contents : std::enable_shared_from_this<contents> {
  struct entry {
    model_source source;
    model_state state = model_state::unloaded;
    model_use use;
    std::shared_ptr<uint64_t> let_go_bytes;  // bytes of `use` that are counted in leaving_bytes
    model_need need;
    uint64_t used_at = 0;  // value of n_uses at its last use
    clock::time_point failed_at{};
    model_rejection why;  // of a failed load
    std::vector<model_receiver> waiting;
    std::size_t n_leaving = 0;  // unloaded copies with running requests
  };
  using entry_ptr = std::shared_ptr<entry>;
  // Actions to take after unlocking, in this order.
  struct todo {
    std::vector<model_use> drop;
    std::vector<std::pair<model_receiver, model_found>> answers;
    std::vector<std::string> notes;
  };

  contents(asio::io_context& loop, model_table_options options, model_loader by)
      : io(loop), how(std::move(options)), loader(std::move(by)), budget(how.memory) {
    for (const model_source& one : how.models) add(one);
  }

  // ---- with the lock held ----
  void add(model_source source);
  void read_folder();
  [[nodiscard]] entry_ptr find(std::string_view name);
  [[nodiscard]] std::optional<model_found> want(std::string_view name, model_receiver later,
                                                bool by_admin);
  [[nodiscard]] std::string names() const;
  void failed(const entry_ptr& one, const model_rejection& why, todo& then);
  void advance(todo& then);
  // `waits`: there will be room once the models being unloaded are closed.
  [[nodiscard]] std::optional<std::string> make_room(const entry_ptr& next, todo& then,
                                                     bool& waits);
  [[nodiscard]] bool start(const entry_ptr& next);
  [[nodiscard]] entry_ptr victim() const;
  void let_go(const entry_ptr& one, const std::string& why, todo& then);
  [[nodiscard]] uint64_t loaded_bytes() const;
  [[nodiscard]] std::size_t n_loaded() const;
  [[nodiscard]] model_use use_of(std::unique_ptr<loaded_model> made, const entry_ptr& of);

  // ---- without the lock ----
  void run(todo then) const;
  void measure(const entry_ptr& one);
  void open(const entry_ptr& one, uint64_t kv_bytes);
  void closed(const entry_ptr& one, uint64_t bytes);

  asio::io_context& io;
  const model_table_options how;
  const model_loader loader;

  mutable std::mutex guard;
  std::vector<entry_ptr> entries;
  std::deque<entry_ptr> pending;  // waiting for room, in the order of requests
  std::filesystem::file_time_type folder_time{};
  uint64_t budget;  // 0: unknown so far
  std::vector<std::weak_ptr<loaded_model>> leaving;
  uint64_t n_uses = 0, leaving_bytes = 0;
  std::size_t n_leaving = 0, n_receivers = 0;
  bool is_loading = false, has_ended = false;
  std::unique_ptr<worker> thread = std::make_unique<worker>(most_loads);  // last: it reads the rest
};

// ---- the entries -------------------------------------------------------------------------------

void model_table::contents::add(model_source source) {
  auto one = std::make_shared<entry>();
  one->source = std::move(source);
  entries.push_back(std::move(one));
}

// Adds new files, and removes entries whose file is gone unless they are in use.
void model_table::contents::read_folder() {
  if (how.folder.empty()) return;
  std::error_code error;
  const auto time = std::filesystem::last_write_time(how.folder, error);
  if (error || time == folder_time) return;
  const auto now = models_in(how.folder);
  if (!now) return;  // list() then keeps the known models
  folder_time = time;
  const auto is_named = [&](const model_source& one) {
    return std::ranges::any_of(how.models, [&](const auto& x) { return x.name == one.name; });
  };
  std::erase_if(entries, [&](const entry_ptr& one) {
    const bool is_there = std::ranges::any_of(
        *now, [&](const model_source& x) { return x.name == one->source.name; });
    const bool is_idle = one->state == model_state::unloaded || one->state == model_state::failed;
    return !is_named(one->source) && !is_there && is_idle;
  });
  for (const model_source& one : *now) {
    const bool is_known = std::ranges::any_of(
        entries, [&](const entry_ptr& x) { return x->source.name == one.name; });
    if (!is_known) add(one);
  }
}

model_table::contents::entry_ptr model_table::contents::find(std::string_view name) {
  if (name.empty() && how.models.empty()) read_folder();
  const bool has_default = !how.models.empty() || entries.size() == 1;
  if (how.any_name || (name.empty() && has_default)) return entries.front();
  const auto by_name = [&] {
    return std::ranges::find_if(entries, [&](const auto& one) { return one->source.name == name; });
  };
  auto found = by_name();
  if (found == entries.end()) {
    read_folder();
    found = by_name();
  }
  return found == entries.end() ? nullptr : *found;
}

std::string model_table::contents::names() const {
  constexpr std::size_t most_shown = 16;
  std::string out;
  for (std::size_t i = 0; i < std::min(entries.size(), most_shown); ++i)
    out += (i == 0 ? "'" : ", '") + entries[i]->source.name + "'";
  return entries.size() > most_shown ? out + ", ..." : out;
}

// ---- requests ----------------------------------------------------------------------------------

std::optional<model_found> model_table::contents::want(std::string_view name, model_receiver later,
                                                       bool by_admin) {
  using kind = model_rejection::kind;
  const entry_ptr one = find(name);
  if (!one)
    return rejected(kind::unknown,
                    entries.empty()
                        ? "there is no model; put GGUF files into the folder of --models-dir"
                        : fmt::format("{}; the models are {}",
                                      name.empty() ? "the request names no model"
                                                   : "there is no model of this name",
                                      names()));
  if (has_ended) return rejected(kind::busy, "the server ends; send the request again");
  if (one->state == model_state::loaded) {
    one->used_at = ++n_uses;
    return one->use;
  }
  const bool is_idle = one->state == model_state::unloaded || one->state == model_state::failed;
  if (is_idle && !by_admin) {
    if (!how.loads_on_demand)
      return rejected(
          kind::not_loaded,
          fmt::format("the model '{}' is not loaded; an administrator loads it with POST "
                      "/models/load",
                      one->source.name));
    if (one->state == model_state::failed && clock::now() - one->failed_at < rest_after_failure)
      return std::unexpected(one->why);
  }
  if (n_receivers >= most_receivers)
    return rejected(kind::busy, "too many requests wait for a model to be loaded; try again");
  if (is_idle && !thread->post([this, one] { measure(one); }))
    return rejected(kind::busy, "too many models wait to be loaded; try again");
  if (is_idle) one->state = model_state::loading;
  one->waiting.push_back(std::move(later));
  ++n_receivers;
  return std::nullopt;
}

// ---- memory ------------------------------------------------------------------------------------

uint64_t model_table::contents::loaded_bytes() const {
  uint64_t out = 0;
  for (const entry_ptr& one : entries)
    if (one->use) out += one->use->bytes();
  return out;
}

std::size_t model_table::contents::n_loaded() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(entries, [](const entry_ptr& one) { return one->use != nullptr; }));
}

// The least recently used model, an idle one before a busy one. use_count() is reliable here: a use
// is copied only under the lock or from a copy that exists, so a count of 1 cannot grow.
model_table::contents::entry_ptr model_table::contents::victim() const {
  entry_ptr out;
  const auto order = [](const entry_ptr& one) {
    return std::pair(one->use.use_count() > 1, one->used_at);
  };
  for (const entry_ptr& one : entries)
    if (one->use && (!out || order(one) < order(out))) out = one;
  return out;
}

void model_table::contents::let_go(const entry_ptr& one, const std::string& why, todo& then) {
  *one->let_go_bytes = one->use->bytes();
  leaving_bytes += *one->let_go_bytes;
  ++n_leaving;
  ++one->n_leaving;
  one->state = model_state::unloaded;
  std::erase_if(leaving, [](const auto& other) { return other.expired(); });
  leaving.push_back(one->use);
  then.drop.push_back(std::move(one->use));
  one->use.reset();
  then.notes.push_back(fmt::format("model {}: unloaded {}", one->source.name, why));
}

// False: the table's thread has too many queued tasks.
bool model_table::contents::start(const entry_ptr& next) {
  uint64_t kv_bytes = how.kv_bytes;
  if (budget != 0 && kv_bytes == 0) {
    const uint64_t taken = loaded_bytes() + leaving_bytes + next->need.weights;
    const uint64_t half = (budget - std::min(budget, taken)) / 2;  // leaves half for the next model
    kv_bytes =
        std::clamp(half, next->need.least_kv, std::max(next->need.least_kv, next->need.most_kv));
  }
  return is_loading = thread->post([this, next, kv_bytes] { open(next, kv_bytes); });
}

// Unloads others until the model has room. Returns why it can never have room, if so.
std::optional<std::string> model_table::contents::make_room(const entry_ptr& next, todo& then,
                                                            bool& waits) {
  const std::size_t most =
      how.most_loaded == 0 ? std::numeric_limits<std::size_t>::max() : how.most_loaded;
  const uint64_t kv = how.kv_bytes != 0 ? how.kv_bytes : next->need.least_kv;
  const uint64_t need = next->need.weights + kv;
  const uint64_t all = budget == 0 ? std::numeric_limits<uint64_t>::max() : budget;
  if (need > all)
    return fmt::format(
        "the model '{}' needs {} for weights and {} for keys and values, and all models have {} "
        "together: give --models-memory more, or --ctx-size less",
        next->source.name, mib(next->need.weights), mib(kv), mib(all));
  for (;;) {
    const std::size_t n = n_loaded();
    const uint64_t taken = loaded_bytes();
    const entry_ptr other = victim();
    if ((n < most && taken <= all - need) || !other) {
      waits = n + n_leaving >= most || taken + leaving_bytes > all - need;
      return std::nullopt;
    }
    let_go(other, "to make room for " + next->source.name, then);
  }
}

void model_table::contents::advance(todo& then) {
  while (!is_loading && !pending.empty() && !has_ended) {
    const entry_ptr next = pending.front();
    bool waits = false;
    auto no = how.any_name ? std::nullopt : make_room(next, then, waits);
    if (waits) return;
    pending.pop_front();
    if (no)
      failed(next, {model_rejection::kind::no_room, *no}, then);
    else if (!start(next))
      failed(next, {model_rejection::kind::busy, "too many models wait to be loaded; try again"},
             then);
  }
}

// ---- the table's thread ------------------------------------------------------------------------

void model_table::contents::failed(const entry_ptr& one, const model_rejection& why, todo& then) {
  // A model that was not tried has not failed.
  one->state =
      why.what == model_rejection::kind::busy ? model_state::unloaded : model_state::failed;
  one->failed_at = clock::now();
  one->why = why;
  n_receivers -= one->waiting.size();
  for (model_receiver& each : one->waiting)
    then.answers.emplace_back(std::move(each), std::unexpected(why));
  one->waiting.clear();
}

void model_table::contents::measure(const entry_ptr& one) {
  const auto need = how.any_name ? result<model_need>(model_need{}) : loader.measure(one->source);
  todo then;
  {
    const std::lock_guard lock(guard);
    if (has_ended) return;
    if (!need) {
      failed(one, rejection_of(need.error()), then);
    } else {
      one->need = *need;
      if (budget == 0 && !how.any_name) budget = need->free;
      pending.push_back(one);
      advance(then);
    }
  }
  run(std::move(then));
}

void model_table::contents::open(const entry_ptr& one, uint64_t kv_bytes) {
  auto made = loader.load(one->source, kv_bytes);
  todo then;
  {
    const std::lock_guard lock(guard);
    is_loading = false;
    if (has_ended) return;
    if (!made) {
      failed(one, rejection_of(made.error()), then);
    } else {
      one->state = model_state::loaded;
      one->used_at = ++n_uses;
      one->use = use_of(*std::move(made), one);
      n_receivers -= one->waiting.size();
      for (model_receiver& each : one->waiting)
        then.answers.emplace_back(std::move(each), one->use);
      one->waiting.clear();
      then.notes.push_back(fmt::format("model {}: loaded", one->source.name));
    }
    advance(then);
  }
  run(std::move(then));
}

void model_table::contents::run(todo then) const {
  for (const std::string& note : then.notes)
    if (loader.on_note) loader.on_note(note);
  then.drop.clear();
  for (auto& [receiver, found] : then.answers) receiver(std::move(found));
}

// The last owner may be on any thread, so the loop calls leave_loop(), and then the table's thread
// closes the model.
model_use model_table::contents::use_of(std::unique_ptr<loaded_model> made, const entry_ptr& of) {
  of->let_go_bytes = std::make_shared<uint64_t>(0);
  auto give_back = [weak = weak_from_this(), of = std::weak_ptr(of), bytes = of->let_go_bytes,
                    &to = io](loaded_model* given) {
    std::shared_ptr<loaded_model> gone(given);
    asio::post(to, [weak, of, bytes, gone = std::move(gone)]() mutable {
      gone->leave_loop();
      const auto self = weak.lock();
      if (!self) return;
      auto task = [raw = self.get(), of, bytes, gone = std::move(gone)]() mutable {
        gone.reset();
        raw->closed(of.lock(), *bytes);
      };
      static_cast<void>(self->thread->post(std::move(task)));
    });
  };
  return {made.release(), std::move(give_back)};
}

// `one`: NULL if its file is gone, too.
void model_table::contents::closed(const entry_ptr& one, uint64_t bytes) {
  todo then;
  {
    const std::lock_guard lock(guard);
    if (one) --one->n_leaving;
    --n_leaving;
    leaving_bytes -= bytes;
    advance(then);
  }
  run(std::move(then));
}

// ---- the table ---------------------------------------------------------------------------------

model_table::model_table(asio::io_context& io, model_table_options how, model_loader by)
    : contents_(std::make_shared<contents>(io, std::move(how), std::move(by))) {
  const std::lock_guard lock(contents_->guard);
  contents_->read_folder();
}

model_table::~model_table() {
  end();
  contents_->thread.reset();
}

std::optional<model_found> model_table::want(std::string_view name, model_receiver later) {
  const std::lock_guard lock(contents_->guard);
  return contents_->want(name, std::move(later), false);
}

std::optional<model_found> model_table::load(std::string_view name, model_receiver later) {
  const std::lock_guard lock(contents_->guard);
  return contents_->want(name, std::move(later), true);
}

std::expected<void, model_rejection> model_table::unload(std::string_view name) {
  contents::todo then;
  {
    const std::lock_guard lock(contents_->guard);
    const contents::entry_ptr one = contents_->find(name);
    if (!one)
      return rejected(
          model_rejection::kind::unknown,
          fmt::format("there is no model of this name; the models are {}", contents_->names()));
    if (one->state == model_state::loading)
      return rejected(
          model_rejection::kind::busy,
          fmt::format("the model '{}' is being loaded; try again when it is", one->source.name));
    if (!one->use) return {};
    contents_->let_go(one, "as an administrator asked", then);
  }
  contents_->run(std::move(then));
  return {};
}

std::vector<model_row> model_table::list() {
  const std::lock_guard lock(contents_->guard);
  contents_->read_folder();
  std::vector<model_row> out;
  for (const auto& one : contents_->entries) {
    const bool leaves = one->state == model_state::unloaded && one->n_leaving != 0;
    out.push_back({one->source, leaves ? model_state::unloading : one->state,
                   one->state == model_state::failed ? one->why.message : "", one->use});
  }
  return out;
}

model_use model_table::loaded(std::string_view name) const {
  const std::lock_guard lock(contents_->guard);
  for (const auto& one : contents_->entries)
    if (one->use && (contents_->how.any_name || name.empty() || one->source.name == name))
      return one->use;
  return nullptr;
}

void model_table::end() {
  std::vector<model_receiver> forgotten;
  std::vector<model_use> all;
  {
    const std::lock_guard lock(contents_->guard);
    contents_->has_ended = true;
    for (const auto& one : contents_->entries) {
      std::ranges::move(one->waiting, std::back_inserter(forgotten));
      one->waiting.clear();
      if (one->use) all.push_back(one->use);
    }
    for (const auto& one : contents_->leaving)
      if (auto use = one.lock()) all.push_back(std::move(use));
  }
  for (const model_use& one : all) one->leave_loop();
}

}  // namespace bitnet::host
