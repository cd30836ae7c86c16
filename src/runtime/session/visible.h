/*
 * visible - CUDA_VISIBLE_DEVICES while the driver of a process starts
 *
 * The variable names the GPUs on which the workload began, as numbers or UUIDs. If the workload has
 * moved since, a new process must get the GPUs of today in the same places. So the variable is
 * changed for the driver's start alone: the program, its children and their look-ups in NVML
 * (nvml_devices.c) always see the first names. A program that named fewer GPUs gets those.
 *
 * Another thread that reads the variable meanwhile gets either value. The C library replaces it by
 * one store. A child that another thread starts meanwhile inherits the changed value.
 */
#ifndef SL_RUNTIME_SESSION_VISIBLE_H
#define SL_RUNTIME_SESSION_VISIBLE_H

/* Waits for the join if the variable names a GPU. What sl_visible_end takes; NULL: the variable is
 * right as it is. */
char *sl_visible_begin(void);
void sl_visible_end(char *before);
/* In the child of a fork. */
void sl_visible_forget(void);

#endif
