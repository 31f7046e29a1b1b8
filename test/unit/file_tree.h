/* file_tree.h: a test's own tree of small files, like /sys and /proc, in a folder of its own. */
#pragma once
#include <stddef.h>

struct file_tree {
    char top[64]; /* the folder; empty: there is none */
};

void file_tree_begin(struct file_tree *t);
/* Paths begin with '/' and are below the top. Missing folders are made. */
void file_tree_put(const struct file_tree *t, const char *path, const char *text);
void file_tree_put_bytes(const struct file_tree *t, const char *path, const void *bytes,
                         size_t size);
void file_tree_link(const struct file_tree *t, const char *path, const char *target);
void file_tree_lose(const struct file_tree *t, const char *path);
void file_tree_end(struct file_tree *t);
