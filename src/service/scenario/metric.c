/* metric.c: the catalogue of metrics that a bound may name. docs/scenarios.md has the same list. */
#include "service/scenario/scenario.h"

#include <string.h>

#define BOTH SCENARIO_BOTH

static const struct scenario_metric metrics[] = {
    {"clock.error.p50_ns", BOTH, false,
     "between any two hosts' fleet times at one instant, median"},
    {"clock.error.p99_ns", BOTH, false, "the same, 99th percentile"},
    {"clock.error.max_ns", BOTH, false, "the same, worst"},
    {"clock.nic_error.p99_ns", SCENARIO_SIM, false, "between any two NIC clocks, 99th percentile"},
    {"clock.rate.common_ppm", SCENARIO_SIM, false,
     "what fleet time's own rate changed by from the window's start to its end"},
    {"clock.hard.outside", BOTH, false, "judged readings whose hard bound the truth left; a count"},
    {"clock.hard.width_ns", BOTH, false, "median of latest - earliest"},
    {"clock.statistical.outside_share", BOTH, false,
     "share of readings outside the statistical bound"},
    {"clock.statistical.width_ns", BOTH, false, "median width of the statistical bound"},
    {"clock.judged", BOTH, false, "how many readings were judged"},
    {"clock.synced_share", BOTH, false,
     "least share of running hosts that are SYNCED by their own page"},
    {"clock.synced_mean", BOTH, false, "share of running hosts' time in SYNCED"},
    {"clock.start_s", BOTH, false,
     "from the start until p99 is below 100 ns (lab: 2 us) and stays"},
    {"clock.backwards", BOTH, false, "readings that went backwards within an epoch; a count"},
    {"clock.stale", BOTH, false, "readings shown as SYNCED that weren't any more; a count"},
    {"clock.epochs", BOTH, false, "epoch changes, all hosts"},
    {"clock.epochs_at_end", BOTH, false, "different epochs among SYNCED hosts at the end"},
    {"clock.timelines", BOTH, false, "different timelines among SYNCED hosts at the end"},
    {"clock.utc_error_ns", SCENARIO_SIM, false, "fleet time's own idea of UTC against UTC, worst"},
    {"clock.utc_outside", SCENARIO_SIM, false,
     "UTC outside the bound that a host states for it; a count"},
    {"clock.utc_known_share", SCENARIO_SIM, false, "share of hosts that know UTC at the end"},
    {"clock.restart.back_ms", SCENARIO_SIM, false,
     "a restarted agent's start until its own page has SYNCED, worst"},
    {"owd.error.median_ns", BOTH, false,
     "one-way delay of a path and direction against truth, median"},
    {"owd.error.p99_ns", BOTH, false, "the same, 99th percentile"},
    {"fault.detect_ms", BOTH, true, "from a fault's start to the finding that names it, worst"},
    {"fault.sure_ms", SCENARIO_SIM, true,
     "from a fault's start to the first finding that names its element for sure, worst"},
    {"fault.missed", BOTH, true, "faults that no finding named; a count"},
    {"fault.wrong", BOTH, true, "faults named with the wrong direction or element; a count"},
    {"clock.fault.marked_ms", BOTH, true,
     "clock fault until its host's status leaves SYNCED, worst"},
    {"clock.fault.late", BOTH, true,
     "readings SYNCED though a clock fault had broken the bound; a count"},
    {"clock.fault.back_ms", BOTH, true, "clock fault until SYNCED and within bounds again, worst"},
    {"clock.fault.others", BOTH, true, "other hosts whose bounds were left meanwhile; a count"},
    {"liar.named_ms", SCENARIO_SIM, true, "a lie until it is named by some host, worst"},
    {"liar.unnamed", SCENARIO_SIM, true, "liars that nobody named; a count"},
    {"link.flaps_missed", BOTH, true, "carrier losses that the agents' counts don't hold"},
    {"false.path", BOTH, false, "findings about paths that were fine; a count"},
    {"false.link", BOTH, false, "findings about links that were fine; a count"},
    {"false.step", BOTH, false, "clock steps reported that nobody made; a count"},
    {"false.liar", BOTH, false, "honest hosts called liars; a count"},
    {"false.any", BOTH, false, "the four together"},
    {"invariant.hard", SCENARIO_SIM, false,
     "SYNCED readings of sound clocks whose hard bounds exclude each other; a count, as all below"},
    {"invariant.edge", SCENARIO_SIM, false, "edges whose true theta left their own bound"},
    {"invariant.holdover", SCENARIO_SIM, false, "the same of readings in HOLDOVER"},
    {"invariant.late", SCENARIO_SIM, false,
     "readings SYNCED with a broken bound, longer than the fault model allows after a clock fault"},
    {"invariant.stale", SCENARIO_SIM, false, "readings SYNCED on a page that is too old"},
    {"invariant.backwards", SCENARIO_SIM, false, "readings that went backwards within an epoch"},
    {"invariant.timeline", SCENARIO_SIM, false,
     "hosts that reach each other and end on another timeline"},
    {"invariant.epoch", SCENARIO_SIM, false,
     "hosts in step on one timeline that end in another epoch"},
    {"invariant.back", SCENARIO_SIM, false,
     "readings not SYNCED 10 s after the last fault, of hosts that could be"},
    {"invariant.p99", SCENARIO_SIM, false,
     "1: the error's 99th percentile is above what stamps and load allow"},
    {"invariant.accused", SCENARIO_SIM, false, "honest hosts called liars"},
    {"invariant.stepped", SCENARIO_SIM, false, "clock steps told that nobody made"},
    {"invariant.utc", SCENARIO_SIM, false, "readings of UTC outside the bound stated for it"},
    {"invariant.false", SCENARIO_SIM, false, "findings of paths and links that no fault explains"},
    {"invariant.wrong", SCENARIO_SIM, false, "faults named as another element"},
    {"invariant.missed", SCENARIO_SIM, false, "faults that a probe could have seen, never told"},
    {"probes.refused", BOTH, false,
     "probes dropped as forged, replayed, malformed or of another version"},
    {"probes.per_nic_s", BOTH, false, "probes that a NIC sent each second"},
    {"harm.throughput", SCENARIO_LAB, false, "a transfer's throughput, agents on over agents off"},
    {"cost.cpu_share", SCENARIO_LAB, false, "an agent's share of one core, worst"},
    {"cost.memory_mib", SCENARIO_LAB, false, "an agent's memory, worst"},
    {NULL, 0, false, NULL},
};

const struct scenario_metric *scenario_metric_find(const char *name)
{
    for (const struct scenario_metric *m = metrics; m->name != NULL; m++) {
        if (strcmp(m->name, name) == 0) {
            return m;
        }
    }
    return NULL;
}
