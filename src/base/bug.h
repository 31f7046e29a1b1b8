/* bug.h: ASSERT for what can only be our own bug. Stays on in release: a daemon dies, systemd restarts it.
 * Input from outside is never asserted, it is validated where it is decoded. */
#pragma once

#define ASSERT(condition)                                                                          \
    ((condition) ? (void)0 : bug_found(#condition, __FILE__, __LINE__, __func__))
#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MUST_CHECK         __attribute__((warn_unused_result))

/* Prints the broken condition and its place to stderr and aborts. */
_Noreturn void bug_found(const char *condition, const char *file, int line, const char *function);
