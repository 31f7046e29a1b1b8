/* control.h: a lab's controller: a management network, one foliot-controller, and all hosts as its members.
 *
 * Namespace foliot-NAME-mgmt holds a bridge, 172.31.0.1/16, and the controller. Host h reaches it through mgmt0,
 * 172.31.0.<2+h>. The API and the dashboard are on this machine's loopback address: that socket is opened outside and handed
 * in. LAB_ROOT/NAME/controller is the controller's folder, LAB_ROOT/NAME/token holds the admin's token,
 * LAB_ROOT/NAME/dashboard the address. */
#pragma once
#include "lab/lab.h"

#define LAB_API_PORT   7639
#define LAB_CONTROLLER "172.31.0.1:7638"

/* Call it after the fabric and the agents' files, before the agents. -EADDRINUSE: the port is taken. It prints the error. */
MUST_CHECK int lab_control_up(const struct lab *lab, int api_port);
/* Gets the code of a link that signs a browser in once ("ADDRESS#code=CODE"). false: the controller doesn't answer. */
bool lab_sign_in_code(const char *address, const char *token, char ret_code[LAB_TEXT_SIZE]);
/* Reads "http://127.0.0.1:7639/" and the token. false: this lab has no controller. */
bool lab_control_read(const char *name, char ret_address[LAB_TEXT_SIZE],
                      char ret_token[LAB_TEXT_SIZE]);
