/* SPDX-License-Identifier: MIT */
/* The example of docs/embedding.md: a VMM's side of libvgic, with a guest that is a C function. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vgic/irqfd.h>
#include <vgic/msix.h>
#include <vgic/route.h>
#include <vgic/vgic.h>

#define DIST_BASE   0x08000000u
#define REDIST_BASE 0x080a0000u
#define ITS_BASE    0x08080000u
#define RAM_BASE    0x40000000u
#define RAM_SIZE    0x00200000u

#define NUM_GSIS   64
#define UART_GSI   1      /* SPI 33, level-sensitive */
#define DISK_GSI   16     /* and the one behind it: two vectors */
#define DISK_BDF   0x0008 /* PCI requester id: the DeviceID of its MSIs */
#define NUM_QUEUES 2

struct vmm {
	struct vgic *vgic;
	struct vgic_routes *routes;
	struct vgic_irqfds *irqfds;
	struct vgic_msix *disk;
	int disk_fds[NUM_QUEUES];
	uint64_t ram[RAM_SIZE / 8];
	sem_t wake; /* of the one vCPU */
	int failed;
};

static int guest_read(void *opaque, uint64_t address, void *buffer, size_t size)
{
	struct vmm *vmm = opaque;

	if (address < RAM_BASE || address - RAM_BASE > RAM_SIZE - size)
		return -EFAULT;
	memcpy(buffer, (char *)vmm->ram + (address - RAM_BASE), size);
	return 0;
}

static int guest_write(void *opaque, uint64_t address, const void *buffer, size_t size)
{
	struct vmm *vmm = opaque;

	if (address < RAM_BASE || address - RAM_BASE > RAM_SIZE - size)
		return -EFAULT;
	memcpy((char *)vmm->ram + (address - RAM_BASE), buffer, size);
	return 0;
}

/* From any thread: make the vCPU leave the guest (a signal, a hypervisor's call), or wake it. */
static void kick(void *opaque, struct vgic_vcpu *vcpu)
{
	struct vmm *vmm = opaque;

	(void)vcpu;
	sem_post(&vmm->wake);
}

static int create_controller(struct vmm *vmm)
{
	const struct vgic_vcpu_config vcpu = { .id = 0, .affinity = 0, .user = vmm };
	const struct vgic_redist_region region = { .base = REDIST_BASE, .num_frames = 1 };
	const struct vgic_its_config its = { .has_base = true, .base = ITS_BASE };
	struct vgic_irqfds_config irqfds;
	struct vgic_config config;
	int err;

	vgic_config_init(&config, VGIC_PROFILE_NATIVE);
	config.features |= VGIC_FEATURE_LPIS;
	config.num_vcpus = 1;
	config.vcpus = &vcpu;
	config.has_dist_base = true;
	config.dist_base = DIST_BASE;
	config.num_redist_regions = 1;
	config.redist_regions = &region;
	config.num_itses = 1;
	config.itses = &its;
	config.ops.kick = kick;
	config.ops.guest_read = guest_read;
	config.ops.guest_write = guest_write;
	config.opaque = vmm;
	err = vgic_create(&config, &vmm->vgic);
	if (!err)
		err = vgic_routes_create(vmm->vgic, NUM_GSIS, &vmm->routes);
	if (err)
		return err;
	vgic_irqfds_config_init(&irqfds); /* one thread that waits for eventfds */
	return vgic_irqfds_create(vmm->routes, &irqfds, &vmm->irqfds);
}

static int create_devices(struct vmm *vmm)
{
	struct vgic_route uart = { .type = VGIC_ROUTE_SPI };
	struct vgic_msix_config disk;
	uint32_t failed;
	int err;

	uart.to.spi.intid = 32 + UART_GSI;
	err = vgic_route_set(vmm->routes, UART_GSI, &uart);
	if (err)
		return err;

	vgic_msix_config_init(&disk);
	disk.num_vectors = NUM_QUEUES;
	disk.routes = vmm->routes;
	disk.irqfds = vmm->irqfds;
	disk.first_gsi = DISK_GSI;
	disk.devid = DISK_BDF;
	err = vgic_msix_create(&disk, &vmm->disk);
	if (err)
		return err;

	/* vhost-user: these go to the other process, which signals them. */
	for (unsigned i = 0; i < NUM_QUEUES; i++)
		vmm->disk_fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	err = vgic_msix_bind(vmm->disk, vmm->disk_fds, NUM_QUEUES, &failed);
	if (err)
		fprintf(stderr, "disk: no eventfd for vector %u: %s\n", (unsigned)failed, strerror(-err));
	return err;
}

/* The GIC's frames; false: the address is not ours, ask the other devices. */
static int trap_mmio_read(struct vmm *vmm, uint64_t address, unsigned width, uint64_t *value)
{
	return vgic_mmio_read(vmm->vgic, address, width, value) == 0;
}

static int trap_mmio_write(struct vmm *vmm, uint64_t address, unsigned width, uint64_t value)
{
	return vgic_mmio_write(vmm->vgic, address, width, value) == 0;
}

/* MSR and MRS with EC 0x18: VGIC_SYSREG_FROM_ISS(iss). -ENOENT: no register of the GIC. -EACCES: inject Undefined. */
static uint64_t trap_mrs(struct vgic_vcpu *vcpu, uint32_t reg)
{
	uint64_t value = 0;

	return vgic_icc_read(vcpu, reg, &value) == 0 ? value : 0;
}

static void trap_msr(struct vgic_vcpu *vcpu, uint32_t reg, uint64_t value)
{
	vgic_icc_write(vcpu, reg, value);
}

/* WFI: blocks until a line is up. A kick that comes before the semaphore is waited for is not lost. */
static void trap_wfi(struct vmm *vmm, struct vgic_vcpu *vcpu)
{
	while (vgic_prepare_wait(vcpu) == 0) {
		while (sem_wait(&vmm->wake) != 0)
			;
	}
	vgic_finish_wait(vcpu);
}

static void guest_main(struct vmm *vmm, struct vgic_vcpu *vcpu);

/* A thread for each vCPU. A real one enters the guest here, with the lines as they are now, again and again. */
static void *vcpu_thread(void *arg)
{
	struct vmm *vmm = arg;
	struct vgic_vcpu *vcpu = vgic_vcpu_by_index(vmm->vgic, 0);

	vgic_enter_guest(vcpu);
	guest_main(vmm, vcpu);
	vgic_exit_guest(vcpu);
	return NULL;
}

static void uart_has_input(struct vmm *vmm)
{
	vgic_set_gsi(vmm->routes, UART_GSI, true);
}

static void uart_was_read(struct vmm *vmm)
{
	vgic_set_gsi(vmm->routes, UART_GSI, false);
}

/* A request on a queue is done: by a thread of the VMM's own, or by another process. */
static void disk_completes(struct vmm *vmm, unsigned queue)
{
	if (queue == 0)
		vgic_msix_signal(vmm->disk, queue);
	else
		eventfd_write(vmm->disk_fds[queue], 1);
}

/* ---- The guest: what a kernel does, by way of the traps ---- */

#define PROPERTY_TABLE   (RAM_BASE + 0x10000)
#define PENDING_TABLE    (RAM_BASE + 0x20000)
#define QUEUE            (RAM_BASE + 0x30000)
#define DEVICE_TABLE     (RAM_BASE + 0x40000)
#define COLLECTION_TABLE (RAM_BASE + 0x50000)
#define ITT              (RAM_BASE + 0x60000)
#define VALID            (1ull << 63)

static uint64_t *guest_memory(struct vmm *vmm, uint64_t address)
{
	return &vmm->ram[(address - RAM_BASE) / 8];
}

static void guest_its_command(struct vmm *vmm, uint64_t dw0, uint64_t dw1, uint64_t dw2)
{
	uint64_t at = 0, *slot;

	trap_mmio_read(vmm, ITS_BASE + 0x88, 8, &at); /* GITS_CWRITER */
	slot = guest_memory(vmm, QUEUE + at);
	slot[0] = dw0;
	slot[1] = dw1;
	slot[2] = dw2;
	trap_mmio_write(vmm, ITS_BASE + 0x88, 8, at + 32);
}

static void guest_boots(struct vmm *vmm, struct vgic_vcpu *vcpu)
{
	trap_mmio_write(vmm, DIST_BASE + 0x0000, 4, 1 << 4 | 1 << 1); /* GICD_CTLR: affinity routing, Group 1 */
	trap_mmio_write(vmm, DIST_BASE + 0x0084, 4, 1 << UART_GSI);   /* GICD_IGROUPR1 */
	trap_mmio_write(vmm, DIST_BASE + 0x0104, 4, 1 << UART_GSI);   /* GICD_ISENABLER1 */
	trap_msr(vcpu, VGIC_ICC_PMR_EL1, 0xf8);
	trap_msr(vcpu, VGIC_ICC_IGRPEN1_EL1, 1);
	memset(guest_memory(vmm, PROPERTY_TABLE), 0xa1, 8192);            /* all LPIs enabled, priority 0xa0 */
	trap_mmio_write(vmm, REDIST_BASE + 0x70, 8, PROPERTY_TABLE | 13); /* GICR_PROPBASER: 14 bits */
	trap_mmio_write(vmm, REDIST_BASE + 0x78, 8, PENDING_TABLE);       /* GICR_PENDBASER */
	trap_mmio_write(vmm, REDIST_BASE + 0x00, 4, 1);                   /* GICR_CTLR.EnableLPIs */
	trap_mmio_write(vmm, ITS_BASE + 0x80, 8, VALID | QUEUE);          /* GITS_CBASER */
	trap_mmio_write(vmm, ITS_BASE + 0x100, 8, VALID | DEVICE_TABLE);
	trap_mmio_write(vmm, ITS_BASE + 0x108, 8, VALID | COLLECTION_TABLE);
	trap_mmio_write(vmm, ITS_BASE + 0x00, 4, 1);                             /* GITS_CTLR.Enabled */
	guest_its_command(vmm, 0x09, 0, VALID | 0);                              /* MAPC: collection 0 to this PE */
	guest_its_command(vmm, 0x08 | (uint64_t)DISK_BDF << 32, 3, VALID | ITT); /* MAPD: 16 events */
	for (uint64_t i = 0; i < NUM_QUEUES; i++)                                /* MAPTI: event i to LPI 8192 + i */
		guest_its_command(vmm, 0x0a | (uint64_t)DISK_BDF << 32, i | (8192 + i) << 32, 0);
	for (uint32_t i = 0; i < NUM_QUEUES; i++) { /* the disk's MSI-X table, in a BAR */
		vgic_msix_table_write(vmm->disk, 16 * i, 8, ITS_BASE + VGIC_ITS_DOORBELL);
		vgic_msix_table_write(vmm->disk, 16 * i + 8, 8, i); /* the EventID, and not masked */
	}
	vgic_msix_write_control(vmm->disk, VGIC_MSIX_CONTROL_ENABLE);
}

static void guest_expects(struct vmm *vmm, struct vgic_vcpu *vcpu, uint64_t expected)
{
	uint64_t intid;

	trap_wfi(vmm, vcpu);
	intid = trap_mrs(vcpu, VGIC_ICC_IAR1_EL1);
	printf("interrupt %u\n", (unsigned)intid);
	if (intid != expected)
		vmm->failed = 1;
	if (intid == 32 + UART_GSI)
		uart_was_read(vmm);
	trap_msr(vcpu, VGIC_ICC_EOIR1_EL1, intid);
}

static void guest_main(struct vmm *vmm, struct vgic_vcpu *vcpu)
{
	guest_boots(vmm, vcpu);
	uart_has_input(vmm);
	guest_expects(vmm, vcpu, 32 + UART_GSI);
	for (unsigned queue = 0; queue < NUM_QUEUES; queue++) {
		disk_completes(vmm, queue);
		guest_expects(vmm, vcpu, 8192 + queue);
	}
}

int main(void)
{
	static struct vmm vmm;
	pthread_t thread;

	sem_init(&vmm.wake, 0, 0);
	if (create_controller(&vmm) || create_devices(&vmm) || pthread_create(&thread, NULL, vcpu_thread, &vmm))
		return 1;
	pthread_join(thread, NULL);
	vgic_msix_destroy(vmm.disk);
	for (unsigned i = 0; i < NUM_QUEUES; i++)
		close(vmm.disk_fds[i]);
	vgic_irqfds_destroy(vmm.irqfds);
	vgic_routes_destroy(vmm.routes);
	vgic_destroy(vmm.vgic);
	return vmm.failed;
}
