/* cmd.h: the command `foliot lab`, as src/app/foliot.c calls it. */
#pragma once

/* argv[0] is "lab". Returns the exit status. */
int lab_main(int argc, char **argv);
