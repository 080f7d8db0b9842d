// What Mesa's software driver and the validation layer never free, by name; used where the leak
// search is built in. The driver stays loaded, as a library that is gone has no name.

#include <dlfcn.h>

extern "C" const char* __lsan_default_suppressions();

extern "C" const char* __lsan_default_suppressions() {
  return "leak:libvulkan_lvp.so\nleak:libVkLayer_khronos_validation.so\n";
}

namespace {

[[maybe_unused]] const void* const kept = dlopen("libvulkan_lvp.so", RTLD_NOW | RTLD_NODELETE);

}  // namespace
