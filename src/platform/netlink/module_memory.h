/* module_memory.h: what a cable or transceiver has in its memory: SFF-8636 (QSFP), CMIS (QSFP-DD, OSFP), SFF-8472 (SFP: its maker
 * and part alone). Pages have 128 bytes: the lower one, the upper one of page 0, and page 11h of CMIS, the lanes. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct module_memory {
    char part[64];   /* "NVIDIA MMA4Z00-NS400 A1": maker, part, revision; blanks apart */
    char alarm[160]; /* "rx power low" …, apart by ", "; "none" */
    int64_t rx;      /* light on the darkest lane, 0.1 uW; -1: it does not tell */
};

/* Is page 11h needed, and there? */
bool module_has_lanes(const uint8_t lower[static 128]);
/* lanes: NULL where module_has_lanes is false. -EBADMSG: no module that is known. */
int module_read(const uint8_t lower[static 128], const uint8_t upper[static 128],
                const uint8_t *lanes, struct module_memory *ret);
