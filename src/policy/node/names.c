/*
 * names - of events and actions, for traces
 */
#include "policy/node.h"

static const char *const events[SL_EVENTS] = {
#define SL_EVENT(NAME, name, fields) [SL_EVENT_##NAME] = #NAME,
#include "policy/node/event.def"
#undef SL_EVENT
};

static const char *const actions[SL_ACTIONS] = {
#define SL_ACTION(NAME, name, fields) [SL_ACTION_##NAME] = #NAME,
#include "policy/node/action.def"
#undef SL_ACTION
};

const char *sl_event_name(uint32_t type)
{
	return type < SL_EVENTS ? events[type] : "?";
}

const char *sl_action_name(uint32_t type)
{
	return type < SL_ACTIONS ? actions[type] : "?";
}
