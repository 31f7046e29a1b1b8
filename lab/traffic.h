/* traffic.h: `foliot lab traffic`: load on the lab's links, and a transfer job whose time can be compared. */
#pragma once

/* argv[0] is "traffic"; `name` the lab's. Returns the exit status. */
int lab_traffic_main(const char *name, int argc, char **argv);
