/* file_tree.c: see file_tree.h. */
#include "file_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WHOLE_SIZE = 512 };

void file_tree_begin(struct file_tree *t)
{
    snprintf(t->top, sizeof(t->top), "/tmp/foliot-tree-XXXXXX");
    assert_non_null(mkdtemp(t->top));
}

static void make_way(const struct file_tree *t, char whole[static WHOLE_SIZE], const char *path)
{
    assert_true(snprintf(whole, WHOLE_SIZE, "%s%s", t->top, path) < WHOLE_SIZE);
    for (char *slash = strchr(whole + strlen(t->top) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        assert_true(mkdir(whole, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
}

void file_tree_put_bytes(const struct file_tree *t, const char *path, const void *bytes,
                         size_t size)
{
    char whole[WHOLE_SIZE];

    make_way(t, whole, path);
    FILE *file = fopen(whole, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void file_tree_put(const struct file_tree *t, const char *path, const char *text)
{
    file_tree_put_bytes(t, path, text, strlen(text));
}

void file_tree_link(const struct file_tree *t, const char *path, const char *target)
{
    char whole[WHOLE_SIZE];

    make_way(t, whole, path);
    assert_int_equal(symlink(target, whole), 0);
}

void file_tree_lose(const struct file_tree *t, const char *path)
{
    char whole[WHOLE_SIZE];

    snprintf(whole, sizeof(whole), "%s%s", t->top, path);
    assert_int_equal(remove(whole), 0);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    (void)status, (void)kind, (void)at;
    return remove(path);
}

void file_tree_end(struct file_tree *t)
{
    if (t->top[0] != 0) {
        assert_int_equal(nftw(t->top, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
        t->top[0] = 0;
    }
}
