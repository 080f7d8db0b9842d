#pragma once
// The controls of a stand-in, in the process that it computes in.

#include <dlfcn.h>

#include <cstdint>
#include <type_traits>

namespace bitnet::test {

// Functions of tests/<backend>/stand_in/stand_in.hpp, which describes them.
struct controls {
  void (*fail)(uint64_t nth, int with);
  uint64_t (*calls)();
  uint64_t (*objects)();
  const char* (*failed)();
};

template <class Function>
void find_control(void* library, const char* name, Function& to) {
  to = reinterpret_cast<Function>(dlsym(library, name));
}

// nullptr if the library that the loader finds by this name is another one.
inline const controls* find_controls(const char* library) {
  void* opened = dlopen(library, RTLD_NOW);
  if (!opened) return nullptr;
  static controls found;
  find_control(opened, "bitnet_stand_in_fail", found.fail);
  find_control(opened, "bitnet_stand_in_calls", found.calls);
  find_control(opened, "bitnet_stand_in_objects", found.objects);
  find_control(opened, "bitnet_stand_in_failed", found.failed);
  return found.fail ? &found : nullptr;
}

}  // namespace bitnet::test
