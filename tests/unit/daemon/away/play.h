/*
 * play - what the stub of sluice-move does with an order, by the number of its process
 *
 * The stub finds its folder in SLUICE_SOFTGPU, which the daemon passes on. Into the file log there
 * it writes a line for its start (uid and gid), for each variable of its environment, and for each
 * order. After an order, each of its pairs has a line: the last bytes of both. With a file
 * never-ready there it ends before it is ready, with slow-start it hangs.
 */
#ifndef TESTS_AWAY_PLAY_H
#define TESTS_AWAY_PLAY_H

enum play {
	PLAY_DONE = 1,
	PLAY_REFUSED,    /* 600 at LOCK */
	PLAY_DIE,        /* of an AWAY and a BACK */
	PLAY_DIE_ONCE,   /* by the file died */
	PLAY_DIE_AWAY,   /* of an AWAY; a BACK is DONE */
	PLAY_HANG_ONCE,  /* by the file died */
	PLAY_STUCK,      /* an AWAY is AWAY_STILL, with 700 at UNLOCK; a BACK is DONE */
	PLAY_STUCK_BACK, /* both are */
	PLAY_UNABLE,     /* 100 at INIT */
	PLAY_ALONE,      /* BROKEN if another order comes meanwhile */
	PLAY_SHORT,      /* nonsense, once each by the file died, then DONE */
	PLAY_LONG,
	PLAY_OTHER_ORDER,
	PLAY_BAD_OUTCOME,
	PLAY_BAD_CALL,
	PLAY_READY_AGAIN,
	PLAY_TWICE,       /* two answers */
	PLAY_CROWD = 1000 /* from here on; answered once 64 are there, or the last is */
};
#define PLAY_CROWD_SIZE 70

#endif
