/* sluice park: moves a workload's GPU memory to the host and gives up its request, until sluice
 * resume. */
#include "cli/conn/parking.h"

const struct sl_option sl_verb_park_options[] = {SL_PARKING_OPTIONS("on the host")};

int sl_verb_park(int argc, char **argv)
{
	return sl_parking_main(SL_VERB_park, true, argc, argv);
}
