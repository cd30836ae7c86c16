/* sluice move: takes a running workload to other GPUs of the same model. */
#include "cli/conn/parking.h"

const struct sl_option sl_verb_move_options[] = {
	SL_OPT_AS("gpu", struct sl_parking, gpus, STRING, "N", 0, 0,
		"The GPU, as sluice gpus numbers it; several as N,M."),
	SL_PARKING_OPTIONS("on that GPU")};

int sl_verb_move(int argc, char **argv)
{
	return sl_parking_main(SL_VERB_move, false, argc, argv);
}
