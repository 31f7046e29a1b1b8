/* capture.h: makes a tree of files from what the collectors read. With `--root` the same collectors read the tree as the same
 * machine. Nothing in the tree identifies the machine (scrub.h). service/inspect and `foliot selftest rdma --record` use this
 * header.
 *
 * A collector's child watches the files that it opens (platform/sysfs), and puts each into the tree before the collector reads
 * it: folders, links as links, and the names in a folder that is listed. A file that can't be read becomes a link to "!N",
 * where N is the error. So does a garbled file: nothing of it is kept. Answers that come from no file go to /answers
 * (gpu_library.c, settings.c, agent.c). */
#pragma once
#include "service/inspect/scrub.h"

/* Captures in this process from now on. The folder exists. */
void capture_begin(const struct scrub *s, const char *folder);
/* Collects the names of this machine for scrubbing. */
void capture_names(struct scrub *s, const char *root);
