#include "runtime/go/abi.h"

const unsigned go_current_register = 28; /* x28 */
