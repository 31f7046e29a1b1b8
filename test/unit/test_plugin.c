/* test_plugin.c: how the tables handle NCCL's calls, what the plugin reads from the environment, and what it logs. The linker
 * puts this file's functions in place of the transport's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bug.h"
#include "plugin/plugin.h"

#define LL_SIZE    (64 << 10)      /* of a step of LL, at most */
#define LL128_SIZE (120 * 640 * 8) /* and of LL128 */
#define HINT       NCCL_OPTIONAL_COMPLETION

extern const struct nccl_net_v6 ncclNetPlugin_v6;
extern const struct nccl_net_v7 ncclNetPlugin_v7;
extern const struct nccl_net_v8 ncclNetPlugin_v8;
extern const struct nccl_net_v9 ncclNetPlugin_v9;
extern const struct nccl_net_v10 ncclNetPlugin_v10;
extern const struct nccl_net_v11 ncclNetPlugin_v11;
extern const struct nccl_net_v12 ncclNetPlugin_v12;

/* -- in the transport's place ----------------------------------------------------------------- */

static int was_staged; /* at the last receive; -1: there was none */
static const char *reason;

int __wrap_transport_receive(struct transport_comm *comm, void *data, size_t size, int tag,
                             bool staged, void *parent, struct transport_request **ret_request);
int __wrap_transport_accept(struct transport_listener *listener, struct transport_comm **ret_comm);
const char *__wrap_transport_why(void);

int __wrap_transport_receive(struct transport_comm *comm, void *data, size_t size, int tag,
                             bool staged, void *parent, struct transport_request **ret_request)
{
    (void)comm;
    (void)data;
    (void)size;
    (void)tag;
    (void)parent;
    was_staged = staged;
    *ret_request = NULL;
    return 0;
}

int __wrap_transport_accept(struct transport_listener *listener, struct transport_comm **ret_comm)
{
    (void)listener;
    (void)ret_comm;
    return -ECONNABORTED;
}

const char *__wrap_transport_why(void)
{
    return reason != NULL ? reason : "";
}

static struct {
    int added, noted, removed, error;
    void *data, *gone;
    size_t size;
} memory;

int __wrap_transport_memory_add(struct transport *t, void *data, size_t size,
                                struct transport_memory **ret_memory);
int __wrap_transport_memory_note(struct transport *t, void *data, size_t size,
                                 struct transport_memory **ret_memory);
void __wrap_transport_memory_remove(struct transport *t, struct transport_memory *m);

int __wrap_transport_memory_add(struct transport *t, void *data, size_t size,
                                struct transport_memory **ret_memory)
{
    assert_non_null(t);
    memory.added++;
    memory.data = data;
    memory.size = size;
    *ret_memory = memory.error == 0 ? data : NULL; /* any address will do */
    return memory.error;
}

int __wrap_transport_memory_note(struct transport *t, void *data, size_t size,
                                 struct transport_memory **ret_memory)
{
    assert_non_null(t);
    assert_int_equal(size, memory.size);
    memory.noted++;
    *ret_memory = data;
    return 0;
}

void __wrap_transport_memory_remove(struct transport *t, struct transport_memory *m)
{
    assert_non_null(t);
    memory.removed++;
    memory.gone = m;
}

/* -- receives --------------------------------------------------------------------------------- */

static int warnings;
static char warned[512]; /* the last one */

static void count_warnings(int level, unsigned long flags, const char *file, int line,
                           const char *format, ...)
{
    (void)flags;
    (void)file;
    (void)line;
    if (level == NCCL_LOG_WARN) {
        va_list arguments;
        warnings++;
        va_start(arguments, format);
        vsnprintf(warned, sizeof(warned), format, arguments);
        va_end(arguments);
    }
}

static bool
staged_v8(enum nccl_result (*irecv)(void *, int, void **, int *, int *, void **, void **), int size)
{
    void *data = NULL, *mhandle = NULL, *request = NULL;
    int tag = 0;

    was_staged = -1;
    assert_int_equal(irecv(NULL, 1, &data, &size, &tag, &mhandle, &request), NCCL_SUCCESS);
    assert_true(was_staged >= 0);
    return was_staged;
}

/* Without a hint the size shows what LL and LL128 receive. */
static void before_v9_small_receives_are_staged(void **state)
{
    static const int sizes[] = {0, 8, LL_SIZE, LL_SIZE + 1, LL128_SIZE};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        assert_true(staged_v8(ncclNetPlugin_v6.irecv, sizes[i]));
        assert_true(staged_v8(ncclNetPlugin_v7.irecv, sizes[i]));
        assert_true(staged_v8(ncclNetPlugin_v8.irecv, sizes[i]));
    }
    assert_false(staged_v8(ncclNetPlugin_v6.irecv, LL128_SIZE + 1));
    assert_false(staged_v8(ncclNetPlugin_v8.irecv, 4 << 20));
}

static bool staged(size_t size, void *hint)
{
    void *data = NULL, *mhandle = NULL, *parent = NULL, *requests[4] = {hint, hint, hint, hint};
    int tag = 0, all = 0;

    was_staged = -1;
    assert_int_equal(ncclNetPlugin_v9.irecv(NULL, 1, &data, &size, &tag, &mhandle, &requests[0]),
                     0);
    all += was_staged;
    assert_int_equal(
        ncclNetPlugin_v10.irecv(NULL, 1, &data, &size, &tag, &mhandle, &parent, &requests[1]), 0);
    all += was_staged;
    assert_int_equal(
        ncclNetPlugin_v11.irecv(NULL, 1, &data, &size, &tag, &mhandle, &parent, &requests[2]), 0);
    all += was_staged;
    assert_int_equal(
        ncclNetPlugin_v12.irecv(NULL, 1, &data, &size, &tag, &mhandle, &parent, &requests[3]), 0);
    all += was_staged;
    assert_true(all == 0 || all == 4);
    return all == 4;
}

/* From v9 on NCCL marks them, unless its user has turned that off. */
static void hints_are_taken_and_their_lack_is_known(void **state)
{
    void *context;

    (void)state;
    setenv("FOLIOT_NIC", "lo", 1);
    unsetenv("NCCL_NET_OPTIONAL_RECV_COMPLETION");
    assert_int_equal(ncclNetPlugin_v11.init(&context, 0, NULL, NULL, NULL), NCCL_SUCCESS);
    assert_true(staged(8, HINT));
    assert_true(staged(4 << 20, HINT));
    assert_false(staged(8, NULL));
    ncclNetPlugin_v11.finalize(context);
    setenv("NCCL_NET_OPTIONAL_RECV_COMPLETION", "0", 1);
    assert_int_equal(ncclNetPlugin_v11.init(&context, 0, NULL, NULL, NULL), NCCL_SUCCESS);
    assert_true(staged(8, NULL));
    assert_true(staged(LL128_SIZE, NULL));
    assert_false(staged(LL128_SIZE + 1, NULL));
    ncclNetPlugin_v11.finalize(context);
    unsetenv("NCCL_NET_OPTIONAL_RECV_COMPLETION");
}

/* -- memory ----------------------------------------------------------------------------------- */

/* The transport gets all memory that NCCL registers, and drops it. If no NIC takes it, that is reported once, and it is
 * registered nevertheless: it is copied. */
static void memory_is_registered(void **state)
{
    static char buffer[8192];
    void *context, *handle = NULL, *other = NULL, *older = NULL;

    (void)state;
    setenv("FOLIOT_NIC", "lo", 1);
    assert_int_equal(ncclNetPlugin_v11.init(&context, 0, NULL, count_warnings, NULL), NCCL_SUCCESS);
    assert_int_equal(
        ncclNetPlugin_v11.reg_mr(NULL, buffer, sizeof(buffer), NCCL_POINTER_HOST, &handle),
        NCCL_SUCCESS);
    assert_int_equal(memory.added, 1);
    assert_ptr_equal(memory.data, buffer);
    assert_int_equal(memory.size, sizeof(buffer));
    assert_int_equal(ncclNetPlugin_v11.dereg_mr(NULL, handle), NCCL_SUCCESS);
    assert_int_equal(memory.removed, 1);
    assert_ptr_equal(memory.gone, buffer);
    warnings = 0;
    memory.error = -ENOMEM;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ncclNetPlugin_v6.reg_mr(NULL, buffer, 100, NCCL_POINTER_HOST, &other),
                         NCCL_SUCCESS);
        assert_non_null(other);
        assert_int_equal(ncclNetPlugin_v6.dereg_mr(NULL, other), NCCL_SUCCESS);
    }
    assert_int_equal(warnings, 1);
    assert_int_equal(memory.noted, 3);
    assert_int_equal(memory.removed, 4);
    memory.error = 0;
    assert_int_equal(ncclNetPlugin_v11.reg_mr(NULL, buffer, 100, NCCL_POINTER_HOST, &handle),
                     NCCL_SUCCESS);
    assert_int_equal(ncclNetPlugin_v11.reg_mr(NULL, buffer, 100, NCCL_POINTER_HOST, &older),
                     NCCL_SUCCESS);
    assert_int_equal(ncclNetPlugin_v11.reg_mr(NULL, buffer, 100, NCCL_POINTER_CUDA, &other),
                     NCCL_INVALID_USAGE); /* pointer_support doesn't have it */
    ncclNetPlugin_v11.finalize(context);
    assert_int_equal(ncclNetPlugin_v11.dereg_mr(NULL, handle), NCCL_SUCCESS); /* nothing is left */
    assert_int_equal(ncclNetPlugin_v11.init(&context, 0, NULL, count_warnings, NULL), NCCL_SUCCESS);
    assert_int_equal(ncclNetPlugin_v11.dereg_mr(NULL, older), NCCL_SUCCESS); /* not the new one's */
    ncclNetPlugin_v11.finalize(context);
    assert_int_equal(memory.removed, 4);
}

/* -- words ------------------------------------------------------------------------------------ */

/* The program that set a variable may overwrite or free it. */
static void nothing_is_read_from_the_environment_later(void **state)
{
    static char nic[] = "FOLIOT_NIC=lo", sysfs[] = "FOLIOT_SYSFS=/sys",
                folder[] = "FOLIOT_JOB_DIR=/tmp", job[] = "FOLIOT_JOB=seven";
    static char *const variables[] = {nic, sysfs, folder, job};
    struct settings settings;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(variables); i++) {
        assert_int_equal(putenv(variables[i]), 0);
    }
    settings_read(&settings, NULL);
    const struct job_words words = job_words();
    for (size_t i = 0; i < ARRAY_COUNT(variables); i++) {
        char *value = strchr(variables[i], '=') + 1;
        memset(value, '#', strlen(value));
    }
    assert_string_equal(settings.nic, "lo");
    assert_string_equal(settings.sysfs, "/sys");
    assert_string_equal(words.folder, "/tmp");
    assert_string_equal(words.name, "seven");
    for (size_t i = 0; i < ARRAY_COUNT(variables); i++) {
        *strchr(variables[i], '=') = 0;
        unsetenv(variables[i]);
    }
}

static const char *const roce_words[] = {"FOLIOT_TRANSPORT", "FOLIOT_RDMA", "FOLIOT_VERBS",
                                         "FOLIOT_FAKE_VERBS_WIRE", "FOLIOT_GPU"};

/* A setting that can't have an effect is reported. */
static void writes_without_queue_pairs_are_told(void **state)
{
    struct settings settings;

    (void)state;
    setenv("FOLIOT_RDMA", "direct", 1);
    warnings = 0;
    settings_read(&settings, count_warnings);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(warned, "FOLIOT_TRANSPORT"));
    setenv("FOLIOT_TRANSPORT", "auto", 1);
    settings_read(&settings, count_warnings);
    assert_int_equal(warnings, 1);
    setenv("FOLIOT_GPU", "dmabuf", 1);
    settings_read(&settings, count_warnings);
    assert_int_equal(warnings, 1);
    setenv("FOLIOT_RDMA", "copy", 1);
    settings_read(&settings, count_warnings);
    assert_int_equal(warnings, 2);
    assert_non_null(strstr(warned, "FOLIOT_GPU=dmabuf does nothing"));
    unsetenv("FOLIOT_GPU");
    unsetenv("FOLIOT_RDMA");
    unsetenv("FOLIOT_TRANSPORT");
}

/* How queue pairs' packets are marked: our variable, else NCCL's; one number, or one for each priority. */
static void marks_of_queue_pairs_are_read(void **state)
{
    static const struct {
        const char *tc, *sl, *pkey, *nccl_tc, *nccl_sl, *nccl_pkey, *mark, *priority;
        uint8_t pair_class, pair_sl;
        uint16_t partition, nth;
        int warnings;
    } rows[] = {
        {"", "", "", "", "", "", "none", "normal", 0, 0, 0, 0, 0},
        {"", "", "", "106", "3", "2", "none", "normal", 106, 4, 0, 3, 0},
        {"", "", "", "-1", "-1", "-1", "none", "normal", 0, 0, 0, 0, 0},
        {"0x68", "0", "0x8005", "106", "3", "2", "none", "normal", 104, 1, 5, 3, 0},
        {"", "", "", "106", "", "", "dscp", "high", 0, 0, 0, 0, 0}, /* FOLIOT_MARK's: below */
        {"8,104,136", "0,1,2", "5", "", "", "", "dscp", "high", 136, 3, 5, 0, 0},
        {"8,104,136", "0,1,2", "", "", "", "", "none", "low", 8, 1, 0, 0, 0},
        {"256", "16", "0x8000", "", "", "", "none", "low", 0, 0, 0, 0, 3},
        {"1,2", "1,2,3,4", "x", "4", "5", "", "none", "low", 4, 6, 0, 0, 3},
        {"1,", ",", "5 ", "", "", "", "none", "low", 0, 0, 0, 0, 3},
    };
    static const char *const names[] = {"FOLIOT_IB_TC", "FOLIOT_IB_SL",   "FOLIOT_IB_PKEY",
                                        "NCCL_IB_TC",   "NCCL_IB_SL",     "NCCL_IB_PKEY",
                                        "FOLIOT_MARK",  "FOLIOT_PRIORITY"};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const char *const values[] = {rows[i].tc,      rows[i].sl,      rows[i].pkey,
                                      rows[i].nccl_tc, rows[i].nccl_sl, rows[i].nccl_pkey,
                                      rows[i].mark,    rows[i].priority};
        struct settings settings;
        for (size_t k = 0; k < ARRAY_COUNT(names); k++) {
            setenv(names[k], values[k], 1);
        }
        warnings = 0;
        settings_read(&settings, count_warnings);
        assert_int_equal(warnings, rows[i].warnings);
        if (i == 4) {
            assert_true(settings.traffic_class != 0);
            assert_int_equal(settings.pair_class, settings.traffic_class);
            continue;
        }
        assert_int_equal(settings.pair_class, rows[i].pair_class);
        assert_int_equal(settings.pair_sl, rows[i].pair_sl);
        assert_int_equal(settings.partition, rows[i].partition);
        assert_int_equal(settings.pkey_nth, rows[i].nth);
    }
    for (size_t k = 0; k < ARRAY_COUNT(names); k++) {
        unsetenv(names[k]);
    }
}

/* ptrSupport reports the truth: memory of GPUs is taken if it is switched on and a device takes it. */
static void gpus_are_taken_where_a_device_does(void **state)
{
    const int fd = memfd_create("gpu", MFD_CLOEXEC);
    struct nccl_net_properties_v11 nic;
    void *context, *mhandle;
    char library[512];

    (void)state;
    snprintf(library, sizeof(library), "%s/libfake-verbs-whole.so", getenv("FOLIOT_FAKE_VERBS"));
    setenv("FOLIOT_NIC", "lo", 1);
    setenv("FOLIOT_TRANSPORT", "auto", 1);
    setenv("FOLIOT_RDMA", "direct", 1);
    setenv("FOLIOT_VERBS", library, 1);
    setenv("FOLIOT_FAKE_VERBS_WIRE", "a=127.0.0.1", 1);
    assert_int_equal(ftruncate(fd, 8192), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ncclNetPlugin_v11.init(&context, 0, NULL, count_warnings, NULL),
                         NCCL_SUCCESS);
        assert_int_equal(ncclNetPlugin_v11.get_properties(0, &nic), NCCL_SUCCESS);
        assert_int_equal(nic.pointer_support,
                         i == 0 ? NCCL_POINTER_HOST : NCCL_POINTER_HOST | NCCL_POINTER_DMABUF);
        const enum nccl_result r = ncclNetPlugin_v11.reg_mr_dma_buf(
            NULL, (void *)0x7000000000, 8192, NCCL_POINTER_CUDA, 0, fd, &mhandle);
        assert_int_equal(r == NCCL_SUCCESS, i == 1);
        if (i == 1) {
            assert_int_equal(ncclNetPlugin_v11.dereg_mr(NULL, mhandle), NCCL_SUCCESS);
        }
        assert_int_not_equal(ncclNetPlugin_v11.reg_mr_dma_buf(NULL, (void *)0x7100000000, 8192,
                                                              NCCL_POINTER_CUDA, 0, -1, &mhandle),
                             NCCL_SUCCESS);
        ncclNetPlugin_v11.finalize(context);
        setenv("FOLIOT_GPU", "dmabuf", 1);
    }
    close(fd);
    for (size_t i = 0; i < ARRAY_COUNT(roce_words); i++) {
        unsetenv(roce_words[i]);
    }
}

/* The first request that finds it logs it, and each request that ends by it returns it. */
static void a_failure_is_logged_once(void **state)
{
    void *context, *comm;

    (void)state;
    setenv("FOLIOT_NIC", "lo", 1);
    assert_int_equal(ncclNetPlugin_v11.init(&context, 0, NULL, count_warnings, NULL), NCCL_SUCCESS);
    warnings = 0;
    reason = "host a is gone";
    for (int i = 0; i < 5; i++) {
        assert_int_equal(ncclNetPlugin_v11.accept(NULL, &comm, NULL), NCCL_REMOTE_ERROR);
    }
    assert_int_equal(warnings, 1);
    reason = "host b is gone";
    assert_int_equal(ncclNetPlugin_v11.accept(NULL, &comm, NULL), NCCL_REMOTE_ERROR);
    assert_int_equal(warnings, 2);
    reason = NULL;
    ncclNetPlugin_v11.finalize(context);
}

static char last_words[512];

static void keep_words(int level, unsigned long flags, const char *file, int line,
                       const char *format, ...)
{
    va_list arguments;

    (void)flags;
    (void)file;
    (void)line;
    if (level == NCCL_LOG_WARN) {
        va_start(arguments, format);
        vsnprintf(last_words, sizeof(last_words), format, arguments);
        va_end(arguments);
    }
}

/* No descriptor is left: "Too many open files" alone wouldn't show which step failed. */
static void the_step_that_fails_is_named(const char *step)
{
    struct rlimit before;
    void *context;

    setenv("FOLIOT_NIC", "lo", 1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const int result = ncclNetPlugin_v11.init(&context, 0, NULL, keep_words, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(result, NCCL_SYSTEM_ERROR);
    assert_non_null(strstr(last_words, step));
    assert_non_null(strstr(last_words, "Too many open files"));
}

static void nics_that_cannot_be_listed_are_named(void **state)
{
    (void)state;
    the_step_that_fails_is_named("this host's NICs can't be listed");
}

static void sockets_that_cannot_be_opened_are_named(void **state)
{
    (void)state; /* the NICs are known from the tests before */
    the_step_that_fails_is_named("sockets can't be opened");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nics_that_cannot_be_listed_are_named),
        cmocka_unit_test(before_v9_small_receives_are_staged),
        cmocka_unit_test(hints_are_taken_and_their_lack_is_known),
        cmocka_unit_test(memory_is_registered),
        cmocka_unit_test(writes_without_queue_pairs_are_told),
        cmocka_unit_test(marks_of_queue_pairs_are_read),
        cmocka_unit_test(nothing_is_read_from_the_environment_later),
        cmocka_unit_test(gpus_are_taken_where_a_device_does),
        cmocka_unit_test(a_failure_is_logged_once),
        cmocka_unit_test(sockets_that_cannot_be_opened_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
