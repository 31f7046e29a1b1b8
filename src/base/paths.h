/* paths.h: where programs of one machine find each other. */
#pragma once

/* The controller's API for users of its own machine: HTTP over a Unix stream socket, below its runtime folder. The server is root
 * or the controller's user; a client checks that (SO_PEERCRED) before it sends a token. The server recognises root in the same
 * way: an admin without a token. */
#define CONTROLLER_SOCKET_FOLDER "/run/foliot-controller"
#define CONTROLLER_SOCKET_PATH   CONTROLLER_SOCKET_FOLDER "/api.sock"
