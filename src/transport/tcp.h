/* tcp.h: the transport's outside world on Linux: non-blocking TCP, epoll, the agent's clock page.
 *
 * Each connection has O_CLOEXEC, TCP_NODELAY, a retransmission timeout of 5 ms instead of 200 ms if the kernel lets the program
 * choose (6.15 and later), TCP_USER_TIMEOUT 2 s, and receive stamps by the kernel. */
#pragma once
#include "transport/io.h"

struct tcp;

/* sysfs: "/sys", or a test's copy. One for each process and transport; it has no threads. */
MUST_CHECK int tcp_open(struct tcp **ret_tcp, const char *sysfs);
struct io *tcp_io(struct tcp *tcp);
/* Accepts NULL. Connections must be closed before. */
void tcp_close(struct tcp *tcp);
