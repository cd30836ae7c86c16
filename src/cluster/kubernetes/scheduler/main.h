/*
 * main - the command line of `sluice-kube scheduler`
 */
#ifndef SL_CLUSTER_KUBERNETES_SCHEDULER_MAIN_H
#define SL_CLUSTER_KUBERNETES_SCHEDULER_MAIN_H

/* argv[0] is the role. Returns the exit status. */
int sl_kube_scheduler_main(int argc, char **argv);

#endif
