/* test_rdma_ports.c: ports, GIDs and counters from trees of /sys/class/infiniband. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "file_tree.h"
#include "platform/rdma/ports.h"

static struct rdma_port ports[RDMA_PORT_MAX];
static struct file_tree files;
static struct sysfs tree;

static void put(const char *path, const char *text)
{
    file_tree_put(&files, path, text);
}

/* One line for each file: its path, a tab, its text. */
static void plant(const char *name)
{
    char line[512];
    file_tree_begin(&files);
    snprintf(line, sizeof(line), "%s/%s", getenv("FOLIOT_RDMA_TREES"), name);
    FILE *file = fopen(line, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        char *text = strchr(line, '\t');
        if (line[0] == '/' && text != NULL) {
            *text = 0;
            put(line, text + 1);
        }
    }
    fclose(file);
    assert_int_equal(sysfs_open(&tree, files.top), 0);
}

static int uproot(void **state)
{
    (void)state;
    if (files.top[0] != 0) {
        sysfs_close(&tree);
        file_tree_end(&files);
    }
    return 0;
}

static void a_host_without_rdma_has_no_ports(void **state)
{
    (void)state;
    file_tree_begin(&files);
    assert_int_equal(sysfs_open(&tree, files.top), 0);
    assert_int_equal(rdma_ports_read(&tree, ports, RDMA_PORT_MAX), 0);
}

static void roce_is_read_whole(void **state)
{
    static const uint8_t ip[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 1, [15] = 2},
                         other[16] = {[15] = 1};
    const struct rdma_port *p = &ports[0];
    uint8_t v4[4];
    (void)state;
    plant("connectx-roce.txt");
    assert_int_equal(rdma_ports_read(&tree, ports, RDMA_PORT_MAX), 1);
    assert_string_equal(p->device, "mlx5_0");
    assert_int_equal(p->port, 1);
    assert_int_equal(p->node_guid, 0xb83fd20300123456);
    assert_int_equal(p->layer, RDMA_LAYER_ETHERNET);
    assert_int_equal(p->state, RDMA_PORT_ACTIVE);
    assert_int_equal(p->phys_state, 5);
    assert_int_equal(p->rate_mbps, 400000);
    assert_int_equal(p->width, 4);
    assert_string_equal(p->if_name, "eth0");
    assert_int_equal(p->mtu, 9000);
    assert_string_equal(p->firmware, "28.39.1002");
    assert_false(p->virtual_function);
    assert_int_equal(p->gid_count, 5); /* the empty one between them doesn't count */
    assert_int_equal(p->gids[3].index, 4);
    assert_int_equal(p->gids[0].type, RDMA_GID_ROCE_V1);
    assert_int_equal(p->gids[1].type, RDMA_GID_ROCE_V2);
    assert_true(rdma_gid_is_link_local(&p->gids[0]));
    assert_true(rdma_gid_ipv4(&p->gids[4], v4));
    assert_int_equal(v4[3], 2);
    assert_int_equal(rdma_gid_choose(p, NULL)->index, 5); /* not v1, not fe80, IPv4 before IPv6 */
    assert_int_equal(rdma_gid_choose(p, ip)->index, 5);
    assert_null(rdma_gid_choose(p, other));
    assert_int_equal(p->counters[RDMA_GAPS_IN], 17);
    assert_int_equal(p->counters[RDMA_ACK_TIMEOUTS], 13); /* two names for one counter */
    assert_int_equal(p->counters[RDMA_CNP_IN], 40);
    assert_int_equal(p->counters[RDMA_LINK_DOWNS], 3);
    assert_int_equal(p->counters[RDMA_SYMBOL_ERRORS], 0);
    assert_true(p->counters[RDMA_RNR] == RDMA_COUNTER_NONE);
    assert_true(p->counters[RDMA_CNP_OUT] ==
                RDMA_COUNTER_NONE); /* 2^64 - 1 is no number of events */
    put("/sys/class/infiniband/mlx5_0/ports/1/gids/5", "0000:0000:0000:0000:0000:0000:0000:0000\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/gids/4", "0000:0000:0000:0000:0000:0000:0000:0000\n");
    assert_int_equal(rdma_ports_read(&tree, ports, RDMA_PORT_MAX), 1);
    assert_null(rdma_gid_choose(p, NULL)); /* v1 only, and an address that no router forwards */
}

static void infiniband_is_read_whole(void **state)
{
    (void)state;
    plant("connectx-infiniband.txt");
    assert_int_equal(rdma_ports_read(&tree, ports, 2), -E2BIG);
    assert_int_equal(rdma_ports_read(&tree, ports, RDMA_PORT_MAX), 3);
    const struct rdma_port *p = &ports[0];
    assert_string_equal(p->device, "mlx5_2"); /* before mlx5_10 */
    assert_int_equal(p->layer, RDMA_LAYER_INFINIBAND);
    assert_int_equal(p->lid, 0x1c2);
    assert_int_equal(p->sm_lid, 1);
    assert_int_equal(p->lmc, 2);
    assert_int_equal(p->sm_sl, 3);
    assert_string_equal(p->if_name, "ibs1");
    assert_int_equal(p->mtu, 2044);
    assert_int_equal(p->gids[0].type, RDMA_GID_IB);
    assert_int_equal(rdma_gid_choose(p, NULL)->index, 0);
    assert_true(p->pkey_count >= 3);
    assert_int_equal(p->pkeys[1], 0x8005);
    assert_int_equal(p->counters[RDMA_SYMBOL_ERRORS], 12);
    assert_int_equal(p->counters[RDMA_LINK_RECOVERIES], 2);
    assert_int_equal(ports[1].state, RDMA_PORT_INIT);
    assert_int_equal(ports[1].rate_mbps, 2500);
    assert_true(ports[1].virtual_function);
    assert_int_equal(ports[1].node_guid, 0);
    assert_int_equal(ports[1].gid_count, 0); /* too short: none */
    assert_int_equal(ports[2].port, 2);
    assert_int_equal(ports[2].state, RDMA_PORT_NO_STATE);
    assert_string_equal(rdma_port_state_name(ports[2].state), "unknown");
    assert_int_equal(ports[2].rate_mbps, 0);
    assert_int_equal(ports[2].gid_count, 0);
}

static void soft_roce_is_read_whole(void **state)
{
    (void)state;
    plant("soft-roce.txt");
    assert_int_equal(rdma_ports_read(&tree, ports, RDMA_PORT_MAX), 1);
    assert_string_equal(ports[0].device, "h0r0");
    assert_int_equal(ports[0].state, RDMA_PORT_ACTIVE);
    assert_string_equal(ports[0].if_name, "h0r0");
    assert_int_equal(ports[0].gid_count, 2);
    assert_int_equal(rdma_gid_choose(&ports[0], NULL)->index, 1);
    assert_int_equal(ports[0].counters[RDMA_GAVE_UP], 0);
    assert_true(ports[0].counters[RDMA_MARKS_IN] == RDMA_COUNTER_NONE);
    file_tree_lose(&files, "/sys/class/infiniband/h0r0/ports/1/link_layer");
    assert_int_equal(rdma_ports_read(&tree, ports, RDMA_PORT_MAX), 1);
    assert_int_equal(ports[0].layer, RDMA_LAYER_UNKNOWN);
}

static void each_counter_has_a_name(void **state)
{
    (void)state;
    for (int i = 0; i < RDMA_COUNTER_COUNT; i++) {
        assert_non_null(rdma_counter_name(i));
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(rdma_counter_name(i), rdma_counter_name(k));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_host_without_rdma_has_no_ports, uproot),
        cmocka_unit_test_teardown(roce_is_read_whole, uproot),
        cmocka_unit_test_teardown(infiniband_is_read_whole, uproot),
        cmocka_unit_test_teardown(soft_roce_is_read_whole, uproot),
        cmocka_unit_test(each_counter_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
