#pragma once
// The program's words in what the library says.

namespace bitnet::host {

// The library says flags in place of its options from now on: "use a larger --ctx-size". Comes
// before all other calls of the library.
void give_wording();

}  // namespace bitnet::host
