/* The agents' HTTP client with our own server: the certificate that a call uses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "platform/http/client.h"
#include "platform/http/server.h"

struct world {
    sd_event *loop;
    struct http_server *server;
    struct http_client *client;
    char *authority_key, *authority, *server_key, *server_certificate, *host_key;
    char folder[40], serial[TLS_SERIAL_SIZE];
    char authority_path[80], certificate_path[80], key_path[80], at[32];
};

static void on_request(void *context, struct http_request *request)
{
    struct world *w = context;
    assert_non_null(http_identity(request));
    snprintf(w->serial, sizeof(w->serial), "%s", http_identity(request)->serial);
    http_answer_text(request, 200, "heard");
}

static void put(const struct world *w, const char *name, const char *text, char ret_path[80])
{
    snprintf(ret_path, 80, "%s/%s", w->folder, name);
    assert_int_equal(tls_write_file(ret_path, text, strlen(text), 0600), 0);
}

/* Puts a certificate for the host on its disk; returns its serial number. */
static void certify(struct world *w, char ret_serial[TLS_SERIAL_SIZE])
{
    struct tls_certificate read;
    char *text = NULL;
    const struct tls_issue issue = {.authority = w->authority,
                                    .authority_key = w->authority_key,
                                    .key = w->host_key,
                                    .purpose = TLS_HOST,
                                    .name = "h0",
                                    .not_before = time(NULL) - 5,
                                    .not_after = time(NULL) + 1000};
    assert_int_equal(tls_issue(&issue, &text), 0);
    assert_int_equal(tls_certificate_read(text, &read), 0);
    memcpy(ret_serial, read.serial, TLS_SERIAL_SIZE);
    put(w, "host.pem", text, w->certificate_path);
    free(text);
}

static int set_up(void **state)
{
    static struct world world;
    struct world *w = &world;
    const time_t now = time(NULL);
    *w = (struct world){.folder = "/tmp/foliot-http-XXXXXX"};
    assert_non_null(mkdtemp(w->folder));
    assert_int_equal(tls_key_new(TLS_KEY_ED25519, &w->authority_key), 0);
    assert_int_equal(tls_authority_new(w->authority_key, "a", now - 5, now + 1000, &w->authority),
                     0);
    assert_int_equal(tls_key_new(TLS_KEY_ED25519, &w->server_key), 0);
    assert_int_equal(tls_key_new(TLS_KEY_ED25519, &w->host_key), 0);
    const struct tls_issue issue = {.authority = w->authority,
                                    .authority_key = w->authority_key,
                                    .key = w->server_key,
                                    .purpose = TLS_SERVER,
                                    .name = TLS_SERVER_NAME,
                                    .not_before = now - 5,
                                    .not_after = now + 1000};
    assert_int_equal(tls_issue(&issue, &w->server_certificate), 0);
    put(w, "authority.pem", w->authority, w->authority_path);
    put(w, "host.key", w->host_key, w->key_path);
    assert_int_equal(sd_event_new(&w->loop), 0);
    const struct http_server_config config = {.loop = w->loop,
                                              .address = "127.0.0.1:0",
                                              .key = w->server_key,
                                              .certificate = w->server_certificate,
                                              .trust = w->authority,
                                              .body_max = 1000,
                                              .connection_max = 16,
                                              .arrive_ms = 60000,
                                              .idle_s = 60,
                                              .stream_max = 1000,
                                              .on_request = on_request,
                                              .context = w};
    assert_int_equal(http_server_open(&config, &w->server), 0);
    snprintf(w->at, sizeof(w->at), "127.0.0.1:%u", http_server_port(w->server));
    assert_int_equal(http_client_open(w->loop, &w->client), 0);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    http_client_close(w->client);
    http_server_close(w->server);
    sd_event_unref(w->loop);
    tls_wipe(w->authority_key);
    tls_wipe(w->server_key);
    tls_wipe(w->host_key);
    free(w->authority);
    free(w->server_certificate);
    unlink(w->authority_path);
    unlink(w->certificate_path);
    unlink(w->key_path);
    return rmdir(w->folder);
}

static void on_done(void *context, const struct http_result *result)
{
    assert_int_equal(result->error, 0);
    assert_int_equal(result->status, 200);
}

/* Makes one call; returns the certificate that the server saw. */
static const char *called(struct world *w)
{
    const struct http_call call = {.url = "https://" TLS_SERVER_NAME "/",
                                   .connect_to = w->at,
                                   .authority = w->authority_path,
                                   .certificate = w->certificate_path,
                                   .key = w->key_path,
                                   .body = "x",
                                   .size = 1,
                                   .answer_max = 1000,
                                   .timeout_ms = 60000};
    w->serial[0] = 0;
    assert_int_equal(http_client_call(w->client, &call, on_done, NULL), 0);
    while (http_client_busy(w->client)) {
        assert_true(sd_event_run(w->loop, UINT64_MAX) >= 0);
    }
    return w->serial;
}

/* The old connection stayed open beside the new one, and later calls took it again. */
static void after_a_reset_the_new_certificate_is_shown_for_good(void **state)
{
    struct world *w = *state;
    char first[TLS_SERIAL_SIZE], second[TLS_SERIAL_SIZE];
    struct http_counters counters;
    certify(w, first);
    assert_string_equal(called(w), first);
    assert_string_equal(called(w), first);
    http_server_counters(w->server, &counters);
    assert_int_equal(counters.connections, 1); /* kept between calls */
    certify(w, second);
    http_client_reset(w->client);
    for (unsigned i = 0; i < 4; i++) {
        assert_string_equal(called(w), second);
    }
    http_server_counters(w->server, &counters);
    assert_int_equal(counters.connections, 2);
    assert_int_equal(counters.connections_now, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(after_a_reset_the_new_certificate_is_shown_for_good, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
