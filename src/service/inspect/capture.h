/* capture.h: a tree of files out of what the collectors read, which the same collectors read as the same machine (`--root`), and
 * in which nothing tells whose machine it is (scrub.h). Of service/inspect, and of `foliot selftest rdma --record`.
 *
 * A collector's child watches what it opens (platform/sysfs), and puts each file into the tree before the collector reads it:
 * folders, links as links, of a folder that is listed its names. A file that can't be read is a link to "!N" with the error, so
 * is one that is garbled: nothing of it is kept. Answers without a file go to /answers (gpu_library.c, settings.c, agent.c). */
#pragma once
#include "service/inspect/scrub.h"

/* From now on, in this process. The folder is there. */
void capture_begin(const struct scrub *s, const char *folder);
/* What this machine calls itself. */
void capture_names(struct scrub *s, const char *root);
