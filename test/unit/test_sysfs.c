/* test_sysfs.c: a fact from the kernel's small files is a value, or the reason why there is none. Nothing is read outside the
 * root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "file_tree.h"
#include "platform/sysfs/sysfs.h"

static struct file_tree files;
static struct sysfs tree;

static void put(const char *path, const char *text)
{
    file_tree_put(&files, path, text);
}

static int begin(void **state)
{
    char large[5000], root[128];
    (void)state;
    file_tree_begin(&files);
    put("/secret", "outside\n");
    put("/tree/sys/devices/0000:01:00.0/speed", "400000\n");
    for (int i = 12; i > 0; i--) {
        char name[64];
        snprintf(name, sizeof(name), "/tree/sys/net/eth%d", i);
        file_tree_link(&files, name,
                       i % 2 == 0 ? "../devices/0000:01:00.0" : "/sys/devices/0000:01:00.0");
    }
    file_tree_link(&files, "/tree/sys/out", "../../secret");
    file_tree_link(&files, "/tree/sys/away", "/secret");
    put("/tree/sys/rate", "100 Gb/sec (4X EDR)\n");
    put("/tree/sys/vendor", "0x15b3\n");
    put("/tree/sys/minus", " -1\n");
    put("/tree/sys/empty", "\n");
    put("/tree/sys/words", "tsc hpet \n\n");
    put("/tree/sys/glued", "12ab\n");
    put("/tree/sys/huge", "18446744073709551615\n");
    file_tree_put_bytes(&files, "/tree/sys/nul", "a\0b", 3);
    memset(large, 'x', sizeof(large));
    file_tree_put_bytes(&files, "/tree/sys/large", large, sizeof(large));
    snprintf(root, sizeof(root), "%s/tree", files.top);
    return sysfs_open(&tree, root);
}

static int end(void **state)
{
    (void)state;
    sysfs_close(&tree);
    file_tree_end(&files);
    return 0;
}

static void a_text_is_whole_or_none(void **state)
{
    char text[16] = "as it was", path[SYSFS_PATH_SIZE];
    (void)state;
    assert_int_equal(sysfs_text(&tree, "/sys/nothing", text, sizeof(text)), -ENOENT);
    assert_int_equal(sysfs_text(&tree, "/sys/net", text, sizeof(text)), -EISDIR);
    assert_int_equal(sysfs_text(&tree, "/sys/rate", text, sizeof(text)), -EMSGSIZE);
    assert_int_equal(sysfs_text(&tree, "/sys/large", text, sizeof(text)), -EMSGSIZE);
    assert_int_equal(sysfs_text(&tree, "/sys/nul", text, sizeof(text)), -EILSEQ);
    assert_int_equal(sysfs_text(&tree, sysfs_path(path, "/%0600d", 1), text, sizeof(text)),
                     -ENAMETOOLONG);
    assert_string_equal(text, "as it was");
    assert_int_equal(sysfs_text(&tree, "/sys/words", text, 9), 8);
    assert_string_equal(text, "tsc hpet");
    assert_int_equal(sysfs_text(&tree, "/sys/words", text, 8), -EMSGSIZE);
    assert_int_equal(sysfs_text(&tree, "/sys/empty", text, sizeof(text)), 0);
    assert_string_equal(text, "");
}

static void a_number_is_one(void **state)
{
    int64_t n = 77;
    (void)state;
    assert_int_equal(sysfs_number(&tree, "/sys/empty", &n), -EBADMSG);
    assert_int_equal(sysfs_number(&tree, "/sys/words", &n), -EBADMSG);
    assert_int_equal(sysfs_number(&tree, "/sys/glued", &n), -EBADMSG);
    assert_int_equal(sysfs_number(&tree, "/sys/huge", &n), -ERANGE);
    assert_int_equal(sysfs_number(&tree, "/sys/nothing", &n), -ENOENT);
    assert_int_equal(n, 77);
    assert_int_equal(sysfs_number(&tree, "/sys/rate", &n), 0);
    assert_int_equal(n, 100);
    assert_int_equal(sysfs_number(&tree, "/sys/vendor", &n), 0);
    assert_int_equal(n, 0x15b3);
    assert_int_equal(sysfs_number(&tree, "/sys/minus", &n), 0);
    assert_int_equal(n, -1);
}

static void names_are_sorted_and_bounded(void **state)
{
    char names[12][SYSFS_NAME_SIZE], wanted[SYSFS_NAME_SIZE];
    (void)state;
    assert_int_equal(sysfs_names(&tree, "/sys/net", names, 11), -E2BIG);
    assert_int_equal(sysfs_names(&tree, "/sys/net", names, 12), 12);
    for (int i = 0; i < 12; i++) {
        snprintf(wanted, sizeof(wanted), "eth%d", i + 1);
        assert_string_equal(names[i], wanted);
    }
    assert_int_equal(sysfs_names(&tree, "/sys/none", names, 12), -ENOENT);
    assert_int_equal(sysfs_names(&tree, "/sys/rate", names, 12), -ENOTDIR);
}

static void links_stay_below_the_root(void **state)
{
    char text[64], path[SYSFS_PATH_SIZE];
    int64_t n;
    (void)state;
    for (int i = 1; i <= 2; i++) { /* an absolute link and a relative one */
        assert_int_equal(sysfs_number(&tree, sysfs_path(path, "/sys/net/eth%d/speed", i), &n), 0);
        assert_int_equal(n, 400000);
        assert_true(sysfs_real(&tree, sysfs_path(path, "/sys/net/eth%d", i), text, sizeof(text)) >
                    0);
        assert_string_equal(text, "/sys/devices/0000:01:00.0");
    }
    assert_int_equal(sysfs_text(&tree, "/sys/out", text, sizeof(text)), -ENOENT);
    assert_int_equal(sysfs_text(&tree, "/sys/away", text, sizeof(text)), -ENOENT);
    assert_int_equal(sysfs_text(&tree, "/../../secret", text, sizeof(text)), -ENOENT);
    assert_true(sysfs_there(&tree, "/sys/net/eth1/speed"));
    assert_false(sysfs_there(&tree, "/sys/net/eth13"));
}

static void a_link_stands_for_an_error(void **state)
{
    static const struct {
        const char *target;
        int error;
    } links[] = {{"!13", -EACCES}, {"!22", -EINVAL},    {"!", -ENOENT}, {"!0", -ENOENT},
                 {"!-5", -ENOENT}, {"!99999", -ENOENT}, {"!5x", -EIO},  {"13", -ENOENT}};
    char text[64], path[SYSFS_PATH_SIZE];
    int64_t n;
    (void)state;
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        sysfs_path(path, "/tree/sys/refused%zu", i);
        file_tree_link(&files, path, links[i].target);
        assert_int_equal(sysfs_text(&tree, path + 5, text, sizeof(text)), links[i].error);
        assert_int_equal(sysfs_number(&tree, path + 5, &n), links[i].error);
        assert_false(sysfs_there(&tree, path + 5));
    }
}

static int seen;

static void note(void *context, const struct sysfs *s, const char *path, int flags)
{
    char text[64];
    assert_ptr_equal(context, &files);
    assert_ptr_equal(s, &tree);
    assert_string_equal(path, "/sys/vendor");
    assert_int_equal(flags, O_RDONLY);
    assert_true(sysfs_text(&tree, path, text, sizeof(text)) > 0); /* a watcher may read */
    seen++;
}

static void a_watcher_is_told_of_each_path_once(void **state)
{
    int64_t n;
    (void)state;
    sysfs_watch(note, &files);
    assert_int_equal(sysfs_number(&tree, "/sys/vendor", &n), 0);
    assert_int_equal(sysfs_number(&tree, "/sys/vendor", &n), 0);
    sysfs_watch(NULL, NULL);
    assert_int_equal(sysfs_number(&tree, "/sys/vendor", &n), 0);
    assert_int_equal(seen, 2);
}

static void without_a_root_it_is_this_machine(void **state)
{
    char text[64], path[SYSFS_PATH_SIZE];
    struct sysfs none;
    (void)state;
    snprintf(path, sizeof(path), "%s/tree/sys/vendor", files.top);
    assert_int_equal(sysfs_text(NULL, path, text, sizeof(text)), 6);
    assert_true(sysfs_real(NULL, path, text, sizeof(text)) > 0);
    assert_string_equal(text, path);
    assert_int_equal(sysfs_open(&none, "/nowhere"), -ENOENT);
    assert_int_equal(sysfs_open(&none, path), -ENOTDIR);
}

static atomic_bool enough;

static void *rename_on_and_on(void *arg)
{
    char here[160], there[160];
    (void)arg;
    snprintf(here, sizeof(here), "%s/tree/sys/words", files.top);
    snprintf(there, sizeof(there), "%s/tree/sys/moved", files.top);
    while (!atomic_load(&enough)) {
        (void)!rename(here, there);
        (void)!rename(there, here);
    }
    return NULL;
}

/* While another process renames files, the kernel refuses links with ".." for a moment. That must not count as "not there". */
static void a_file_stays_there_while_others_rename(void **state)
{
    pthread_t thread;
    int there = 0;
    (void)state;
    atomic_store(&enough, false);
    assert_int_equal(pthread_create(&thread, NULL, rename_on_and_on, NULL), 0);
    for (int i = 0; i < 60000; i++) {
        there += sysfs_there(&tree, "/sys/net/eth2/speed");
    }
    atomic_store(&enough, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(there, 60000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_whole_or_none),
        cmocka_unit_test(a_number_is_one),
        cmocka_unit_test(names_are_sorted_and_bounded),
        cmocka_unit_test(links_stay_below_the_root),
        cmocka_unit_test(a_link_stands_for_an_error),
        cmocka_unit_test(a_watcher_is_told_of_each_path_once),
        cmocka_unit_test(without_a_root_it_is_this_machine),
        cmocka_unit_test(a_file_stays_there_while_others_rename),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
