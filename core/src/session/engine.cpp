#include "session/engine.hpp"

#include "bitnet/abi/packed.h"

#include <algorithm>
#include <cstring>

#include "plugin/text.hpp"
