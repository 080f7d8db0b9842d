// What Mesa's software driver never frees, by name; used where the leak search is built in. The
// driver stays loaded, as a library that is gone has no name.

#include <dlfcn.h>

extern "C" const char* __lsan_default_suppressions();

extern "C" const char* __lsan_default_suppressions() {
  return "leak:libvulkan_lvp.so\n";
}

namespace {

[[maybe_unused]] const void* const kept = dlopen("libvulkan_lvp.so", RTLD_NOW | RTLD_NODELETE);

}  // namespace
