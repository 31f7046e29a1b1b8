/* own_network.h: a test in a network namespace of its own, in which it can make links and addresses. */
#pragma once
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* From here on this process has a network of its own, if it is allowed: no other process uses its ports. */
static inline void have_own_network(void)
{
    if (unshare(CLONE_NEWNET) == 0 && system("ip link set lo up") != 0) {
        exit(2);
    }
}

/* Runs the shell's commands, then run(), in a child with a namespace of its own. run() returns an error, or 0. Skips the test if
 * it may not make namespaces. */
static inline void in_own_network(const char *setup, int (*run)(void))
{
    const pid_t child = fork();
    int status;

    if (child == 0) {
        if (unshare(CLONE_NEWNET) < 0) {
            _exit(77);
        }
        _exit(system(setup) != 0 ? 2 : run());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}
