/* catalogue.h: the tables of the catalogue, in the order of the tree; of core/audit alone.
 *
 * docs/audit.md and foliot-audit-checks(7) are printed from them. Reasons and remedies are ours; `origin` names the place where
 * the file or the figure is described. */
#pragma once
#include "core/audit/check.h"

enum {
    CATALOGUE_SOFTWARE = 26,
    CATALOGUE_HARDWARE = 42,
    CATALOGUE_NODE = 22,
    CATALOGUE_LINKS = 31,
    CATALOGUE_MEASURED = 35
};

extern const struct check catalogue_software[CATALOGUE_SOFTWARE];
extern const struct check catalogue_hardware[CATALOGUE_HARDWARE];
extern const struct check catalogue_node[CATALOGUE_NODE];
extern const struct check catalogue_links[CATALOGUE_LINKS];
extern const struct check catalogue_measured[CATALOGUE_MEASURED];
