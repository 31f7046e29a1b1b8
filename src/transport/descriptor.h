/* descriptor.h: descriptors that a child of fork() must not keep: connections, listeners, the job page's lock.
 *
 * While any process holds a connection, its peer isn't told that it ended. A job's data loaders are children that hold everything
 * that their parent had open, so a killed rank would look like a silent one. Therefore each descriptor is listed here from its
 * opening to its close, and a child closes all of them before fork() returns there. fork() waits while one is opened or closed.
 * In a child that calls exec, O_CLOEXEC closes them. */
#pragma once
#include <stdint.h>
#include <sys/types.h>

#include "base/bug.h"

/* Like socket() and accept4(), both with O_CLOEXEC and O_NONBLOCK; -errno. */
MUST_CHECK int descriptor_socket(int domain, int type, int protocol);
MUST_CHECK int descriptor_accept(int listener);
/* Lists a descriptor that was just opened by other means: a child that is forked right before this keeps it. */
void descriptor_add(int fd);
void descriptor_close(int fd);
/* A copy of one of the application's descriptors. All copies of a process are at most an eighth of what it may open: connections
 * may take half, and the rest is the application's. -EMFILE: there is none left. */
MUST_CHECK int descriptor_copy(int fd);
void descriptor_copy_close(int fd);
/* It is about to be closed by other means. */
void descriptor_forget(int fd);

/* How many forks lead from the first process to this one. A child has another value than its parent: then the parent's
 * descriptors are closed here. */
uint32_t descriptor_forks(void);
