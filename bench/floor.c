/*
 * The floor of every UDP measurement: a server that sets QR in what it receives and sends it back, 64 datagrams a system
 * call. It knows nothing of DNS, so what it costs is the kernel's share, which any server has to pay.
 *
 * Usage: floor PORT, on 127.0.0.1. With `floor PORT turns`, it looks after each batch how long its thread had the processor
 * for it, and prints at SIGTERM: the milliseconds on the processor, how many batches took more than LONG, and the longest.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define BATCH 64
#define SLOT_OCTETS 4096
#define HEADER_OCTETS 12
#define SOCKET_BUFFER_OCTETS (4 * 1024 * 1024)
/* Milliseconds. */
#define LONG 5

static unsigned char slots[BATCH][SLOT_OCTETS];
static struct sockaddr_in clients[BATCH];
static struct iovec vectors[BATCH];
static struct mmsghdr messages[BATCH];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int open_socket(int port)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0)
		fail("socket");
	int octets = SOCKET_BUFFER_OCTETS;
	/* The forced form goes past the system's limit where there is the right to. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &octets, sizeof octets) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &octets, sizeof octets);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &octets, sizeof octets);
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
		fail("bind");
	return fd;
}

static void prepare_to_receive(void)
{
	for (int slot = 0; slot < BATCH; slot++) {
		vectors[slot] = (struct iovec){ .iov_base = slots[slot], .iov_len = SLOT_OCTETS };
		messages[slot].msg_hdr = (struct msghdr){
			.msg_name = &clients[slot],
			.msg_namelen = sizeof clients[slot],
			.msg_iov = &vectors[slot],
			.msg_iovlen = 1,
		};
	}
}

/* The length of the reply; 0 for what is no query. */
static unsigned int answer(unsigned char *message, unsigned int length)
{
	if (length < HEADER_OCTETS || (message[2] & 0x80) != 0)
		return 0;
	message[2] |= 0x80;
	return length;
}

static void send_all(int fd, int count)
{
	int done = 0;
	while (done < count) {
		int sent = sendmmsg(fd, messages + done, (unsigned int)(count - done), 0);
		if (sent > 0)
			done += sent;
		else if (errno != EINTR)
			/* The first of the rest was refused: its client is gone. */
			done++;
	}
}

static void serve_batch(int fd)
{
	prepare_to_receive();
	int received = recvmmsg(fd, messages, BATCH, MSG_WAITFORONE, NULL);
	if (received < 0) {
		if (errno == EINTR)
			return;
		fail("recvmmsg");
	}
	int replies = 0;
	for (int slot = 0; slot < received; slot++) {
		unsigned int length = answer(slots[slot], messages[slot].msg_len);
		if (length == 0)
			continue;
		vectors[slot].iov_len = length;
		messages[replies++].msg_hdr = messages[slot].msg_hdr;
	}
	send_all(fd, replies);
}

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

/* Milliseconds that this thread has had the processor for. */
static double processor_time(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static void serve_and_look(int fd)
{
	/* Without SA_RESTART: the signal ends the wait for a batch. */
	struct sigaction action = { .sa_handler = end };
	sigaction(SIGTERM, &action, NULL);
	double last = processor_time(), longest = 0;
	int count = 0;
	while (!ended) {
		serve_batch(fd);
		double now = processor_time(), turn = now - last;
		last = now;
		if (turn > LONG)
			count++;
		if (turn > longest)
			longest = turn;
	}
	printf("%.0f %d %.3f\n", last, count, longest);
}

int main(int argc, char **argv)
{
	int looks = argc == 3 && strcmp(argv[2], "turns") == 0;
	if (argc != 2 && !looks) {
		fprintf(stderr, "usage: floor PORT [turns]\n");
		return 2;
	}
	int fd = open_socket(atoi(argv[1]));
	if (looks) {
		serve_and_look(fd);
		return 0;
	}
	for (;;)
		serve_batch(fd);
}
