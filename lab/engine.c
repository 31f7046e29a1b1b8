/* engine.c: see engine.h. */
#include "lab/engine.h"

#include "lab/machine.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROCE_PORT    4791
#define TABLE_FIRST  1000 /* number of the first table of routes; each NIC has one */
#define TABLE_HOST   16   /* most NICs of a host */
#define DEVICES      "/class/infiniband"
#define CHARACTERS   "/class/infiniband_verbs"
#define GIDS_NAMED   4 /* entries of a GID table that soft-RoCE sets: link-local, IPv4, IPv6 */
#define FILTER_FIRST 1

struct character {
    char name[64]; /* "uverbs3" */
    dev_t number;
};

void lab_engine_name(int host, int nic, char ret_name[IF_NAMESIZE])
{
    snprintf(ret_name, IF_NAMESIZE, "h%dn%d", host & 255, nic & 255);
}

static void each_nic(const struct lab *lab, FILE *to,
                     void (*line)(const struct lab *lab, int host, int nic, FILE *to))
{
    for (int h = 0; h < lab->scenario.fabric.hosts; h++) {
        for (int n = 0; n < lab->scenario.fabric.nics_per_host; n++) {
            line(lab, h, n, to);
        }
    }
}

/* ---- commands for ip and rdma ---- */

static int table_of(int host, int nic)
{
    return TABLE_FIRST + host * TABLE_HOST + nic;
}

/* The engine has the NIC's hardware address, because it gets the NIC's packets. The leaf's address is set, not asked for: the
 * filters stop ARP, and the kernel's RDMA core takes a second to connect if an answer comes as fast as here. */
static void link_lines(const struct lab *lab, int host, int nic, FILE *ip)
{
    const struct lab_port port = lab_nic_port(lab, host, nic);
    char name[IF_NAMESIZE], mac[LAB_MAC_SIZE], leaf_mac[LAB_MAC_SIZE];
    lab_engine_name(host, nic, name);
    lab_mac(host, nic, false, mac);
    lab_mac(host, nic, true, leaf_mac);
    fprintf(ip, "link add %s address %s type veth peer name rdma%d netns %s\n", name, mac, nic,
            port.space);
    fprintf(ip, "address add 10.%d.%d.2/30 dev %s\nlink set %s up\n", host, nic, name, name);
    fprintf(ip, "neigh replace 10.%d.%d.1 lladdr %s dev %s nud permanent\n", host, nic, leaf_mac,
            name);
    fprintf(ip, "route replace default via 10.%d.%d.1 dev %s src 10.%d.%d.2 table %d\n", host, nic,
            name, host, nic, table_of(host, nic));
}

void lab_engines_links(const struct lab *lab, FILE *ip)
{
    each_nic(lab, ip, link_lines);
}

static void rule_lines(const struct lab *lab, int host, int nic, FILE *ip)
{
    char name[IF_NAMESIZE];
    (void)lab;
    lab_engine_name(host, nic, name);
    fprintf(ip, "rule add pref 20 oif %s lookup %d\n", name, table_of(host, nic));
    fprintf(ip, "rule add pref 21 iif lo from 10.%d.%d.2 lookup %d\n", host, nic,
            table_of(host, nic));
}

/* Packets that came in by a wire may be for this machine. Packets of an engine leave by the engine's wire. The local table
 * comes after both rules; elsewhere it is the first. */
void lab_engines_rules(const struct lab *lab, FILE *ip)
{
    fputs("rule add pref 10 not iif lo lookup local\n", ip);
    each_nic(lab, ip, rule_lines);
    fputs("rule add pref 30 lookup local\nrule del pref 0\n", ip);
}

static void device_line(const struct lab *lab, int host, int nic, FILE *rdma)
{
    char name[IF_NAMESIZE];
    (void)lab;
    lab_engine_name(host, nic, name);
    fprintf(rdma, "link add %s type rxe netdev %s\n", name, name);
}

void lab_engines_devices(const struct lab *lab, FILE *rdma)
{
    each_nic(lab, rdma, device_line);
}

/* ---- up and down ---- */

static int run_list(const struct lab *lab, const char *program,
                    void (*list)(const struct lab *lab, FILE *to))
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (to == NULL) {
        return -ENOMEM;
    }
    list(lab, to);
    fclose(to);
    const char *argv[] = {program, "-b", "-", NULL};
    const int r = machine_run(argv, text);
    free(text);
    return r;
}

/* Packets that come in at `from` leave at `to`. */
static int redirect(const char *from, const char *to, uint16_t port)
{
    const struct machine_filter filter = {
        .match = {.is_transport_only = true, .destination_port = port},
        .probability = 1.0,
        .verdict = VERDICT_REDIRECT,
        .redirect_index = if_nametoindex(to)};
    return filter.redirect_index == 0
               ? -ENODEV
               : machine_filter_add(from, HOOK_INGRESS, FILTER_FIRST, &filter);
}

static int wire_nic(int nic)
{
    char interface[IF_NAMESIZE], engine[IF_NAMESIZE], text[256];
    snprintf(interface, sizeof(interface), "nic%d", nic);
    snprintf(engine, sizeof(engine), "rdma%d", nic);
    (void)machine_sysctl("1", "net/ipv6/conf/%s/disable_ipv6", engine);
    const char *const links[] = {"ip", "link", "set", engine, "up", "arp", "off", NULL};
    const char *const hooks[] = {"tc", "-batch", "-", NULL};
    snprintf(text, sizeof(text), "qdisc add dev %s clsact\nqdisc add dev %s clsact\n", interface,
             engine);
    int r = machine_run(links, NULL);
    r = r == 0 ? machine_run(hooks, text) : r;
    r = r == 0 ? redirect(interface, engine, ROCE_PORT) : r;
    return r == 0 ? redirect(engine, interface, 0) : r;
}

/* Runs in its own process, because it enters the host's namespace. */
static int wire_host(const struct lab *lab, int host)
{
    char space[64];
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        lab_space(lab, NODE_HOST, host, space);
        int r = machine_enter_network(space);
        for (int n = 0; n < lab->scenario.fabric.nics_per_host && r == 0; n++) {
            r = wire_nic(n);
        }
        _exit(r == 0 ? 0 : -r);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) < 0) {
        return -errno;
    }
    return !WIFEXITED(status) ? -EIO : -WEXITSTATUS(status);
}

/* The folder that keeps the initial namespace's /sys, for the views of the lab's hosts. */
static void sys_folder(const char *lab, char ret_folder[LAB_TEXT_SIZE])
{
    snprintf(ret_folder, LAB_TEXT_SIZE, "/run/foliot-engines-%s", lab);
}

static int keep_sys(const struct lab *lab)
{
    char folder[LAB_TEXT_SIZE];
    sys_folder(lab->name, folder);
    const int r = machine_make_folder(folder);
    return r == 0 && mount("/sys", folder, NULL, MS_BIND, NULL) < 0 ? -errno : r;
}

/* A NIC gets packets of another NIC, and this namespace has the sender's address, too. The kernel must accept them. */
static void accept_own(void)
{
    static const char *const places[] = {"all", "default"};
    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        (void)machine_sysctl("0", "net/ipv4/conf/%s/rp_filter", places[i]);
        (void)machine_sysctl("1", "net/ipv4/conf/%s/accept_local", places[i]);
    }
}

int lab_engines_up(const struct lab *lab)
{
    const char *step = "the machine's /sys can't be kept for its hosts";
    int r = keep_sys(lab);
    accept_own();
    if (r == 0) {
        step = "its interfaces can't be made";
        r = run_list(lab, "ip", lab_engines_links);
    }
    for (int h = 0; h < lab->scenario.fabric.hosts && r == 0; h++) {
        step = "its hosts' NICs can't be joined with it";
        r = wire_host(lab, h);
    }
    if (r == 0) {
        step = "its routing rules can't be set";
        r = run_list(lab, "ip", lab_engines_rules);
    }
    if (r == 0) {
        step = "its RDMA devices can't be made";
        r = run_list(lab, "rdma", lab_engines_devices);
    }
    if (r < 0) {
        fprintf(stderr, "foliot lab: soft-RoCE: %s: %s\n", step, strerror(-r));
    }
    return r;
}

static void list_links(const char *sys, FILE *ip)
{
    char path[LAB_TEXT_SIZE + 32];
    int host, nic;
    snprintf(path, sizeof(path), "%s" DEVICES, sys);
    DIR *folder = opendir(path);
    for (struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;) {
        if (sscanf(e->d_name, "h%dn%d", &host, &nic) == 2) {
            fprintf(ip, "link delete %s\n", e->d_name);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

int lab_engines_down(const char *name)
{
    const char *const argv[] = {"ip", "-force", "-b", "-", NULL};
    char folder[LAB_TEXT_SIZE], *text = NULL;
    size_t size = 0;
    sys_folder(name, folder);
    if (access(folder, F_OK) < 0) {
        return 0;
    }
    FILE *ip = open_memstream(&text, &size);
    if (ip == NULL) {
        return -ENOMEM;
    }
    list_links(folder, ip);
    fputs("rule add pref 0 lookup local\nrule flush pref 10\nrule flush pref 20\n"
          "rule flush pref 21\nrule flush pref 30\n",
          ip);
    fclose(ip);
    int r = machine_run(argv, text);
    free(text);
    (void)umount2(folder, MNT_DETACH);
    return rmdir(folder) < 0 ? -errno : r;
}

/* ---- the view of a host ---- */

/* Entries of /sys/class are links to devices. This one leads to the device in the /sys that was kept, because a namespace's
 * own /sys has no counters of RDMA ports. */
static int link_to_device(const char *sys, const char *folder, const char *name)
{
    char from[PATH_MAX], to[PATH_MAX], at[PATH_MAX];
    snprintf(from, sizeof(from), "%s%s/%s", sys, folder, name);
    snprintf(at, sizeof(at), "/sys%s/%s", folder, name);
    return realpath(from, to) == NULL || symlink(to, at) < 0 ? -errno : 0;
}

/* The kernel reports the name of the engine's interface in the initial namespace. The host must see its own NIC's name. */
static int name_interface(const struct lab *lab, int host, int nic, const char *sys)
{
    char file[LAB_TEXT_SIZE + 64], name[IF_NAMESIZE], line[IF_NAMESIZE + 8], at[PATH_MAX];
    lab_engine_name(host, nic, name);
    snprintf(file, sizeof(file), "%s/host%d/nic%d.name", lab->folder, host, nic);
    snprintf(line, sizeof(line), "nic%d\n", nic);
    int r = access(file, F_OK) == 0 ? 0 : machine_write_file(file, line);
    for (int i = 0; i < GIDS_NAMED && r == 0; i++) {
        snprintf(at, sizeof(at), "%s" DEVICES "/%s/ports/1/gid_attrs/ndevs/%d", sys, name, i);
        r = mount(file, at, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
    }
    return r;
}

/* The character device of an RDMA device. */
static int find_character(const char *sys, const char *device, struct character *ret)
{
    char path[PATH_MAX], line[64];
    snprintf(path, sizeof(path), "%s" CHARACTERS, sys);
    DIR *folder = opendir(path);
    int r = folder == NULL ? -errno : -ENODEV;
    for (struct dirent *e; r == -ENODEV && (e = readdir(folder)) != NULL;) {
        struct stat is;
        snprintf(path, sizeof(path), "%s" CHARACTERS "/%.60s/ibdev", sys, e->d_name);
        FILE *f = strncmp(e->d_name, "uverbs", 6) == 0 ? fopen(path, "re") : NULL;
        const bool is_it = f != NULL && fscanf(f, "%63s", line) == 1 && strcmp(line, device) == 0;
        if (f != NULL) {
            fclose(f);
        }
        snprintf(path, sizeof(path), "/dev/infiniband/%.60s", e->d_name);
        if (is_it && stat(path, &is) == 0) {
            snprintf(ret->name, sizeof(ret->name), "%.60s", e->d_name);
            ret->number = is.st_rdev;
            r = 0;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return r;
}

static int hide(const char *folder)
{
    return mount("foliot-lab", folder, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755") < 0 ? -errno : 0;
}

static int show_device(const struct lab *lab, int host, int nic, const struct character *character)
{
    char sys[LAB_TEXT_SIZE], device[IF_NAMESIZE], at[PATH_MAX];
    sys_folder(lab->name, sys);
    lab_engine_name(host, nic, device);
    int r = link_to_device(sys, DEVICES, device);
    r = r == 0 ? link_to_device(sys, CHARACTERS, character->name) : r;
    r = r == 0 ? name_interface(lab, host, nic, sys) : r;
    snprintf(at, sizeof(at), "/dev/infiniband/%s", character->name);
    return r == 0 && mknod(at, S_IFCHR | 0600, character->number) < 0 ? -errno : r;
}

int lab_engines_view(const struct lab *lab, int host)
{
    static const char *const folders[] = {"/sys" DEVICES, "/sys" CHARACTERS, "/dev/infiniband"};
    const int nics = lab->scenario.fabric.nics_per_host;
    struct character character[TABLE_HOST];
    char sys[LAB_TEXT_SIZE], device[IF_NAMESIZE];
    int r = 0;
    sys_folder(lab->name, sys);
    if (!lab->has_engines) {
        return 0;
    }
    for (int n = 0; n < nics && r == 0; n++) {
        lab_engine_name(host, n, device);
        r = find_character(sys, device, &character[n]);
    }
    for (size_t i = 0; i < ARRAY_COUNT(folders) && r == 0; i++) {
        r = hide(folders[i]);
    }
    r = r == 0 ? link_to_device(sys, CHARACTERS, "abi_version") : r;
    for (int n = 0; n < nics && r == 0; n++) {
        r = show_device(lab, host, n, &character[n]);
    }
    return r;
}
