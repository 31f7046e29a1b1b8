/* roce.c: see roce.h. */
#include "lab/roce.h"

#include "base/time.h"
#include "lab/engine.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENT_MAX 256
#define MACHINES_OWN "/run/roce-vm/payload" /* only the machine has this folder */

bool lab_roce_is_inside(void)
{
    const char *inside = getenv("ROCE_VM");
    return inside != NULL && strcmp(inside, "1") == 0 && access(MACHINES_OWN, F_OK) == 0;
}

/* ---- its limits ---- */

static const char *fault_cannot(const struct scenario_fault *f)
{
    return f->kind == FAULT_SUSPEND
               ? "a suspend: the host's RDMA devices and its job would stay awake"
               : NULL;
}

static bool is_figure_of_speed(const char *what)
{
    return strncmp(what, "cost.", 5) == 0 || strncmp(what, "harm.", 5) == 0;
}

bool lab_roce_can(const struct scenario *s, char ret_why[LAB_ROCE_WHY_SIZE])
{
    const struct scenario_fabric *f = &s->fabric;
    ret_why[0] = '\0';
    if (f->hosts * f->nics_per_host > LAB_ENGINE_MAX) {
        snprintf(ret_why, LAB_ROCE_WHY_SIZE, "%d NICs: soft-RoCE's machine has at most %d",
                 f->hosts * f->nics_per_host, LAB_ENGINE_MAX);
    }
    if (f->hosts < 2) {
        snprintf(ret_why, LAB_ROCE_WHY_SIZE, "one host: a job needs two");
    }
    if ((f->ip & IP_V4) == 0) {
        snprintf(ret_why, LAB_ROCE_WHY_SIZE, "ip: 6: RDMA devices have IPv4 addresses there");
    }
    for (int i = 0; i < s->traffic_count; i++) {
        if (s->traffic[i].greedy) {
            snprintf(ret_why, LAB_ROCE_WHY_SIZE,
                     "greedy traffic: the machine's processors are emulated, and the traffic would "
                     "use all of them");
        }
    }
    for (int i = 0; i < s->fault_count; i++) {
        const char *cannot = fault_cannot(&s->fault[i]);
        if (cannot != NULL) {
            snprintf(ret_why, LAB_ROCE_WHY_SIZE, "fault %s in line %d: %s",
                     scenario_fault_name(s->fault[i].kind), s->fault[i].line, cannot);
        }
    }
    for (int i = 0; i < s->bound_count; i++) {
        if (is_figure_of_speed(s->bound[i].what) && (s->bound[i].world & SCENARIO_LAB) != 0) {
            snprintf(ret_why, LAB_ROCE_WHY_SIZE,
                     "bound %s in line %d: the machine's processors are emulated, so their figures "
                     "mean nothing",
                     s->bound[i].what, s->bound[i].line);
        }
    }
    return ret_why[0] == '\0';
}

/* ---- handing the command over ---- */

#define BOOT_S 600
#define SECONDS_OF_ONE                                                                             \
    40 /* seconds of this machine for one second inside, while other work takes most processors */

int lab_roce_patience_s(int64_t duration_ns)
{
    return BOOT_S + (int)(duration_ns / NS_PER_S) * SECONDS_OF_ONE;
}

/* Finds the script: in a checkout of the source next to the build's folder, or in share of an installation. */
static bool find_script(const char *name, char ret_script[PATH_MAX], char ret_self[PATH_MAX])
{
    static const char *const place[] = {"../../../lab/roce-vm", "../../lab/roce-vm",
                                        "../share/foliot/roce-vm"};
    char copy[PATH_MAX];
    const ssize_t size = readlink("/proc/self/exe", ret_self, PATH_MAX - 1);
    if (size <= 0) {
        return false;
    }
    ret_self[size] = '\0';
    memcpy(copy, ret_self, (size_t)size + 1);
    const char *folder = dirname(copy);
    for (size_t i = 0; i < ARRAY_COUNT(place); i++) {
        if (snprintf(ret_script, PATH_MAX, "%s/%s/%s", folder, place[i], name) < PATH_MAX &&
            access(ret_script, X_OK) == 0) {
            return true;
        }
    }
    fprintf(
        stderr,
        "foliot lab: no %s in lab/roce-vm or share/foliot/roce-vm beside %s: expected a checkout "
        "of the source or an installation\n",
        name, ret_self);
    return false;
}

bool lab_roce_folder(const char *name, char ret_folder[PATH_MAX])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const bool has_cache = cache != NULL && cache[0] == '/';
    if (!has_cache && home == NULL) {
        return false;
    }
    return snprintf(ret_folder, PATH_MAX, "%s%s/roce-vm/labs/%s", has_cache ? cache : home,
                    has_cache ? "" : "/.cache", name) < PATH_MAX;
}

bool lab_roce_is_there(const char *name)
{
    char folder[PATH_MAX];
    return !lab_roce_is_inside() && lab_roce_folder(name, folder) && access(folder, F_OK) == 0;
}

/* `before`: the lab's command line, as it was typed. */
static int hand_over(const char *script, const char *const *before, const char *name, int argc,
                     char **argv)
{
    const char *words[ARGUMENT_MAX];
    int count = 0;
    words[count++] = script;
    for (; *before != NULL; before++) {
        words[count++] = *before;
    }
    if (count + argc + 4 > ARGUMENT_MAX) {
        fprintf(stderr, "foliot lab: more than %d arguments\n", ARGUMENT_MAX);
        return 2;
    }
    if (name != NULL) {
        words[count++] = "lab";
        words[count++] = "--name";
        words[count++] = name;
    }
    memcpy(&words[count], argv, (size_t)argc * sizeof(*argv));
    words[count + argc] = NULL;
    fflush(NULL);
    execv(script, (char *const *)words);
    fprintf(stderr, "foliot lab: %s: %s\n", script, strerror(errno));
    return 2;
}

int lab_roce_run(const char *name, int64_t duration_ns, int argc, char **argv)
{
    char script[PATH_MAX], self[PATH_MAX], patience[16];
    if (!find_script("run", script, self)) {
        return 2;
    }
    snprintf(patience, sizeof(patience), "%d", lab_roce_patience_s(duration_ns));
    const char *const before[] = {"--virtual-time", "--timeout", patience, "--", self, NULL};
    return hand_over(script, before, name, argc, argv);
}

static int meet(const char *verb, const char *name, bool is_lab, int argc, char **argv)
{
    char script[PATH_MAX], self[PATH_MAX], folder[PATH_MAX];
    if (!find_script("machine", script, self)) {
        return 2;
    }
    if (!lab_roce_folder(name, folder)) {
        fputs("foliot lab: expected HOME or XDG_CACHE_HOME: a lab with --roce is kept there\n",
              stderr);
        return 2;
    }
    const char *const before[] = {verb, folder, is_lab ? self : NULL, NULL};
    return hand_over(script, before, is_lab ? name : NULL, argc, argv);
}

int lab_roce_up(const char *name, int argc, char **argv)
{
    return meet("up", name, true, argc, argv);
}

int lab_roce_ask(const char *name, int argc, char **argv)
{
    return meet("ask", name, true, argc, argv);
}

int lab_roce_down(const char *name)
{
    return meet("down", name, false, 0, NULL);
}
