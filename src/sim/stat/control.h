/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_CONTROL_H_
#define MLX5SIM_CONTROL_H_

/*
 * What happens to adapters: ports go down and come up, devices fail. Who has a
 * device open gets the async event (enum ibv_event_type).
 */

/**
 * Take a port down, or up again: IBV_EVENT_PORT_ERR or IBV_EVENT_PORT_ACTIVE.
 * Nothing passes through a port that is down, so requesters repeat what they
 * sent until the port is up or their retries are used up.
 *
 * @param name  "mlx5_0:1"
 *
 * @return 0, or 1 after a message.
 */
int mlx5sim_control_port(const char *name, int is_up);

/**
 * Give a port another speed, as a link that is slower for a while has: who has
 * the device open gets the event that its speed has changed, which names no
 * port. Traffic is as fast as before.
 *
 * @param text  "mlx5_0:1=2xEDR", up to the rate of the model
 *
 * @return 0, or 1 after a message.
 */
int mlx5sim_control_speed(const char *text);

/**
 * Fail a device: IBV_EVENT_DEVICE_FATAL. For who has it open now, commands fail
 * with EIO and nothing completes any more; whoever opens it afterwards finds it
 * recovered, as after a reset by the driver.
 *
 * @param name  "mlx5_0"
 *
 * @return 0, or 1 after a message.
 */
int mlx5sim_control_fatal(const char *name);

#endif
