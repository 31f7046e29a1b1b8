/* budget.c: see budget.h. */
#include "core/audit/budget.h"

#include <stddef.h>

#include "base/limits.h"

#define READINGS_A_SECOND (AUDIT_READINGS_MAX / 3600.0)
#define TESTS_MS_A_SECOND (AUDIT_TESTS_MS_MAX / 86400.0)

const char *budget_read(struct allowance *readings, struct mono now)
{
    return allowance_take(readings, READINGS_A_SECOND, AUDIT_READINGS_MAX, now)
               ? NULL
               : "audits have read it so often within an hour that it waits a minute";
}

const char *budget_tests_wrong(struct allowance *tests, uint64_t ms, struct mono now)
{
    return (double)ms <= allowance_left(tests, TESTS_MS_A_SECOND, AUDIT_TESTS_MS_MAX, now)
               ? NULL
               : "with these its tests would take more than two hours of a day";
}

void budget_tested(struct allowance *tests, int64_t ns, struct mono now)
{
    (void)allowance_left(tests, TESTS_MS_A_SECOND, AUDIT_TESTS_MS_MAX, now);
    tests->left -= (double)ns * 1e-6;
}
