/* inspect.h: reads one machine once: all facts of core/audit/facts.h into a sheet.
 *
 * Each collector runs in its own child with a deadline; all run at once. A child that misses its deadline is killed, and its
 * facts are `timeout`. A child that can't be killed (it hangs in the kernel) is recorded in the run folder. While it lives no
 * second child of that collector is started, and its facts are `stuck`. One collector's failure does not affect the other
 * collectors' facts. */
#pragma once
#include "core/audit/fact.h"
#include "platform/sysfs/sysfs.h"
#include "service/audit/sheet.h"

struct inspect_config {
    const char *root;         /* a tree that looks like "/"; NULL: this machine */
    const char *run_folder;   /* where hanging children are recorded; NULL: nowhere */
    const char *checks;       /* folder of the site's programs; NULL: none are run */
    int deadline_ms;          /* of a collector */
    int mount_deadline_ms;    /* for one mount to answer */
    int site_deadline_ms;     /* for all programs together: they run at once */
    const char *gpu_library;  /* instead of the usual one; NULL: that one, and none for a root */
    const char *agent_socket; /* instead of the usual one; NULL: that one, and none for a root */
    const char *capture;      /* folder for the tree of a capture (capture.h); NULL: none */
    const char *slow;         /* for tests: this collector never ends; NULL: none */
};
extern const struct inspect_config inspect_usual;

/* 0, or -errno if not even a child could be started. */
int inspect_host(const struct inspect_config *config, struct sheet *ret_sheet);
/* The same in this process, one collector after another, without mounts and the site's programs. It is for tens of thousands
 * of trials. */
void inspect_here(const struct sysfs *tree, struct sheet *ret_sheet);
