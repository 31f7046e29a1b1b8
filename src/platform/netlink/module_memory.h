/* module_memory.h: parses the memory of a cable or transceiver: SFF-8636 (QSFP), CMIS (QSFP-DD, OSFP), SFF-8472 (SFP: only
 * vendor and part). A page has 128 bytes. Three pages are used: the lower one, the upper one of page 0, and page 11h of CMIS
 * with the lanes. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct module_memory {
    char part[64];   /* "NVIDIA MMA4Z00-NS400 A1": vendor, part, revision, separated by blanks */
    char alarm[160]; /* "rx power low" …, separated by ", "; or "none" */
    int64_t rx;      /* light on the darkest lane, 0.1 uW; -1: not known */
};

/* True if page 11h is needed and exists. */
bool module_has_lanes(const uint8_t lower[static 128]);
/* lanes: NULL if module_has_lanes is false. -EBADMSG: an unknown type of module. */
int module_read(const uint8_t lower[static 128], const uint8_t upper[static 128],
                const uint8_t *lanes, struct module_memory *ret);
