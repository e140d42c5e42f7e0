/* SPDX-License-Identifier: MIT */
/*
 * irqfd_none.c - in place of irqfds where there are none: no Linux, or built with
 * -Dirqfd=disabled. Creation says so; nothing else can be called then.
 */
#include <errno.h>
#include <string.h>

#include "route.h"

void vgic_irqfds_config_init(struct vgic_irqfds_config *config)
{
	if (!config)
		return;
	memset(config, 0, sizeof(*config));
	config->size = sizeof(*config);
}

int vgic_irqfds_create(struct vgic_routes *routes, const struct vgic_irqfds_config *config, struct vgic_irqfds **irqfds)
{
	(void)routes;
	(void)config;
	(void)irqfds;
	return -ENOSYS;
}

void vgic_irqfds_destroy(struct vgic_irqfds *irqfds)
{
	(void)irqfds;
}

int vgic_irqfd_assign(struct vgic_irqfds *irqfds, uint32_t gsi, int eventfd, int resamplefd)
{
	(void)irqfds;
	(void)gsi;
	(void)eventfd;
	(void)resamplefd;
	return -ENOSYS;
}

int vgic_irqfd_deassign(struct vgic_irqfds *irqfds, uint32_t gsi, int eventfd)
{
	(void)irqfds;
	(void)gsi;
	(void)eventfd;
	return -ENOSYS;
}

int vgic_irqfd_ready(struct vgic_irqfds *irqfds, uint64_t token)
{
	(void)irqfds;
	(void)token;
	return -ENOSYS;
}

int vgic_irqfds_signal(struct vgic_irqfds *irqfds, uint32_t gsi)
{
	(void)irqfds;
	(void)gsi;
	return -ENOSYS;
}

int vgic_irqfds_get_stats(struct vgic_irqfds *irqfds, struct vgic_irqfds_stats *stats)
{
	(void)irqfds;
	(void)stats;
	return -ENOSYS;
}

const struct vgic_routes *irqfd_routes(const struct vgic_irqfds *irqfds)
{
	(void)irqfds;
	return NULL;
}
