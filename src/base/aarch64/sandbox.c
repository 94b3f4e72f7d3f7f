#include "base/sandbox.h"

#include <linux/audit.h>

const unsigned sandbox_audit_arch = AUDIT_ARCH_AARCH64;
