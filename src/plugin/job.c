/* job.c: finds the job of this process from its launcher's environment variables. The result is only for people: nothing is
 * decided by it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/plugin.h"

/* The environment is the application's: its strings may change. */
static const char *keep(const char *value, char *kept, size_t size)
{
    snprintf(kept, size, "%s", value);
    return kept;
}

/* The folder that the host's agent reads; if that isn't available, a container's own /dev/shm. */
static const char *folder(void)
{
    static char runtime[256], kept[256];
    const char *wanted = getenv("FOLIOT_JOB_DIR");
    const char *agents = getenv("FOLIOT_RUNTIME_DIR");

    if (wanted != NULL) {
        return wanted[0] != 0 ? keep(wanted, kept, sizeof(kept)) : NULL;
    }
    snprintf(runtime, sizeof(runtime), "%s/jobs",
             agents != NULL && agents[0] != 0 ? agents : "/run/foliot");
    return access(runtime, W_OK) == 0 ? runtime : "/dev/shm";
}

/* Slurm's number, the value in the pod's template (FOLIOT_JOB or JOB_NAME by the downward API), torchrun's id, or MPI's name
 * space; else the address where torch's ranks meet, which all ranks have in common, too. */
static const char *name(void)
{
    static const char *const variables[] = {"FOLIOT_JOB", "SLURM_JOB_ID", "JOB_NAME",
                                            "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE"};
    static char meeting[64], kept[256];
    const char *address = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");

    for (size_t i = 0; i < ARRAY_COUNT(variables); i++) {
        const char *value = getenv(variables[i]);
        /* torchrun's default is "none" */
        if (value != NULL && value[0] != 0 && strcmp(value, "none") != 0) {
            return keep(value, kept, sizeof(kept));
        }
    }
    if (address == NULL || address[0] == 0) {
        return NULL;
    }
    snprintf(meeting, sizeof(meeting), "%s:%s", address, port != NULL ? port : "");
    return meeting;
}

static bool number(const char *variable, uint32_t *ret)
{
    const char *value = getenv(variable);
    char *end;

    if (value == NULL || value[0] < '0' || value[0] > '9') {
        return false;
    }
    unsigned long number = strtoul(value, &end, 10);
    if (*end != 0 || number > INT32_MAX) {
        return false;
    }
    *ret = (uint32_t)number;
    return true;
}

struct job_words job_words(void)
{
    static const struct {
        const char *rank, *ranks;
    } variables[] = {
        {"RANK", "WORLD_SIZE"},
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        {"PMI_RANK", "PMI_SIZE"},
        {"SLURM_PROCID", "SLURM_NTASKS"},
    };
    struct job_words words = {.folder = folder(), .name = name()};

    for (size_t i = 0; i < ARRAY_COUNT(variables); i++) {
        uint32_t rank, ranks;
        if (number(variables[i].rank, &rank) && number(variables[i].ranks, &ranks) &&
            rank < ranks) {
            words.rank = rank;
            words.ranks = ranks;
            break;
        }
    }
    return words;
}
