/* SPDX-License-Identifier: BSD-3-Clause */

#include "uct_senders.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>


#define UCT_SENDERS_MESSAGES  64 /* from each */
#define UCT_SENDERS_WAIT      100 /* seconds for a connection to come up */


void uct_senders_init(uct_senders_t *senders, uct_pair_t *pair)
{
    memset(senders, 0, sizeof(*senders));
    senders->pair = pair;
}

static ucs_status_t uct_senders_add_iface(uct_senders_t *senders)
{
    uct_iface_attr_t attr;
    ucs_status_t status;

    status = uct_pair_add_iface(senders->pair, 0, &senders->iface);
    if (status == UCS_OK) {
        status = uct_iface_query(senders->iface, &attr);
    }
    if (status != UCS_OK) {
        return status;
    }

    if (!(attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE)) {
        fprintf(stderr, "%s does not connect interfaces\n", senders->pair->tl);
        return UCS_ERR_UNSUPPORTED;
    }

    senders->num_paths = attr.dev_num_paths;
    return UCS_OK;
}

/* Send, and receive all */
static ucs_status_t uct_senders_talk(uct_senders_t *senders, uct_ep_h ep,
                                     uint8_t am_id, volatile unsigned *received)
{
    time_t deadline = time(NULL) + UCT_SENDERS_WAIT;
    unsigned end    = *received + UCT_SENDERS_MESSAGES;
    unsigned sent   = 0;
    ucs_status_t status;

    do {
        if (sent < UCT_SENDERS_MESSAGES) {
            status = uct_ep_am_short(ep, am_id, 1, NULL, 0);
            if (status == UCS_OK) {
                ++sent;
            } else if (status != UCS_ERR_NO_RESOURCE) {
                return status;
            } else {
                usleep(100); /* Another thread connects */
            }
        }

        uct_pair_progress(senders->pair);
        if (time(NULL) > deadline) {
            return UCS_ERR_TIMED_OUT;
        }
    } while (*received != end);

    return UCS_OK;
}

ucs_status_t uct_senders_grow(uct_senders_t *senders, unsigned count,
                              uint8_t am_id, volatile unsigned *received)
{
    ucs_status_t status = UCS_OK;
    uct_ep_h ep;

    while ((senders->count < count) && (status == UCS_OK)) {
        if ((senders->iface == NULL) ||
            ((senders->count % senders->num_paths) == 0)) {
            status = uct_senders_add_iface(senders);
            if (status != UCS_OK) {
                break;
            }
        }

        status = uct_pair_connect_iface(senders->pair, senders->iface, 1,
                                        senders->count % senders->num_paths,
                                        &ep);
        if (status == UCS_OK) {
            status = uct_senders_talk(senders, ep, am_id, received);
            ++senders->count;
        }
    }

    return status;
}
