/*
 * exporter - makes a handle, exports it, frees it; goes on at each SIGUSR1
 */
#include "prog.h"

#include "base/sl.h"

#include <signal.h>
#include <unistd.h>

int main(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	CUmemGenericAllocationHandle handle;
	sigset_t set;
	int fd = -1, number;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGUSR1);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)prog_context(0);
	PROG_MUST(cuMemCreate(&handle, 64 * SL_MIB, &prop, 0));
	prog_say("{\"event\":\"plain\"}");
	(void)sigwait(&set, &number);
	PROG_MUST(cuMemExportToShareableHandle(
		&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	prog_say("{\"event\":\"exported\"}");
	(void)sigwait(&set, &number);
	(void)close(fd);
	PROG_MUST(cuMemRelease(handle));
	prog_say("{\"event\":\"freed\"}");
	(void)sigwait(&set, &number);
	return PROG_OK;
}
