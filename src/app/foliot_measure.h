/* foliot_measure.h: measurements on demand, for the commands that start them. */
#pragma once
#include "app/foliot_api.h"

/* `foliot host check HOST`. seconds NULL: as the controller likes. 0 yes, 1 no or not known. */
int measure_host_check(struct api *api, const char *host, const char *seconds);
/* `foliot mesh --full`: is it that, and what it does. */
bool measure_is_full(int argc, char *argv[]);
int measure_full(int argc, char *argv[]);
