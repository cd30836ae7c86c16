/*
 * multicast - what multicast objects have bound; the functions themselves are hooks (hooks.def)
 */
#ifndef SL_RUNTIME_SHARE_MULTICAST_H
#define SL_RUNTIME_SHARE_MULTICAST_H

/* In the child of a fork. */
void sl_multicast_forget(void);

#endif
