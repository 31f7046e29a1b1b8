/* foliot_measure.h: measurements on demand, for the commands that start them. */
#pragma once
#include "app/foliot_api.h"

/* `foliot host check HOST`. seconds NULL: the controller chooses. Returns 0 for yes, 1 for no or unknown. */
int measure_host_check(struct api *api, const char *host, const char *seconds);
/* `foliot mesh --full`: true if the words mean it; and the command itself. */
bool measure_is_full(int argc, char *argv[]);
int measure_full(int argc, char *argv[]);
