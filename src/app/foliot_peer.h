/* foliot_peer.h: checks who would get the token. The CLI sends it to programs of root or of its own user on this machine, and to
 * a server with the right certificate on another machine. Nobody else gets it. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bug.h"

/* True if the other end of this connected Unix socket belongs to root or to our user (SO_PEERCRED). Otherwise *ret_user is its
 * user. */
bool peer_is_ours(int fd, uid_t *ret_user);
/* True if the URL's host can only be this machine, as in "http://127.0.0.1:7639"; "localhost" is one. *ret_port: its port. */
bool peer_is_own_machine(const char *url, uint16_t *ret_port);
/* 0 if the listener on that TCP port of this machine (of this network name space) belongs to root or to our user. -EPERM: it
 * belongs to another user, *ret_user. -ENOENT: nobody listens. */
MUST_CHECK int peer_listens(uint16_t port, uid_t *ret_user);
