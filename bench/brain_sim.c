/* brain_sim.c: the fleet's brain over simulated days of a large fleet (sim/fleet_world.h), and over faults of the fabric with
 * the inquiry and alerts on (sim/incident_world.h). It counts wrong, repeated and missing reports, and the cost. It also
 * checks that a recording of such a fleet replays bit for bit.
 * usage: brain_sim [HOSTS SECONDS SEEDS [HOSTS SECONDS SEEDS of the second [HOSTS SECONDS of the recording]]] */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "now.h"
#include "report.h"
#include "service/record/brain_record.h"
#include "sim/fleet_world.h"
#include "sim/incident_world.h"

/* Faults of the fabric: each must give one incident, with the fault's name. */
static void play_incidents(struct report *report, int argc, char **argv)
{
    const uint32_t hosts = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 64,
                   seconds = argc > 5 ? (uint32_t)strtoul(argv[5], NULL, 10) : 400,
                   seeds = argc > 6 ? (uint32_t)strtoul(argv[6], NULL, 10) : 20;
    struct incident_world_result all = {0};
    char note[160];

    const double begin = now_s(CLOCK_PROCESS_CPUTIME_ID);
    for (uint32_t seed = 1; seed <= seeds; seed++) {
        const struct incident_world_config c = {
            .seed = seed, .hosts = hosts, .seconds = seconds, .faults = 1};
        const struct incident_world_result r = incident_world_run(&c);
        all.wrong += r.wrong;
        all.doubled += r.doubled;
        all.forgotten += r.forgotten;
        all.judged += r.judged;
        all.unwell += r.unwell;
        if (r.first[0] != '\0') {
            fprintf(stderr, "%s\n", r.first);
        }
    }
    snprintf(
        note, sizeof(note),
        "%u hosts, %u seeds of %u s, %llu black holes one after the other, inquiry and default "
        "rules on; %.0f s of CPU",
        hosts, seeds, seconds, (unsigned long long)all.judged,
        now_s(CLOCK_PROCESS_CPUTIME_ID) - begin);
    report_simulated(report, "brain.sim.incidents.wrong", (double)all.wrong, "", 0, REPORT_NONE,
                     REPORT_LOWER, note);
    report_simulated(report, "brain.sim.incidents.doubled", (double)all.doubled, "", 0, REPORT_NONE,
                     REPORT_LOWER, note);
    report_simulated(report, "brain.sim.incidents.forgotten", (double)all.forgotten, "", 0,
                     REPORT_NONE, REPORT_LOWER, note);
    report_simulated(report, "locate.healthy", (double)all.unwell, "hosts", 0, REPORT_NONE,
                     REPORT_LOWER, "not ok 30 s after a fault that they only see; those worlds");
}

/* The same with several faults at once, and with faults that recover in part. */
static void play_several(struct report *report, uint32_t hosts, uint32_t seconds, uint32_t seeds)
{
    struct incident_world_result all = {0};
    char note[160];

    for (uint32_t seed = 1001; seed <= 1000 + seeds; seed++) {
        const struct incident_world_config c = {.seed = seed,
                                                .hosts = hosts,
                                                .seconds = seconds,
                                                .faults = 2 + seed % 2,
                                                .turns = seed % 4 == 0};
        const struct incident_world_result r = incident_world_run(&c);
        all.wrong += r.wrong;
        all.doubled += r.doubled + r.forgotten + r.anew;
        all.judged += r.judged;
        all.unwell += r.unwell;
        if (r.first[0] != '\0') {
            fprintf(stderr, "%s\n", r.first);
        }
    }
    snprintf(note, sizeof(note), "%u hosts, %u seeds of %u s, two or three of %llu faults at once",
             hosts, seeds, seconds, (unsigned long long)all.judged);
    report_simulated(report, "brain.sim.several.wrong", (double)all.wrong, "", 0, REPORT_NONE,
                     REPORT_LOWER, note);
    report_simulated(report, "brain.sim.several.not_one", (double)all.doubled, "", 0, REPORT_NONE,
                     REPORT_LOWER, "doubled, forgotten, or over before their fault; those worlds");
    report_simulated(report, "brain.sim.several.unwell", (double)all.unwell, "hosts", 0,
                     REPORT_NONE, REPORT_LOWER, "not ok, and only see faults; those worlds");
}

/* Records as a controller does, and replays as foliot sim replay does. */
static void play_recording(struct report *report, int argc, char **argv)
{
    const uint32_t hosts = argc > 7 ? (uint32_t)strtoul(argv[7], NULL, 10) : 16,
                   seconds = argc > 8 ? (uint32_t)strtoul(argv[8], NULL, 10) : 3600;
    char path[] = "/tmp/foliot-brain-XXXXXX", note[240];
    struct brain_recorder *recorder = NULL;
    struct brain_record *record = NULL;
    struct brain_outcome o = {.different = 1};
    const int fd = mkstemp(path);

    if (fd < 0 || brain_recorder_open(&recorder, path, 2LL << 30, 0) < 0) {
        fprintf(stderr, "brain_sim: no recording can be made in /tmp\n");
        return;
    }
    close(fd);
    const struct brain_witness witness = brain_recorder_witness(recorder);
    const struct incident_world_config c = {
        .seed = 7, .hosts = hosts, .seconds = seconds, .faults = 1, .witness = &witness};
    const struct incident_world_result r = incident_world_run(&c);
    const struct brain_recorder_report made = brain_recorder_report(recorder);
    brain_recorder_close(recorder);
    const bool played =
        brain_record_open(&record, path) == 0 && brain_record_play(record, NULL, NULL, &o) == 0;
    brain_record_close(record);
    unlink(path);
    snprintf(note, sizeof(note),
             "of %llu answers; %u hosts, %u s, %llu faults, %llu trials of a configuration, %llu "
             "of them taken back; %.0f MiB",
             (unsigned long long)o.answers, hosts, seconds, (unsigned long long)r.faults,
             (unsigned long long)r.trials, (unsigned long long)r.taken_back,
             (double)made.bytes / (1 << 20));
    const bool whole = played && o.damage == 0 && !made.full && made.error == 0 && o.answers > 0;
    report_simulated(report, "brain.replay", whole ? (double)o.different : 1, "answers", 0,
                     REPORT_NONE, REPORT_LOWER, note);
}

int main(int argc, char **argv)
{
    const uint32_t hosts = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000,
                   seconds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 600,
                   seeds = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 20;
    struct fleet_world_result all = {0};
    struct report report;
    struct rusage usage;
    char note[160];

    report_init(&report, "brain_sim", argc, argv);
    const double begin = now_s(CLOCK_PROCESS_CPUTIME_ID);
    for (uint32_t seed = 1; seed <= seeds; seed++) {
        const struct fleet_world_config c = {
            .seed = seed, .hosts = hosts, .seconds = seconds, .faults = 40};
        const struct fleet_world_result r = fleet_world_run(&c);
        all.wrong += r.wrong;
        all.doubled += r.doubled;
        all.forgotten += r.forgotten;
        all.faults += r.faults;
        if (r.first[0] != '\0') {
            fprintf(stderr, "%s\n", r.first);
        }
    }
    const double took = now_s(CLOCK_PROCESS_CPUTIME_ID) - begin;
    getrusage(RUSAGE_SELF, &usage);
    snprintf(note, sizeof(note),
             "%u hosts, %u seeds of %u s, %llu faults; doubled and forgotten in it", hosts, seeds,
             seconds, (unsigned long long)all.faults);
    report_simulated(&report, "brain.sim.wrong", (double)(all.wrong + all.doubled + all.forgotten),
                     "", 0, REPORT_NONE, REPORT_LOWER, note);
    report_simulated(&report, "brain.sim.cpu_s_hour", took * 3600 / ((double)seconds * seeds), "s",
                     REPORT_NONE, REPORT_NONE, REPORT_LOWER,
                     "CPU of an hour of that fleet, world and judge in it");
    report_simulated(&report, "brain.sim.memory_mib", (double)usage.ru_maxrss / 1024, "MiB",
                     REPORT_NONE, REPORT_NONE, REPORT_LOWER, "world and judge in it");
    play_incidents(&report, argc, argv);
    play_several(&report, 64, 300, 12);
    play_recording(&report, argc, argv);
    return report_finish(&report) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
