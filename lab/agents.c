/* agents.c: files and processes of the lab's agents. */
#include "lab/agents.h"

#include "lab/engine.h"
#include "lab/machine.h"
#include "platform/oscillator/oscillator.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

void lab_host_folder(const struct lab *lab, int host, char ret_folder[LAB_TEXT_SIZE])
{
    snprintf(ret_folder, LAB_TEXT_SIZE, LAB_ROOT "/%s/host%d", lab->name, host);
}

static void write_peers(const struct lab *lab, FILE *f)
{
    const struct scenario_fabric *fabric = &lab->scenario.fabric;
    fprintf(f, "peers:\n");
    for (int h = 0; h < fabric->hosts; h++) {
        for (int n = 0; n < fabric->nics_per_host; n++) {
            char address[LAB_TEXT_SIZE];
            fprintf(f, "  - {id: %d, host: host%d, nic: nic%d, rail: %d, leaf: leaf%d",
                    h * fabric->nics_per_host + n, h, n, n, lab_leaf_declared(lab, h, n));
            if (fabric->ip & IP_V4) {
                lab_address4(h, n, address);
                fprintf(f, ", address: %s", address);
            }
            if (fabric->ip & IP_V6) {
                lab_address6(h, n, address);
                fprintf(f, ", address6: \"%s\"", address);
            }
            fprintf(f, "}\n");
        }
    }
}

static int write_config(const struct lab *lab, int host, const char *controller)
{
    char folder[LAB_TEXT_SIZE];
    char file[LAB_TEXT_SIZE + 32];
    lab_host_folder(lab, host, folder);
    int r = machine_make_folder(folder);
    snprintf(file, sizeof(file), "%s/agent.yaml", folder);
    FILE *f = r == 0 ? fopen(file, "we") : NULL;
    if (f == NULL) {
        return r < 0 ? r : -errno;
    }
    fprintf(f, "host: host%d\nnics: [", host);
    for (int n = 0; n < lab->scenario.fabric.nics_per_host; n++) {
        fprintf(f, "%snic%d", n > 0 ? ", " : "", n);
    }
    fprintf(f, "]\nport: %d\nruntime_dir: %s\n", LAB_AGENT_PORT, folder);
    char program[PATH_MAX];
    lab_program(lab, "foliot", program);
    fprintf(f, "perf: %s\n", program);
    lab_program(lab, "foliot-inspect", program);
    fprintf(f, "inspect: %s\n", program);
    if (lab->machines != NULL) {
        fprintf(f, "inspect_root: %s/host%d\n", lab->machines, host);
    }
    fprintf(f, "routers: " LAB_ROOT "/%s/routers\n", lab->name);
    if (lab->scenario.clocks.edge_limit_ns > 0) {
        fprintf(f, "edge_limit: %" PRId64 "ns\n", lab->scenario.clocks.edge_limit_ns);
    } else if (lab->scenario.clocks.stamps != STAMPS_NIC) {
        /* The value that `foliot doctor` would propose here: edges have 4 to 6 us at rest, more under load. */
        fprintf(f, "edge_limit: 20us\n");
    }
    if (controller != NULL) {
        fprintf(f, "controller: %s\nkey_file: %s/fleet.key\nfleet_file: %s/fleet.yaml\n",
                controller, folder, folder);
    } else {
        fprintf(f, "key_file: " LAB_ROOT "/%s/fleet.key\n", lab->name);
        write_peers(lab, f);
    }
    return fclose(f) == 0 ? 0 : -EIO;
}

static int write_routers(const struct lab *lab)
{
    const struct scenario_fabric *fabric = &lab->scenario.fabric;
    char file[LAB_TEXT_SIZE + 32];
    snprintf(file, sizeof(file), "%s/routers", lab->folder);
    FILE *f = fopen(file, "we");
    if (f == NULL) {
        return -errno;
    }
    fprintf(f, "# address name: the addresses that the fabric's routers answer from\n");
    for (int l = 0; l < fabric->leaves; l++) {
        fprintf(f, "172.16.0.%d leaf%d\nfd00:ffff::%x leaf%d\n", 1 + l, l, (unsigned)(1 + l), l);
    }
    for (int s = 0; s < fabric->spines; s++) {
        fprintf(f, "172.16.1.%d spine%d\nfd00:ffff::1:%x spine%d\n", 1 + s, s, (unsigned)(1 + s),
                s);
    }
    /* A leaf answers from its port's address if its route to the prober has no source address. */
    for (int h = 0; h < fabric->hosts; h++) {
        for (int n = 0; n < fabric->nics_per_host; n++) {
            int l = lab_leaf_of(lab, h, n);
            fprintf(f, "10.%d.%d.1 leaf%d\nfd00:%x:%x::1 leaf%d\n", h, n, l, (unsigned)h,
                    (unsigned)n, l);
        }
    }
    return fclose(f) == 0 ? 0 : -EIO;
}

static int write_key(const struct lab *lab)
{
    char file[LAB_TEXT_SIZE + 32];
    unsigned char key[16];
    char text[128];
    if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key)) {
        return -EIO;
    }
    int used = snprintf(text, sizeof(text), "key 1 ");
    for (size_t i = 0; i < sizeof(key); i++) {
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%02x", key[i]);
    }
    snprintf(text + used, sizeof(text) - (size_t)used, " 2025-01-01T00:00:00Z\n");
    snprintf(file, sizeof(file), "%s/fleet.key", lab->folder);
    int r = machine_write_file(file, text);
    return r == 0 && chmod(file, 0600) < 0 ? -errno : r;
}

int lab_agents_write(const struct lab *lab, const char *controller)
{
    int r = write_key(lab);
    if (r == 0) {
        r = write_routers(lab);
    }
    for (int h = 0; h < lab->scenario.fabric.hosts && r == 0; h++) {
        r = write_config(lab, h, controller);
    }
    return r;
}

int lab_host_enter(const struct lab *lab, int host)
{
    char space[64];
    char folder[LAB_TEXT_SIZE];
    char file[LAB_TEXT_SIZE];
    char spec[LAB_TEXT_SIZE + 32];
    lab_space(lab, NODE_HOST, host, space);
    lab_host_folder(lab, host, folder);
    lab_oscillators_file(lab, file);
    snprintf(spec, sizeof(spec), "%s:host%d", file, host);
    setenv("FOLIOT_LAB", lab->name, 1);
    setenv("FOLIOT_RUNTIME_DIR", folder, 1);
    setenv(OSCILLATOR_ENV, spec, 1);
    int r = machine_enter(space);
    r = r == 0 ? lab_engines_view(lab, host) : r;
    snprintf(spec, sizeof(spec), "host%d", host);
    return r == 0 && (unshare(CLONE_NEWUTS) < 0 || sethostname(spec, strlen(spec)) < 0) ? -errno
                                                                                        : r;
}

pid_t lab_agent_pid(const struct lab *lab, int host)
{
    char folder[LAB_TEXT_SIZE];
    char file[LAB_TEXT_SIZE + 32];
    char space[64];
    int pid = 0;
    lab_host_folder(lab, host, folder);
    snprintf(file, sizeof(file), "%s/agent.pid", folder);
    FILE *f = fopen(file, "re");
    if (f == NULL) {
        return 0;
    }
    if (fscanf(f, "%d", &pid) != 1) {
        pid = 0;
    }
    fclose(f);
    /* Another process may have the number by now. The agent's process is in the host's namespace. */
    struct stat space_st;
    struct stat process_st;
    lab_space(lab, NODE_HOST, host, space);
    snprintf(file, sizeof(file), "/run/netns/%s", space);
    if (pid <= 0 || stat(file, &space_st) < 0) {
        return 0;
    }
    snprintf(file, sizeof(file), "/proc/%d/ns/net", pid);
    return stat(file, &process_st) == 0 && process_st.st_ino == space_st.st_ino ? pid : 0;
}

int lab_agent_signal(const struct lab *lab, int host, int signal)
{
    pid_t pid = lab_agent_pid(lab, host);
    return pid == 0 ? -ESRCH : kill(pid, signal) < 0 ? -errno : 0;
}

int lab_agents_program(const struct lab *lab, const char *program)
{
    char file[LAB_TEXT_SIZE + 32];
    snprintf(file, sizeof(file), "%s/agent-program", lab->folder);
    return machine_write_file(file, program);
}

/* The agent's program: the one of lab_agents_program(), else the one next to this program, in the build's src/app, or in PATH. */
void lab_program(const struct lab *lab, const char *name, char ret_program[PATH_MAX])
{
    static const char *const place[] = {"", "../src/app/"};
    char self[PATH_MAX];
    snprintf(self, sizeof(self), "%s/agent-program", lab->folder);
    FILE *f = strcmp(name, "foliot-agent") == 0 ? fopen(self, "re") : NULL;
    if (f != NULL) {
        char *line = fgets(ret_program, PATH_MAX, f);
        fclose(f);
        if (line != NULL) {
            return;
        }
    }
    ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (size > 0) {
        self[size] = '\0';
        const char *folder = dirname(self);
        for (size_t i = 0; i < ARRAY_COUNT(place); i++) {
            if (snprintf(ret_program, PATH_MAX, "%s/%s%s", folder, place[i], name) < PATH_MAX &&
                access(ret_program, X_OK) == 0) {
                return;
            }
        }
    }
    snprintf(ret_program, PATH_MAX, "%s", name);
}

struct agent_place {
    const struct lab *lab;
    int host;
    const char *pid_file;
};

static int enter_agent(const void *data)
{
    const struct agent_place *place = (const struct agent_place *)data;
    char text[32];
    const int r = lab_host_enter(place->lab, place->host);
    snprintf(text, sizeof(text), "%d\n", (int)getpid());
    return r < 0 ? r : machine_write_file(place->pid_file, text);
}

int lab_agent_start(const struct lab *lab, int host)
{
    char program[PATH_MAX], folder[LAB_TEXT_SIZE];
    char config[LAB_TEXT_SIZE + 32], log[LAB_TEXT_SIZE + 32], pid_file[LAB_TEXT_SIZE + 32];
    if (lab_agent_pid(lab, host) != 0) {
        return -EALREADY;
    }
    lab_program(lab, "foliot-agent", program);
    lab_host_folder(lab, host, folder);
    snprintf(config, sizeof(config), "%s/agent.yaml", folder);
    snprintf(log, sizeof(log), "%s/agent.log", folder);
    snprintf(pid_file, sizeof(pid_file), "%s/agent.pid", folder);
    const int output = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (output < 0) {
        return -errno;
    }
    const struct agent_place place = {lab, host, pid_file};
    const char *argv[] = {program, "--config", config, NULL};
    const int r = machine_spawn(&(struct machine_task){
        .argv = argv, .enter = enter_agent, .data = &place, .output = &output, .stays = true});
    close(output);
    for (int i = 0; r == 0 && i < 200 && lab_agent_pid(lab, host) == 0; i++) {
        usleep(5000);
    }
    return r < 0 ? r : lab_agent_pid(lab, host) == 0 ? -ECHILD : 0;
}
