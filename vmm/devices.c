/* SPDX-License-Identifier: MIT */
/* The devices on the PCI bus: see devices.h. */
#include "devices.h"

#include <errno.h>
#include <string.h>

#include "gic.h"
#include "machine.h"
#include "snapshot_file.h"
#include "util.h"
#include "vhost_user_blk.h"
#include "virtio_blk.h"
#include "virtio_pci.h"

/* Puts @device on the bus; it is the machine's afterwards, or destroyed. */
static int add_device(struct machine *machine, struct virtio_device *device, unsigned vectors)
{
	int ret;

	device->num_vectors = (uint16_t)vectors;
	ret = virtio_pci_create(&machine->pci, device, &machine->devices[machine->num_devices]);

	if (ret) {
		message("%s: cannot be put on the PCI bus: %s", device->name, strerror(-ret));
		device->ops->destroy(device);
		return ret;
	}
	machine->num_devices++;
	return 0;
}

/* One for each vCPU, if there are as many. */
static unsigned default_queues(const struct machine *machine)
{
	return machine->num_vcpus < VIRTIO_MAX_QUEUES ? machine->num_vcpus : VIRTIO_MAX_QUEUES;
}

static int make_vhost_user_disk(struct machine *machine, const struct disk_option *option,
				struct virtio_device **device)
{
	const struct vhost_user_blk_config config = {
		.socket = option->path,
		.queues = option->queues,
		.default_queues = default_queues(machine),
		.ram_fd = machine->ram_fd,
	};

	return vhost_user_blk_create(&config, &machine->guest_ram, device);
}

/*
 * In virtual time nothing may depend on the host's scheduler. And a vCPU whose barriers the emulator has dropped must not
 * read an entry of a ring before the index that announces it: beside other threads that takes a host that keeps the order
 * of loads.
 */
static bool may_have_threads(const struct machine *machine)
{
#ifdef __x86_64__
	return !machine->virtual_time;
#else
	(void)machine;
	return false;
#endif
}

static int make_disk(struct machine *machine, const struct disk_option *option, struct virtio_device **device)
{
	const struct virtio_blk_config config = {
		.path = option->path,
		.queues = option->queues ? option->queues : default_queues(machine),
		.read_only = option->read_only,
		.threads = may_have_threads(machine),
	};

	return virtio_blk_create(&config, &machine->guest_ram, device);
}

static int add_disk(struct machine *machine, const struct disk_option *option)
{
	struct virtio_device *device;
	const int ret = option->vhost_user ? make_vhost_user_disk(machine, option, &device) :
					     make_disk(machine, option, &device);

	return ret ? ret : add_device(machine, device, option->vectors);
}

int devices_create(struct machine *machine)
{
	int ret = 0;

	if (machine->options->num_disks > 0)
		ret = gic_create_routes(machine);
	pci_host_init(&machine->pci, machine, machine->routes, machine->irqfds);
	for (unsigned i = 0; i < machine->options->num_disks && !ret; i++)
		ret = add_disk(machine, &machine->options->disks[i]);
	return ret;
}

void devices_reset(struct machine *machine)
{
	for (unsigned i = 0; i < machine->num_devices; i++)
		virtio_pci_reset(machine->devices[i]);
}

int devices_can_be_saved(const struct machine *machine)
{
	for (unsigned i = 0; i < machine->num_devices; i++) {
		if (virtio_pci_can_be_saved(machine->devices[i]))
			continue;
		message("the machine cannot be saved: disk %u is served by another process, which knows a part of its state",
			i);
		return -ENOTSUP;
	}
	return 0;
}

void devices_pause(struct machine *machine)
{
	for (unsigned i = 0; i < machine->num_devices; i++)
		virtio_pci_pause(machine->devices[i]);
}

void devices_resume(struct machine *machine)
{
	for (unsigned i = 0; i < machine->num_devices; i++)
		virtio_pci_resume(machine->devices[i]);
}

void devices_save(const struct machine *machine, struct snapshot_out *out)
{
	for (unsigned i = 0; i < machine->num_devices; i++) {
		snapshot_out_begin(out, "virtio", i);
		virtio_pci_save(machine->devices[i], out);
		snapshot_out_end(out);
	}
}

int devices_load(struct machine *machine, const struct snapshot_file *file)
{
	int ret = 0;

	for (unsigned i = 0; i < machine->num_devices && !ret; i++) {
		struct snapshot_in in;

		ret = snapshot_in_begin(&in, file, "virtio", i);
		if (ret)
			break;
		virtio_pci_load(machine->devices[i], &in);
		ret = snapshot_in_end(&in);
	}
	return ret;
}

void devices_destroy(struct machine *machine)
{
	for (unsigned i = 0; i < machine->num_devices; i++)
		virtio_pci_destroy(machine->devices[i]);
	machine->num_devices = 0;
	gic_destroy_routes(machine);
}
