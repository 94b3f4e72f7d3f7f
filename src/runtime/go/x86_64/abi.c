#include "runtime/go/abi.h"

const unsigned go_current_register = 14; /* r14 */
