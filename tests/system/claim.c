/*
 * claim - a workload with a socket of its own, as sluice-kube makes it for a claim of Kubernetes
 *
 *   claim add SOCKET KEY GPU REQUEST_MIB LIMIT_MIB [reaches]
 *   claim end SOCKET KEY
 *
 * GPU: its UUID. reaches: its containers may get other GPUs' device nodes.
 * COMPUTE of the environment: its compute request in thousandths. Prints the reply; status
 * 1 if it is a refusal, 75 if another workload is leaving the GPU.
 */
#include "wire/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int connect_to(const char *path)
{
	int fd = sl_wire_connect(path, NULL);
	union sl_msg msg, answer;

	if (fd < 0)
		return fd;
	sl_wire_init(&msg, SL_MSG_HELLO);
	msg.hello.role = SL_ROLE_CONTROL;
	while (sl_wire_send(fd, &msg) == SL_WIRE_OK &&
		sl_wire_recv(fd, SL_FROM_DAEMON, &answer, NULL) == SL_WIRE_OK) {
		if (answer.head.type == SL_MSG_WELCOME)
			return fd;
		if (answer.head.type != SL_MSG_CHALLENGE)
			break;
		sl_wire_proof(&msg, &answer);
	}
	return -1;
}

static void fill_add(char **word, int count, union sl_msg *msg)
{
	struct sl_msg_entry_add *add = &msg->entry_add;
	const char *compute = getenv("COMPUTE");

	sl_wire_init(msg, SL_MSG_ENTRY_ADD);
	add->request_kind = add->limit_kind = SL_AMOUNT_BYTES;
	add->request_value = strtoull(word[5], NULL, 10) * SL_MIB;
	add->limit_value = strtoull(word[6], NULL, 10) * SL_MIB;
	add->gpu_count = 1;
	add->compute_request_pm = compute ? (uint32_t)strtoul(compute, NULL, 10) : 0;
	add->priority_biased = SL_PRIORITY_BIAS;
	add->flags = SL_RUN_VISIBLE_SET | (count > 7 ? SL_ENTRY_REACHES : 0);
	sl_wire_str(add->key, sizeof(add->key), word[3]);
	sl_wire_str(add->name, sizeof(add->name), word[3]);
	sl_wire_str(add->command, sizeof(add->command), "pod");
	sl_wire_str(add->visible, sizeof(add->visible), word[4]);
}

int main(int argc, char **argv)
{
	bool adds = argc >= 7 && strcmp(argv[1], "add") == 0;
	const struct sl_msg_entry_reply *reply;
	union sl_msg msg;
	int fd = adds || argc == 4 ? connect_to(argv[2]) : -1;

	if (fd < 0)
		return 99;
	if (adds) {
		fill_add(argv, argc, &msg);
	} else {
		sl_wire_init(&msg, SL_MSG_ENTRY_END);
		sl_wire_str(msg.entry_end.key, sizeof(msg.entry_end.key), argv[3]);
	}
	if (sl_wire_send(fd, &msg) != SL_WIRE_OK ||
		sl_wire_recv(fd, SL_FROM_DAEMON, &msg, NULL) != SL_WIRE_OK ||
		msg.head.type != SL_MSG_ENTRY_REPLY)
		return 99;
	reply = &msg.entry_reply;
	printf("{\"ok\":%u,\"reach\":%u,\"leaving\":%u,\"folder\":\"%s\",\"text\":\"%s\"}"
	       "\n",
		reply->ok, reply->reach, reply->leaving, reply->folder, reply->text);
	return reply->ok ? 0 : reply->leaving ? 75 : 1;
}
