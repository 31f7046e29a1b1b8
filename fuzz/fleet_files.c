/* fleet_files.c: an operator's files about the fleet: its configuration, the declared topology, service levels. The first byte
 * chooses one. What is taken is within its ranges. What is refused has words. */
#include <stdlib.h>
#include <string.h>

#include "service/controller/fleet/fleet_config.h"
#include "service/controller/fleet/levels.h"
#include "service/controller/fleet/topology.h"

#include "fuzz.h"

static void configuration(const char *text)
{
    struct fleet_settings s = {0};
    char words[512] = "";
    if (fleet_config_parse(text, &s, words) < 0) {
        ASSERT(words[0] != 0);
        return;
    }
    ASSERT(s.ring_peers % 2 == 0 && s.ring_peers <= 24 && s.flap_limit <= 100000);
}

static void topology(const char *text)
{
    struct topology t = {0};
    struct config_error error = {""};
    if (topology_parse("input", text, &t, &error) < 0) {
        ASSERT(error.text[0] != 0);
        return;
    }
    for (uint32_t i = 0; i < t.nic_count; i++) {
        ASSERT(t.nics[i].name[0] != 0 && t.nics[i].rail >= -1);
        ASSERT(t.nics[i].leaf == UINT32_MAX || t.nics[i].leaf < t.leaf_count);
    }
    for (uint32_t i = 0; i < t.host_count; i++) {
        ASSERT(t.hosts[i].first <= t.nic_count &&
               t.hosts[i].count <= t.nic_count - t.hosts[i].first);
    }
    topology_done(&t);
}

static void service_levels(const char *text)
{
    static struct levels v;
    struct config_error error = {""};
    memset(&v, 0, sizeof(v));
    if (levels_parse("input", text, &v, &error) < 0) {
        ASSERT(error.text[0] != 0);
        return;
    }
    ASSERT(v.count <= LEVELS_MAX && v.leaf_count <= LEVELS_POD_LEAF_MAX);
    for (uint32_t i = 0; i < v.count; i++) {
        const struct level *l = &v.entries[i].level;
        ASSERT(l->name[0] != 0 && l->kind <= LEVEL_HOPS && l->within <= LEVEL_FLEET);
        ASSERT(l->limit >= 0 && l->hold.ns >= 0 && (l->kind != LEVEL_LOSS || l->limit <= 1000000));
        ASSERT(l->within != LEVEL_POD || v.leaf_count > 0);
    }
    for (uint32_t i = 0; i < v.leaf_count; i++) {
        ASSERT(v.leaves[i].leaf[0] != 0 && v.leaves[i].pod != 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = size > 0 ? malloc(size) : NULL;
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    if (data[0] == 'c') {
        configuration(text);
    } else if (data[0] == 'l') {
        service_levels(text);
    } else {
        topology(text);
    }
    free(text);
    return 0;
}
