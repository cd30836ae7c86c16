/* The handler only notes the signal; the waits use ppoll(2), which unblocks the signals
 * atomically. */
#include "cli/line/interrupt.h"

#include <poll.h>
#include <time.h>

static volatile sig_atomic_t came;
/* The former handlers. */
static struct sigaction on_int, on_term;
static sigset_t mask;

static void on_signal(int number)
{
	came = number;
}

void sl_interrupt_catch(sigset_t *unblocked)
{
	struct sigaction action = {.sa_handler = on_signal};
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &mask);
	*unblocked = mask;
	sigaction(SIGINT, &action, &on_int);
	sigaction(SIGTERM, &action, &on_term);
}

void sl_interrupt_release(void)
{
	sigaction(SIGINT, &on_int, NULL);
	sigaction(SIGTERM, &on_term, NULL);
	sigprocmask(SIG_SETMASK, &mask, NULL);
}

int sl_interrupt_came(void)
{
	return came;
}

bool sl_interrupt_sleep(const sigset_t *unblocked, unsigned int ms)
{
	const struct timespec span = {
		.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	if (!came)
		(void)ppoll(NULL, 0, &span, unblocked);
	return !came;
}

void sl_interrupt_die(void)
{
	sigset_t all;

	if (!came)
		return;
	signal(came, SIG_DFL);
	raise(came);
	sigemptyset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
}
