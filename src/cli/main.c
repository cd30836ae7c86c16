/* The program. All code is in cli_lib, so unit tests can link it. */
#include "cli/line/cli.h"

int main(int argc, char **argv)
{
	return sl_cli_main(argc, argv);
}
