/* main.c: foliot-lab, the lab's command by itself: what the lab's own tests run. */
#include "lab/cmd.h"

int main(int argc, char **argv)
{
    return lab_main(argc, argv);
}
