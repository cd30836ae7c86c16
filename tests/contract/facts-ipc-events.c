/*
 * facts-ipc-events - events of one process used in another
 *
 * The second process is this executable again (contract_again); it gets the handle on its standard
 * input and answers by its exit status.
 */
#include "contract.h"

#include <stdlib.h>
#include <unistd.h>

#define MANUAL "driver API manual"

static CUevent shared_event(void)
{
	CUevent event;

	OK(cuEventCreate, &event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
	return event;
}

static CUevent opened(void)
{
	CUipcEventHandle handle;
	CUevent event;

	if (read(STDIN_FILENO, &handle, sizeof(handle)) != sizeof(handle))
		contract_skip("no handle came");
	contract_context();
	OK(cuIpcOpenEventHandle, &event, handle);
	return event;
}

/* Not ready, then ready; a stream that waits for it goes on. */
int contract_event_wait(void)
{
	CUevent event = opened();
	CUstream stream;

	IS(ERROR_NOT_READY, cuEventQuery, event);
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuStreamWaitEvent, stream, event, 0);
	OK(cuStreamSynchronize, stream);
	OK(cuEventQuery, event);
	OK(cuEventSynchronize, event);
	OK(cuEventDestroy_v2, event);
	return 0;
}

/* Records behind half a second of work, and stays until that is over. */
int contract_event_record(void)
{
	CUevent event = opened();
	CUstream stream;

	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	contract_spin(stream, 300);
	OK(cuEventRecord, event, stream);
	OK(cuStreamSynchronize, stream);
	return 0;
}

/* Records behind endless work and is gone. */
int contract_event_die(void)
{
	CUevent event = opened();
	CUstream stream;

	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	contract_spin(stream, 100000);
	OK(cuEventRecord, event, stream);
	_exit(0);
}

FACT(ipc_event_flags, MANUAL, SAME,
	"only an event made for it can go to other processes, and that has no time")
{
	CUipcEventHandle handle;
	CUevent event;

	contract_context();
	IS(ERROR_INVALID_VALUE, cuEventCreate, &event, CU_EVENT_INTERPROCESS);
	OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
	FAILS(cuIpcGetEventHandle, &handle, event);
	event = shared_event();
	IS(ERROR_INVALID_VALUE, cuIpcGetEventHandle, NULL, event);
	OK(cuIpcGetEventHandle, &handle, event);
}

FACT(ipc_event_rubbish, MANUAL, SAME, "rubbish is no handle")
{
	CUipcEventHandle handle;
	CUevent event;

	contract_context();
	memset(&handle, 0x5a, sizeof(handle));
	FAILS(cuIpcOpenEventHandle, &event, handle);
}

FACT(ipc_event_waited, MANUAL, SAME, "another process can wait for this one's work")
{
	CUipcEventHandle handle;
	CUstream stream;
	CUevent event;

	contract_context();
	event = shared_event();
	OK(cuIpcGetEventHandle, &handle, event);
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	contract_spin(stream, 1500);
	OK(cuEventRecord, event, stream);
	HOLDS(contract_again("event-wait", -1, &handle, sizeof(handle)), ==, 0);
	/* It went on because the work here was over. */
	OK(cuStreamQuery, stream);
}

FACT(ipc_event_recorded, MANUAL, SAME, "and record the event for this one")
{
	CUipcEventHandle handle;
	CUstream stream;
	CUevent event;

	contract_context();
	event = shared_event();
	OK(cuIpcGetEventHandle, &handle, event);
	OK(cuEventQuery, event); /* never recorded */
	HOLDS(contract_again("event-record", -1, &handle, sizeof(handle)), ==, 0);
	OK(cuEventQuery, event);
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuStreamWaitEvent, stream, event, 0);
	OK(cuStreamSynchronize, stream);
}

FACT(ipc_event_death, "frameworks rely on it", SAME,
	"what a dead process recorded holds nobody up")
{
	CUipcEventHandle handle;
	CUevent event;

	contract_context();
	event = shared_event();
	OK(cuIpcGetEventHandle, &handle, event);
	HOLDS(contract_again("event-die", -1, &handle, sizeof(handle)), ==, 0);
	OK(cuEventSynchronize, event);
}

FACT(ipc_event_here, MANUAL, SAME, "a process does not open its own event")
{
	CUipcEventHandle handle;
	CUevent event;

	contract_context();
	OK(cuIpcGetEventHandle, &handle, shared_event());
	FAILS(cuIpcOpenEventHandle, &event, handle);
}
