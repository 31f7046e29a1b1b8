/* foliot_peer.h: who would get the token? The CLI sends one to root's programs and to its own user's on this machine, and to a
 * server with the right certificate elsewhere; to nobody else. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bug.h"

/* Is the other end of this connected Unix socket root's or ours, by SO_PEERCRED? Else *ret_user's. */
bool peer_is_ours(int fd, uid_t *ret_user);
/* "http://127.0.0.1:7639": a host that can only be this machine? Its port. "localhost" is one. */
bool peer_is_own_machine(const char *url, uint16_t *ret_port);
/* Who listens on that TCP port of this machine (of this network name space) is root or our user. -EPERM: another,
 * *ret_user. -ENOENT: nobody. */
MUST_CHECK int peer_listens(uint16_t port, uid_t *ret_user);
