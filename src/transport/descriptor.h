/* descriptor.h: descriptors that a child of fork() must not keep: connections, listeners, the job page's lock.
 *
 * As long as anybody holds a connection, its peer isn't told that it ended. A job's data loaders are children that hold
 * whatever their parent had open, so a killed rank would look like a silent one. Each descriptor is therefore listed here
 * from birth to close, and a child closes all of them before fork() returns there. fork() waits while one is born or
 * closed. A child that execs instead has them closed by O_CLOEXEC. */
#pragma once
#include <stdint.h>
#include <sys/types.h>

#include "base/bug.h"

/* As socket() and accept4(), both with O_CLOEXEC and O_NONBLOCK; -errno. */
MUST_CHECK int descriptor_socket(int domain, int type, int protocol);
MUST_CHECK int descriptor_accept(int listener);
/* One that was opened just now by other means: a child that is forked right before this keeps it. */
void descriptor_add(int fd);
void descriptor_close(int fd);
/* Of one that is the application's. All copies of a process are at most an eighth of what it may open: connections may take half,
 * and the rest is the application's. -EMFILE: there is none left. */
MUST_CHECK int descriptor_copy(int fd);
void descriptor_copy_close(int fd);
/* It is about to be closed by other means. */
void descriptor_forget(int fd);

/* How many times this process's line was forked into a child: in a child it differs from what it was in the parent, and
 * what the parent had is closed. */
uint32_t descriptor_forks(void);
