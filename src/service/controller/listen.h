/* listen.h: the controller's two ports, and its socket in the file system. */
#pragma once
#include "base/bug.h"

struct controller;

MUST_CHECK int listen_agents(struct controller *c);
MUST_CHECK int listen_api(struct controller *c);
void listen_local(struct controller *c);       /* the API's socket in the file system */
void listen_write_ports(struct controller *c); /* data_dir/ports */
