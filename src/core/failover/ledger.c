/* ledger.c: see ledger.h. */
#include "core/failover/ledger.h"
