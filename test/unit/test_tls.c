/* Authority, requests, certificates: a signed certificate has the right content, and no wrong request is signed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "platform/message/message.h"
#include "platform/tls/tls.h"

static void signs_for_a_name(void **state)
{
    char *authority_key = NULL, *authority = NULL, *key = NULL, *request = NULL, *signed_ = NULL;
    struct tls_certificate a, c;
    const time_t now = time(NULL);
    assert_int_equal(tls_key_new(TLS_KEY_ED25519, &authority_key), 0);
    assert_int_equal(tls_authority_new(authority_key, "test", now - 5, now + 1000, &authority), 0);
    assert_int_equal(tls_key_new(TLS_KEY_ED25519, &key), 0);
    assert_string_not_equal(key, authority_key);
    assert_int_equal(tls_request_new(key, "whatever-it-asks-for", &request), 0);
    struct tls_issue issue = {.authority = authority,
                              .authority_key = authority_key,
                              .request = request,
                              .purpose = TLS_HOST,
                              .name = "host-7.rack",
                              .not_before = now - 5,
                              .not_after = now + 60};
    assert_int_equal(tls_issue(&issue, &signed_), 0);
    assert_int_equal(tls_certificate_read(signed_, &c), 0);
    assert_string_equal(c.name, "host-7.rack");
    assert_int_equal(c.not_after, now + 60);
    assert_int_equal(strlen(c.serial), 32);
    assert_int_equal(tls_certificate_read(authority, &a), 0);
    assert_true(memcmp(a.pin, c.pin, sizeof(a.pin)) != 0);
    char *again = NULL;
    struct tls_certificate d;
    assert_int_equal(tls_issue(&issue, &again), 0);
    assert_int_equal(tls_certificate_read(again, &d), 0);
    assert_string_not_equal(c.serial, d.serial);
    assert_memory_equal(c.pin, d.pin, sizeof(c.pin)); /* the key's */
    /* a changed request is no longer signed with its key */
    char *at = strstr(request, "\n") + 40, *bad = NULL;
    *at = *at == 'A' ? 'B' : 'A';
    assert_int_equal(tls_issue(&issue, &bad), -EINVAL);
    *at = 0;
    assert_int_equal(tls_issue(&issue, &bad), -EINVAL);
    issue.request = "nothing of the kind";
    assert_int_equal(tls_issue(&issue, &bad), -EINVAL);
    issue = (struct tls_issue){.authority = authority,
                               .authority_key = authority_key,
                               .key = key,
                               .purpose = TLS_SERVER,
                               .name = "../etc",
                               .not_before = now,
                               .not_after = now + 1};
    assert_int_equal(tls_issue(&issue, &bad), -EINVAL);
    assert_null(bad);
    tls_wipe(authority_key);
    tls_wipe(key);
    free(authority);
    free(request);
    free(signed_);
    free(again);
}

/* For browsers: P-256 in the certificate and in its authority, each name with its right type. */
static void signs_for_browsers(void **state)
{
    static const char *const wanted[] = {"controller.example", "10.1.2.3", "fd00::7", NULL};
    static const char *const other[] = {"controller.example", "10.1.2.4", NULL};
    char *authority_key = NULL, *authority = NULL, *key = NULL, *made = NULL;
    const time_t now = time(NULL);
    assert_int_equal(tls_key_new(TLS_KEY_P256, &authority_key), 0);
    assert_int_equal(tls_authority_new(authority_key, "test", now, now + 1000, &authority), 0);
    assert_int_equal(tls_key_new(TLS_KEY_P256, &key), 0);
    const struct tls_issue issue = {.authority = authority,
                                    .authority_key = authority_key,
                                    .key = key,
                                    .purpose = TLS_SERVER,
                                    .name = TLS_SERVER_NAME,
                                    .names = wanted,
                                    .not_before = now,
                                    .not_after = now + 1000};
    assert_int_equal(tls_issue(&issue, &made), 0);
    assert_true(tls_certificate_names(made, wanted));
    assert_false(tls_certificate_names(made, other));
    assert_false(tls_certificate_names("nonsense", wanted));
    const char *const texts[] = {authority, made};
    for (size_t i = 0; i < 2; i++) {
        const gnutls_datum_t d = {(unsigned char *)(uintptr_t)texts[i], (unsigned)strlen(texts[i])};
        gnutls_x509_crt_t crt = NULL;
        assert_int_equal(gnutls_x509_crt_init(&crt), 0);
        assert_int_equal(gnutls_x509_crt_import(crt, &d, GNUTLS_X509_FMT_PEM), 0);
        assert_int_equal(gnutls_x509_crt_get_pk_algorithm(crt, NULL), GNUTLS_PK_ECDSA);
        assert_int_equal(gnutls_x509_crt_get_signature_algorithm(crt), GNUTLS_SIGN_ECDSA_SHA256);
        gnutls_x509_crt_deinit(crt);
    }
    tls_wipe(authority_key);
    tls_wipe(key);
    free(authority);
    free(made);
}

static void names(void **state)
{
    assert_true(tls_name_good("h"));
    assert_true(tls_name_good("node-17.pod3"));
    const char *const bad[] = {
        "",     "-x",   ".x",
        "Host", "a b",  "a/b",
        "<b>",  "a\nb", "0123456789012345678901234567890123456789012345678901234567890123"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(tls_name_good(bad[i]));
    }
}

static void bombs_stay_small(void **state)
{
    static uint8_t zeros[4 << 20];
    struct message_buffer packed = {0}, out = {0};
    assert_int_equal(message_pack(zeros, sizeof(zeros), &packed), 0);
    assert_true(packed.size < 1000);
    assert_int_equal(message_unpack(packed.bytes, packed.size, sizeof(zeros), &out), 0);
    assert_int_equal(out.size, sizeof(zeros));
    message_buffer_done(&out);
    assert_int_equal(message_unpack(packed.bytes, packed.size, 100000, &out), -EMSGSIZE);
    assert_true(out.capacity < 400000);
    for (size_t n = 0; n < packed.size; n++) {
        assert_int_equal(message_unpack(packed.bytes, n, sizeof(zeros), &out),
                         n == 0 ? -EBADMSG : -EBADMSG);
    }
    assert_int_equal(message_unpack("garbage", 7, 1000, &out), -EBADMSG);
    message_buffer_done(&packed);
    message_buffer_done(&out);
}

static void an_arena_is_a_ceiling(void **state)
{
    struct message_arena a;
    assert_int_equal(message_arena_init(&a, 1000), 0);
    assert_non_null(message_arena_take(&a, 500));
    assert_null(message_arena_take(&a, 600));
    assert_null(message_arena_take(&a, SIZE_MAX));
    assert_null(message_arena_take(&a, SIZE_MAX - 8));
    message_arena_reset(&a);
    assert_non_null(message_arena_take(&a, 1000));
    assert_null(message_arena_take(&a, 1));
    message_arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signs_for_a_name),
        cmocka_unit_test(signs_for_browsers),
        cmocka_unit_test(names),
        cmocka_unit_test(bombs_stay_small),
        cmocka_unit_test(an_arena_is_a_ceiling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
