/* The mesh page: a reader gets each written verdict, by index and by search. Other bytes are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "wire/mesh_page.h"

#define CAPACITY 40

static struct mesh_page_memory *new_page(void)
{
    struct mesh_page_memory *memory = aligned_alloc(64, mesh_page_size(CAPACITY));

    assert_non_null(memory);
    mesh_page_init(memory, CAPACITY, 77);
    return memory;
}

static void a_verdict_is_found(void **state)
{
    struct mesh_page_memory *memory = new_page();
    const size_t size = mesh_page_size(CAPACITY);
    const struct mesh_page_entry entry = {.local = {1},
                                          .peer = {2},
                                          .path = 0xabc,
                                          .source_port = 7640,
                                          .state = MESH_PAGE_DEAD,
                                          .direction = MESH_PAGE_IN,
                                          .generation = 1,
                                          .owd_ns_p50 = MESH_PAGE_OWD_NONE,
                                          .loss_ppm = 1000000};
    struct mesh_page_entry read;
    struct mesh_page_header header;

    assert_true(mesh_page_write(memory, 5, &entry));
    assert_false(mesh_page_write(memory, 5, &entry)); /* nothing new */
    mesh_page_write_header(memory, &(struct mesh_page_header){.count = 6, .generation = 1});
    assert_true(mesh_page_read_header(memory, size, &header));
    assert_int_equal(header.count, 6);
    assert_int_equal(header.capacity, CAPACITY);
    assert_int_equal(mesh_page_find(memory, size, entry.local, entry.peer, 7640, MESH_PAGE_IN), 5);
    assert_int_equal(mesh_page_find(memory, size, entry.local, entry.peer, 7640, MESH_PAGE_OUT),
                     UINT32_MAX);
    assert_true(mesh_page_read(memory, size, 5, &read));
    assert_memory_equal(&read, &entry, sizeof(entry));
    free(memory);
}

static void a_short_file_is_refused(void **state)
{
    struct mesh_page_memory *memory = new_page();
    struct mesh_page_header header;
    struct mesh_page_entry entry;

    assert_false(mesh_page_read_header(memory, 63, &header));
    assert_false(mesh_page_read_header(memory, mesh_page_size(CAPACITY) - 1, &header));
    assert_false(mesh_page_read(memory, mesh_page_size(CAPACITY), CAPACITY, &entry));
    assert_false(mesh_page_read(memory, mesh_page_size(CAPACITY), UINT32_MAX, &entry));
    free(memory);
}

static void any_bytes_are_safe(void **state)
{
    struct mesh_page_memory *memory = new_page();
    const size_t size = mesh_page_size(CAPACITY);
    struct prng p;

    prng_init(&p, 1);
    for (int i = 0; i < 2000; i++) {
        struct mesh_page_header header;
        struct mesh_page_entry entry;
        mesh_page_init(memory, CAPACITY, 4);
        for (int k = 0; k < 3; k++) {
            ((uint64_t *)memory)[prng_below(&p, 20)] = prng_u64(&p) & ~1ULL;
        }
        (void)mesh_page_find(memory, size, (struct nic_id){0}, (struct nic_id){0}, 0,
                             MESH_PAGE_OUT);
        if (mesh_page_read_header(memory, size, &header)) {
            assert_true(header.count <= CAPACITY);
        }
        if (mesh_page_read(memory, size, 0, &entry)) {
            assert_true(entry.state <= MESH_PAGE_LOSSY);
        }
    }
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_verdict_is_found),
        cmocka_unit_test(a_short_file_is_refused),
        cmocka_unit_test(any_bytes_are_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
