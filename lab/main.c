/* main.c: foliot-lab: the lab's command alone; the lab's tests run it. */
#include "lab/cmd.h"

int main(int argc, char **argv)
{
    return lab_main(argc, argv);
}
