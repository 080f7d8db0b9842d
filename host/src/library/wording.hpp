#pragma once
// Makes the library's messages use the program's option names.

namespace bitnet::host {

// From now on the library names flags instead of C options: "use a larger --ctx-size". Call it
// before any other function of the library.
void give_wording();

}  // namespace bitnet::host
