/* test_devices.c: which interfaces count, and what sysfs says of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "plugin/devices.h"

static void filters_choose_by_beginning_name_or_exception(void **state)
{
    (void)state;
    assert_true(devices_match("eth", "eth0"));
    assert_false(devices_match("eth", "ib0"));
    assert_true(devices_match("ib,eth1", "eth1"));
    assert_true(devices_match("=eth1", "eth1"));
    assert_false(devices_match("=eth1", "eth10"));
    assert_true(devices_match("^docker,lo", "eth0"));
    assert_false(devices_match("^docker,lo", "lo"));
    assert_true(devices_match("^=lo", "lo1"));
    assert_false(devices_match("", "eth0"));
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void the_loopback_is_described_from_sysfs(void **state)
{
    char root[] = "/tmp/foliot-devices-XXXXXX", path[256], target[256];
    struct device devices[4];
    int count;

    (void)state;
    assert_non_null(mkdtemp(root));
    const char *const folders[] = {"class",
                                   "class/net",
                                   "class/net/lo",
                                   "devices",
                                   "devices/0000:3b:00.1",
                                   "devices/0000:3b:00.1/virtio0"};
    for (size_t i = 0; i < ARRAY_COUNT(folders); i++) {
        snprintf(path, sizeof(path), "%s/%s", root, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    snprintf(path, sizeof(path), "%s/class/net/lo", root);
    write_file(path, "speed", "400000\n");
    write_file(path, "address", "02:00:00:00:00:2a\n");
    snprintf(target, sizeof(target), "%s/devices/0000:3b:00.1/virtio0", root);
    snprintf(path, sizeof(path), "%s/class/net/lo/device", root);
    assert_int_equal(symlink(target, path), 0);
    count = devices_find(root, "=lo", devices, 4);
    assert_int_equal(count, 1);
    assert_string_equal(devices[0].name, "lo");
    assert_int_equal(devices[0].speed_mbps, 400000);
    assert_true(devices[0].guid == 0x02000000002aULL);
    snprintf(target, sizeof(target), "%s/devices/0000:3b:00.1", root);
    assert_string_equal(devices[0].pci_path, target); /* the function, not what hangs on it */
    assert_true(devices[0].loopback);
    assert_int_equal(devices_lanes(devices, 1), 8);
    devices[0].speed_mbps = 100000;
    assert_int_equal(devices_lanes(devices, 1), 4);
    assert_int_equal(devices_lanes(devices, 0), 4);
    assert_int_equal(devices_find(root, "=nosuch", devices, 4), 0);
    snprintf(path, sizeof(path), "rm -r %s", root);
    assert_int_equal(system(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_choose_by_beginning_name_or_exception),
        cmocka_unit_test(the_loopback_is_described_from_sysfs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
