/* bug.h: ASSERT for conditions that only a bug of our own can break. It stays on in release: a daemon dies, and systemd restarts
 * it. Input from outside is never asserted; it is validated where it is decoded. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define ASSERT(condition)                                                                          \
    ((condition) ? (void)0 : bug_found(#condition, __FILE__, __LINE__, __func__))
#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MUST_CHECK         __attribute__((warn_unused_result))

/* In a job's own process a bug of ours must not end it. HOLDS gives the condition's truth, and notes the first condition that
 * doesn't hold. The module then stops deciding: traffic control turns itself off; ledger and failover refuse all further work (a
 * wrong byte is worse than a dead job). */
struct bug_note {
    const char *condition; /* NULL: no bug was found */
    const char *file;
    int line;
};
#define HOLDS(note, condition) ((condition) || bug_noted((note), #condition, __FILE__, __LINE__))

static inline bool bug_noted(struct bug_note *note, const char *condition, const char *file,
                             int line)
{
    if (note->condition == NULL) {
        *note = (struct bug_note){condition, file, line};
    }
    return false;
}

/* Prints the broken condition and its place to stderr, and aborts. */
_Noreturn void bug_found(const char *condition, const char *file, int line, const char *function);
