/* control.h: a lab's controller: a network of its own (management), one foliot-controller, all hosts its members.
 *
 * Namespace foliot-NAME-mgmt holds a bridge, 172.31.0.1/16, and the controller; host h reaches it by mgmt0, 172.31.0.<2+h>.
 * Its API and dashboard are on this machine's loopback address: that socket is opened outside and handed in.
 * LAB_ROOT/NAME/controller is its folder, LAB_ROOT/NAME/token the admin's token, LAB_ROOT/NAME/dashboard the address. */
#pragma once
#include "lab/lab.h"

#define LAB_API_PORT   7639
#define LAB_CONTROLLER "172.31.0.1:7638"

/* After the fabric and the agents' files, before the agents: -EADDRINUSE: the port is taken. Says what went wrong on
 * stderr. */
MUST_CHECK int lab_control_up(const struct lab *lab, int api_port);
/* "http://127.0.0.1:7639/" and the token: false: this lab has no controller. */
/* Of a link that signs a browser in once ("ADDRESS#code=CODE"). false: the controller doesn't answer. */
bool lab_sign_in_code(const char *address, const char *token, char ret_code[LAB_TEXT_SIZE]);
bool lab_control_read(const char *name, char ret_address[LAB_TEXT_SIZE],
                      char ret_token[LAB_TEXT_SIZE]);
