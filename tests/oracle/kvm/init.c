/* SPDX-License-Identifier: MIT */
/*
 * init.c - the program oracle-kvm: executes scripts on KVM.
 *
 * As the first process of a machine it mounts what it needs, takes the scripts
 * from /scripts, prints the results on the console, and switches the machine off.
 * Anywhere else, on an Arm machine with KVM, it reads its standard input.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../run.h"

static int run_as_init(void)
{
	struct utsname name;
	FILE *in;
	int status = -1;

	mkdir("/dev", 0755);
	if (mount("devtmpfs", "/dev", "devtmpfs", 0, NULL) < 0 && errno != EBUSY)
		printf("oracle-kvm: cannot mount /dev: %s\n", strerror(errno));
	in = fopen("/scripts", "r");
	uname(&name);
	printf("oracle-kvm: Linux %s\n", name.release);
	if (in)
		status = run_scripts(in, stdout);
	else
		printf("oracle-kvm: cannot open /scripts: %s\n", strerror(errno));
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	return status;
}

int main(void)
{
	if (getpid() == 1)
		return run_as_init();
	return run_scripts(stdin, stdout) == 0 ? 0 : 1;
}
