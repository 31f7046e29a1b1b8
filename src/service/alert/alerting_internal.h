/* alerting_internal.h: struct alerting, for the code that runs it and the code that shows it. */
#pragma once
#include "service/alert/alerting.h"

#define KEPT_SILENCE_MAX 128
#define SAVED_MAX        (8 << 20)

struct kept_silence {
    struct alert_silence silence;
    char by[ALERT_ELEMENT_MAX], why[256];
};

struct alerting {
    struct alerting_options options;
    char path[256];
    struct alert_file file;
    struct brain *brain;
    bool own_brain;
    struct deliver *deliver;
    int64_t utc_offset_ns, fleet_offset_ns;
    struct mono refresh_due;
    uint64_t first_incident, next_silence;
    struct kept_silence silences[KEPT_SILENCE_MAX];
    size_t silence_count;
    char
        *rules; /* text of the file in force; a restart falls back on it; NULL: there was no file */
    bool changed;
};
