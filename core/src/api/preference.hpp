#pragma once
// Chooses a device from a caller's list for an object that may move there.

#include <string>

#include "api/objects.hpp"

namespace bitnet::api {

struct preference {
  select::request wanted;  // devices to try when its device is lost, from now on
  select::choice to;       // the first usable device of the list
  bool stays = false;      // `to` is where it computes now
};

// `here`: where the object computes. `function`: the call of bitnet.h; `what`: the object in
// messages, "session". If a backend before the first usable device has not answered yet:
// BITNET_TIMEOUT if the object would stay, else a warning in the log. The caller holds the
// runtime's backends steady.
result<preference> find_preference(bitnet_runtime& runtime, const select::choice& here,
                                   const char* list, const char* function, const char* what);

}  // namespace bitnet::api
