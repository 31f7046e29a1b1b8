/* plant.c: the planted bugs that need more than one line. */
#include <stdlib.h>
#include <unistd.h>

#include "reference.h"

struct late {
    char *data, *copy;
    size_t size;
};

static void *write_late(void *arg)
{
    struct late *late = arg;

    usleep(3000);
    memcpy(late->data, late->copy, late->size);
    free(late->copy);
    free(late);
    return NULL;
}

static void detach(void *(*run)(void *), void *arg)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, run, arg) == 0) {
        pthread_detach(thread);
    }
}

void plant_late_write(void *data, size_t size)
{
    struct late *late = malloc(sizeof(*late));

    *late = (struct late){data, malloc(size), size};
    memcpy(late->copy, data, size);
    detach(write_late, late);
}

static void *sleep_on(void *arg)
{
    for (;;) {
        pause();
    }
    return arg;
}

void plant_thread(void)
{
    detach(sleep_on, NULL);
}

/* Copies the second half of each 8-byte word first, and pauses in the middle of the first word. */
void plant_copy_torn(char *to, const char *from, size_t size)
{
    for (size_t at = 0; at < size; at += 8) {
        const size_t n = size - at < 8 ? size - at : 8;
        if (n > 4) {
            memcpy(to + at + 4, from + at + 4, n - 4);
        }
        atomic_thread_fence(memory_order_seq_cst);
        if (at == 0) {
            usleep(2000);
        }
        memcpy(to + at, from + at, n < 4 ? n : 4);
    }
}
