/* eval.h: `foliot lab eval`: the clocks of a lab against the truth. */
#pragma once

/* argv[0] is "eval"; `name` the lab's. Returns the exit status. */
int lab_eval_main(const char *name, int argc, char **argv);
