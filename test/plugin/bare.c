/* bare.c PLUGIN: sends a message through the plugin to itself, in an empty root: no /proc, /sys, /dev, /run, /tmp, no user, no
 * network but the loopback. It needs libc only, because its root has no more. Prints "ok DEVICE GLIBC". */
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/perf/net_client.h"

#define SIZE  300000
#define LOOKS 200000 /* of 0.5 ms and more: on a busy machine this program may get little time */

static void logger(int level, unsigned long flags, const char *file, int line, const char *format,
                   ...)
{
    (void)flags;
    (void)file;
    (void)line;
    if (level <= NCCL_LOG_WARN) {
        fprintf(stderr, "%s\n", format);
    }
}

static void good(enum nccl_result result, const char *what)
{
    if (result != NCCL_SUCCESS) {
        printf("%s: %s\n", what, net_result_name((int)result));
        exit(1);
    }
}

static void wait_for(struct net_client *net, void *request, const char *what)
{
    for (int done = 0, looks = 0; !done; looks++) {
        good(net_test(net, request, &done, NULL), what);
        if (looks > LOOKS) {
            printf("%s: never done\n", what);
            exit(1);
        }
        usleep(500);
    }
}

static void transfer(struct net_client *net, void *sender, void *receiver)
{
    static char from[SIZE], to[SIZE];
    void *mhandles[2] = {NULL, NULL}, *send = NULL, *receive = NULL;
    struct net_receive wish = {.count = 1, .data = {to}, .sizes = {SIZE}, .tags = {7}};

    for (int i = 0; i < SIZE; i++) {
        from[i] = (char)(i * 31);
    }
    good(net_register(net, sender, from, SIZE, &mhandles[0]), "regMr");
    good(net_register(net, receiver, to, SIZE, &mhandles[1]), "regMr");
    wish.mhandles[0] = mhandles[1];
    for (int looks = 0; (send == NULL || receive == NULL) && looks < LOOKS; looks++) {
        if (receive == NULL) {
            good(net_irecv(net, receiver, &wish, &receive), "irecv");
        }
        if (send == NULL) {
            good(net_isend(net, sender, from, SIZE, 7, mhandles[0], &send), "isend");
        }
        usleep(send == NULL || receive == NULL ? 500 : 0);
    }
    wait_for(net, receive, "receive");
    wait_for(net, send, "send");
    if (memcmp(from, to, SIZE) != 0) {
        puts("other bytes came than went");
        exit(1);
    }
}

int main(int argc, char *argv[])
{
    struct net_client net = {0};
    struct nccl_net_properties_v12 properties;
    char why[512], handle[NCCL_HANDLE_SIZE] = {0}, name[64];
    void *context = NULL, *listener = NULL, *sender = NULL, *receiver = NULL;
    int devices = 0;

    if (argc != 2 || net_client_open(&net, argv[1], 0, why, sizeof(why)) < 0) {
        printf("not loaded: %s\n", argc == 2 ? why : "which?");
        return 1;
    }
    good(net_init(&net, 1, logger, &context), "init");
    good(net_devices(&net, &devices), "devices");
    if (devices < 1) {
        puts("no device");
        return 1;
    }
    good(net_properties(&net, 0, &properties), "getProperties");
    snprintf(name, sizeof(name), "%s", properties.name);
    good(net_listen(&net, context, 0, handle, &listener), "listen");
    for (int looks = 0; (sender == NULL || receiver == NULL) && looks < LOOKS; looks++) {
        if (sender == NULL) {
            good(net_connect(&net, context, 0, handle, &sender), "connect");
        }
        if (receiver == NULL) {
            good(net_accept(&net, listener, &receiver), "accept");
        }
        usleep(500);
    }
    if (sender == NULL || receiver == NULL) {
        puts("no connection to itself");
        return 1;
    }
    good(net_close_listen(&net, listener), "closeListen");
    transfer(&net, sender, receiver);
    good(net_close_send(&net, sender), "closeSend");
    good(net_close_receive(&net, receiver), "closeRecv");
    good(net_finalize(&net, context), "finalize");
    net_client_close(&net);
    printf("ok %s glibc %s\n", name, gnu_get_libc_version());
    return 0;
}
