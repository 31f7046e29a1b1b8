/* job.c: settings for all jobs: /etc/nccl.conf (NCCL's manual, Environment Variables). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "service/inspect/collect.h"

#define PATH "/etc/nccl.conf"

/* NCCL_SOCKET_IFNAME: prefixes separated by commas. "=" before them: whole names; "^": all but these. */
static bool means(const char *setting, const char *name)
{
    const bool other = setting[0] == '^';
    const char *at = setting + other;
    const bool whole = *at == '=';

    at += whole;
    while (*at != '\0') {
        const size_t n = strcspn(at, ",");
        if (n > 0 && strncmp(at, name, n) == 0 && (!whole || name[n] == '\0')) {
            return !other;
        }
        at += n + (at[n] == ',');
    }
    return other;
}

static void put_sockets(struct collector *c, const char *setting)
{
    char path[SYSFS_PATH_SIZE], state[32], text[FACT_VALUE_MAX] = "";
    struct names *nets = names_of(c, "/sys/class/net");
    int r = nets->count < 0 ? nets->count : 0;
    size_t used = 0;

    for (int i = 0; r >= 0 && i < nets->count; i++) {
        const char *net = nets->name[i];
        if (strcmp(net, "lo") == 0 || !means(setting, net) ||
            used + SYSFS_NAME_SIZE + 2 > sizeof(text)) {
            continue;
        }
        r = collect_line(c, sysfs_path(path, "/sys/class/net/%s/operstate", net), state,
                         sizeof(state));
        if (r >= 0 && strcmp(state, "up") == 0) {
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used > 0 ? " " : "",
                                     net);
        }
    }
    free(nets);
    if (r < 0) {
        put_error(c, FACT_JOB_SOCKETS, "", r, "/sys/class/net/*/operstate");
    } else {
        put(c, FACT_JOB_SOCKETS, "", used > 0 ? text : "none", PATH);
    }
}

/* NCCL_NET_PLUGIN: a file, or NAME of libnccl-net-NAME.so. */
static void put_plugin(struct collector *c, const char *setting)
{
    static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                          "/usr/lib64", "/usr/lib", "/usr/local/lib"};
    char path[SYSFS_PATH_SIZE], file[160], text[256];
    const bool is_path = setting[0] == '/', is_file = strstr(setting, ".so") != NULL;
    bool there = is_path && sysfs_there(c->tree, setting);

    snprintf(file, sizeof(file), is_file ? "%.120s" : "libnccl-net-%.120s.so", setting);
    for (size_t i = 0; i < ARRAY_COUNT(folders) && !is_path && !there; i++) {
        there = sysfs_there(c->tree, sysfs_path(path, "%s/%s", folders[i], file));
    }
    if (!there && !sysfs_there(c->tree, "/usr")) {
        put_error(c, FACT_JOB_PLUGIN, "", -EIO, "/usr");
        return;
    }
    snprintf(text, sizeof(text), "%s%s", there ? "" : "missing ", is_path ? setting : file);
    put(c, FACT_JOB_PLUGIN, "", text, PATH);
}

/* Lines of KEY=VALUE; # begins a comment. Only NCCL's variables are put into the sheet. */
void collect_job(struct collector *c)
{
    char *cursor = NULL, *sockets = NULL, *plugin = NULL;
    int r = collect_file(c, PATH), count = 0;

    for (char *line; r >= 0 && (line = next_line(c, &cursor)) != NULL;) {
        line += strspn(line, " \t");
        char *value = strchr(line, '=');
        if (line[0] == '#' || line[0] == '\0') {
            continue;
        }
        if (value == NULL || strncmp(line, "NCCL_", 5) != 0) {
            r = value == NULL ? -EBADMSG : r;
            continue;
        }
        *value++ = '\0';
        put(c, FACT_JOB_SETTING, line, value, PATH);
        count++;
        if (strcmp(line, "NCCL_SOCKET_IFNAME") == 0) {
            sockets = strdup(value);
        } else if (strcmp(line, "NCCL_NET_PLUGIN") == 0 && strcmp(value, "none") != 0) {
            plugin = strdup(value);
        }
    }
    if (r < 0 || count == 0) {
        put_error(c, FACT_JOB_SETTING, "", r < 0 ? r : -ENOENT, PATH);
    }
    if (r < 0 || sockets == NULL) {
        put_error(c, FACT_JOB_SOCKETS, "", r < 0 ? r : -ENOENT, PATH);
    } else {
        put_sockets(c, sockets);
    }
    if (r < 0 || plugin == NULL) {
        put_error(c, FACT_JOB_PLUGIN, "", r < 0 ? r : -ENOENT, PATH);
    } else {
        put_plugin(c, plugin);
    }
    free(sockets);
    free(plugin);
}
