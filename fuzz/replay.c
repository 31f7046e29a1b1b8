/* replay.c: main() of a target in the ordinary build. It runs the target once for each file that it is given, and for each file
 * of a folder that it is given. So what a fuzzer found once is tested for ever. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rbe");
    uint8_t *data = NULL;
    long size;

    if (f == NULL || fseek(f, 0, SEEK_END) != 0 || (size = ftell(f)) < 0) {
        perror(path);
        return 1;
    }
    rewind(f);
    data = malloc((size_t)size + 1); /* libFuzzer has buffers of the exact size; + 1 for size 0 */
    if (data == NULL || fread(data, 1, (size_t)size, f) != (size_t)size) {
        perror(path);
        return 1;
    }
    fclose(f);
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    return 0;
}

static int run_folder(const char *path, int *count)
{
    struct dirent **names;
    const int n = scandir(path, &names, NULL, alphasort);
    int failed = n < 0;

    for (int i = 0; i < n; i++) {
        char file[4096];
        if (names[i]->d_name[0] != '.') {
            snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
            failed |= run_file(file);
            (*count)++;
        }
        free(names[i]);
    }
    if (n >= 0) {
        free(names);
    }
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0, count = 0;

    for (int i = 1; i < argc; i++) {
        struct stat found;
        if (stat(argv[i], &found) == 0 && S_ISDIR(found.st_mode)) {
            failed |= run_folder(argv[i], &count);
        } else {
            failed |= run_file(argv[i]);
            count++;
        }
    }
    printf("%d inputs\n", count);
    return failed || count == 0;
}
