/* lab.c: a lab as a whole: its description, how it is brought up, and how it is found by its name. */
#include "lab/lab.h"

#include "lab/agents.h"
#include "lab/control.h"
#include "lab/engine.h"
#include "lab/machine.h"
#include "platform/config/config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int describe_check(const struct lab *lab)
{
    const struct scenario_fabric *f = &lab->scenario.fabric;
    const char *wrong = f->hosts > LAB_HOST_MAX           ? "hosts: at most 200"
                        : f->nics_per_host > 16           ? "nics_per_host: at most 16"
                        : f->leaves > LAB_SWITCH_MAX      ? "leaves: at most 62"
                        : f->spines > LAB_SWITCH_MAX      ? "spines: at most 62"
                        : f->network != NETWORK_FABRIC    ? "network: fabric"
                        : f->spines == 0 && f->leaves > 1 ? "spines: at least 1 between leaves"
                                                          : NULL;
    if (wrong != NULL) {
        fprintf(stderr, "foliot lab: this machine's lab expects %s\n", wrong);
        return -EINVAL;
    }
    return 0;
}

static void lab_name(struct lab *lab, const char *name)
{
    snprintf(lab->name, sizeof(lab->name), "%s", name);
    snprintf(lab->folder, sizeof(lab->folder), LAB_ROOT "/%s", name);
}

int lab_describe(struct lab *lab, const char *name, const char *file)
{
    lab_name(lab, name);
    scenario_init(&lab->scenario);
    if (file != NULL) {
        struct config_error error;
        int r = scenario_load(file, &lab->scenario, &error);
        if (r < 0) {
            fprintf(stderr, "foliot lab: %s\n", error.text);
            return r;
        }
    }
    return describe_check(lab);
}

/* Saves the description as it is in memory. Only the same version of the program reads it. */
static int save(const struct lab *lab)
{
    char file[LAB_TEXT_SIZE + 32];
    snprintf(file, sizeof(file), "%s/scenario", lab->folder);
    FILE *f = fopen(file, "we");
    if (f == NULL) {
        return -errno;
    }
    size_t n = fwrite(&lab->scenario, sizeof(lab->scenario), 1, f);
    n += fwrite(&lab->has_engines, sizeof(lab->has_engines), 1, f);
    return fclose(f) == 0 && n == 2 ? 0 : -EIO;
}

int lab_open(struct lab *lab, const char *name)
{
    char file[LAB_TEXT_SIZE + 32];
    lab_name(lab, name);
    snprintf(file, sizeof(file), "%s/scenario", lab->folder);
    FILE *f = fopen(file, "re");
    if (f == NULL) {
        return -errno;
    }
    size_t n = fread(&lab->scenario, sizeof(lab->scenario), 1, f);
    n += fread(&lab->has_engines, sizeof(lab->has_engines), 1, f);
    bool is_end = fgetc(f) == EOF;
    fclose(f);
    return n == 2 && is_end ? 0 : -EPROTO;
}

static void visit_count(const char *space, void *data)
{
    (void)space;
    ++*(int *)data;
}

int lab_space_count(const char *name)
{
    char prefix[64];
    int count = 0;
    snprintf(prefix, sizeof(prefix), "foliot-%s-", name);
    machine_each_space(prefix, visit_count, &count);
    return count;
}

bool lab_is_there(const char *name)
{
    char folder[LAB_TEXT_SIZE];
    snprintf(folder, sizeof(folder), LAB_ROOT "/%s", name);
    return lab_space_count(name) > 0 || access(folder, F_OK) == 0;
}

static int tell_start(const struct lab *lab, int host, int r)
{
    if (r < 0) {
        fprintf(stderr, "foliot lab: host%d: its agent didn't start: see %s/host%d/agent.log\n",
                host, lab->folder, host);
    }
    return r;
}

/* An agent that ends at once may still have been there at the first look. So each is looked for again when all have been
 * started. */
static int start_agents(const struct lab *lab)
{
    const int hosts = lab->scenario.fabric.hosts;
    int r = 0;
    for (int h = 0; h < hosts && r == 0; h++) {
        r = tell_start(lab, h, lab_agent_start(lab, h));
    }
    for (int h = 0; h < hosts && r == 0; h++) {
        r = tell_start(lab, h, lab_agent_pid(lab, h) == 0 ? -ECHILD : 0);
    }
    return r;
}

int lab_bring_up(const struct lab *lab, bool has_agents, const char *program, int api_port)
{
    const char *step = "expected a folder that can be made";
    int r = machine_make_folder(LAB_ROOT);
    r = r == 0 ? machine_make_folder(lab->folder) : r;
    if (r == 0) {
        step = "the scenario can't be written there";
        r = save(lab);
    }
    if (r < 0) {
        fprintf(stderr, "foliot lab: %s: %s: %s\n", lab->folder, step, strerror(-r));
        return r;
    }
    r = lab_fabric_up(lab);
    if (r == 0 && lab->has_engines) {
        r = lab_engines_up(lab);
    }
    if (r == 0 && (r = lab_oscillators_create(lab)) < 0) {
        fprintf(stderr, "foliot lab: oscillators: %s\n", strerror(-r));
    }
    if (r == 0 && (r = lab_agents_write(lab, api_port != 0 ? LAB_CONTROLLER : NULL)) < 0) {
        fprintf(stderr, "foliot lab: agent files: %s\n", strerror(-r));
    }
    if (r == 0 && program != NULL && (r = lab_agents_program(lab, program)) < 0) {
        fprintf(stderr, "foliot lab: %s: %s\n", program, strerror(-r));
    }
    if (r == 0 && api_port != 0) {
        r = lab_control_up(lab, api_port);
    }
    if (r == 0 && has_agents) {
        r = start_agents(lab);
    }
    return r;
}
