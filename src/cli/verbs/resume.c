/* sluice resume: gives a parked workload its request back, and returns its memory to its GPUs. */
#include "cli/conn/parking.h"

const struct sl_option sl_verb_resume_options[] = {
	SL_PARKING_OPTIONS("on its GPUs again")};

int sl_verb_resume(int argc, char **argv)
{
	return sl_parking_main(SL_VERB_resume, false, argc, argv);
}
