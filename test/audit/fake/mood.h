/* mood.h: how a fake library misbehaves. The variable MOOD has one of: hang FUNCTION · crash FUNCTION · late FUNCTION · error N
 * FUNCTION. FUNCTION may be "all". */
#pragma once
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The function's status; 0: no error. */
static int mood(const char *function)
{
    const char *text = getenv(MOOD);
    char word[16] = "", of[64] = "";
    int code = 0;

    if (text == NULL ||
        (sscanf(text, "error %d %63s", &code, of) != 2 &&
         sscanf(text, "%15s %63s", word, of) != 2) ||
        (strcmp(of, function) != 0 && strcmp(of, "all") != 0)) {
        return 0;
    }
    while (strcmp(word, "hang") == 0) {
        pause();
    }
    if (strcmp(word, "crash") == 0) {
        raise(SIGSEGV);
    }
    if (strcmp(word, "late") == 0) {
        sleep(60);
    }
    return code;
}

#define ANSWER(name, arguments, ...)                                                               \
    int name arguments;                                                                            \
    int name arguments                                                                             \
    {                                                                                              \
        const int answer = mood(#name);                                                            \
        if (answer == 0) {                                                                         \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
        return answer;                                                                             \
    }
