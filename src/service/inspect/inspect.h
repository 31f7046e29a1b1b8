/* inspect.h: reads one machine once: all facts of core/audit/facts.h into a sheet.
 *
 * Each collector runs in a child of its own with a deadline, all at once. One that does not answer in time is ended, and its
 * facts are `timeout`. One that can't be ended (it hangs in the kernel) is noted in the run folder; while it lives no second one
 * is started, and its facts are `stuck`. The other collectors' facts are there whatever happens to one. */
#pragma once
#include "core/audit/fact.h"
#include "platform/sysfs/sysfs.h"
#include "service/audit/sheet.h"

struct inspect_config {
    const char *root;         /* a tree that looks like "/"; NULL: this machine */
    const char *run_folder;   /* where what hangs is noted; NULL: nowhere */
    const char *checks;       /* folder of the site's programs; NULL: none are run */
    int deadline_ms;          /* of a collector */
    int mount_deadline_ms;    /* of one mount's answer */
    int site_deadline_ms;     /* of all programs together: they run at once */
    const char *gpu_library;  /* instead of the usual one; NULL: that one, and none for a root */
    const char *agent_socket; /* instead of the usual one; NULL: that one, and none for a root */
    const char *capture;      /* folder for the tree of a capture (capture.h); NULL: none */
    const char *slow;         /* for tests: this collector never ends; NULL: none */
};
extern const struct inspect_config inspect_usual;

/* 0, or why not even a child could be started (-errno). host: what the machine calls itself, unless the tree tells. */
int inspect_host(const struct inspect_config *config, struct sheet *ret_sheet);
/* The same in this process, one collector behind the other, without mounts and the site's programs: for trials by the ten
 * thousand. */
void inspect_here(const struct sysfs *tree, struct sheet *ret_sheet);
