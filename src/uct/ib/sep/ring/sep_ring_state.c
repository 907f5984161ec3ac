/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/ring/sep_ring_state.h>


static void uct_sep_ring_state_add_due(uct_sep_ring_state_t *state,
                                       uct_sep_ring_msg_type_t type)
{
    state->due |= UCS_BIT(type);
}

/* Returns whether it was due */
static int uct_sep_ring_state_drop_due(uct_sep_ring_state_t *state,
                                       uct_sep_ring_msg_type_t type)
{
    int is_due = !!(state->due & UCS_BIT(type));

    state->due &= ~UCS_BIT(type);
    return is_due;
}

static void uct_sep_ring_state_free(uct_sep_ring_state_t *state)
{
    uct_sep_ring_state_drop_due(state, UCT_SEP_RING_MSG_REVOKE);
    state->rx         = UCT_SEP_RING_NONE;
    state->is_revoked = 0;
}

void uct_sep_ring_state_offer(uct_sep_ring_state_t *state)
{
    state->rx = UCT_SEP_RING_OFFERED;
    uct_sep_ring_state_add_due(state, UCT_SEP_RING_MSG_OFFER);
}

int uct_sep_ring_state_revoke(uct_sep_ring_state_t *state)
{
    if ((state->rx == UCT_SEP_RING_NONE) || state->is_revoked) {
        return 0;
    }

    if (uct_sep_ring_state_drop_due(state, UCT_SEP_RING_MSG_OFFER)) {
        uct_sep_ring_state_free(state);
        return 1;
    }

    state->is_revoked = 1;
    uct_sep_ring_state_add_due(state, UCT_SEP_RING_MSG_REVOKE);
    return 0;
}

void uct_sep_ring_state_answer(uct_sep_ring_state_t *state, int accept)
{
    state->tx = UCT_SEP_RING_OFFERED;
    uct_sep_ring_state_add_due(state, accept ? UCT_SEP_RING_MSG_ACCEPT :
                                               UCT_SEP_RING_MSG_DECLINE);
}

uct_sep_ring_msg_type_t
uct_sep_ring_state_due(const uct_sep_ring_state_t *state)
{
    return (state->due == 0) ? UCT_SEP_RING_MSG_LAST :
                               (uct_sep_ring_msg_type_t)ucs_ffs64(state->due);
}

void uct_sep_ring_state_sent(uct_sep_ring_state_t *state,
                             uct_sep_ring_msg_type_t type)
{
    uct_sep_ring_state_drop_due(state, type);
    switch (type) {
    case UCT_SEP_RING_MSG_ACCEPT:
        state->tx = UCT_SEP_RING_OPEN;
        break;
    case UCT_SEP_RING_MSG_DECLINE:
    case UCT_SEP_RING_MSG_RELEASE:
        state->tx = UCT_SEP_RING_NONE;
        break;
    default:
        break;
    }
}

static uct_sep_ring_act_t
uct_sep_ring_state_receive_revoke(uct_sep_ring_state_t *state)
{
    if (uct_sep_ring_state_drop_due(state, UCT_SEP_RING_MSG_ACCEPT)) {
        uct_sep_ring_state_add_due(state, UCT_SEP_RING_MSG_DECLINE);
    } else if (state->tx == UCT_SEP_RING_OPEN) {
        uct_sep_ring_state_add_due(state, UCT_SEP_RING_MSG_RELEASE);
    }

    /* Else it was declined before this has arrived */
    return UCT_SEP_RING_ACT_NOTHING;
}

uct_sep_ring_act_t uct_sep_ring_state_receive(uct_sep_ring_state_t *state,
                                              uct_sep_ring_msg_type_t type)
{
    int is_offered = (state->rx == UCT_SEP_RING_OFFERED) &&
                     !(state->due & UCS_BIT(UCT_SEP_RING_MSG_OFFER));

    switch (type) {
    case UCT_SEP_RING_MSG_OFFER:
        return (state->tx == UCT_SEP_RING_NONE) ? UCT_SEP_RING_ACT_DECIDE :
                                                  UCT_SEP_RING_ACT_BAD;
    case UCT_SEP_RING_MSG_REVOKE:
        return uct_sep_ring_state_receive_revoke(state);
    case UCT_SEP_RING_MSG_ACCEPT:
        if (!is_offered) {
            return UCT_SEP_RING_ACT_BAD;
        }
        state->rx = UCT_SEP_RING_OPEN;
        return UCT_SEP_RING_ACT_OPENED;
    case UCT_SEP_RING_MSG_DECLINE:
        if (!is_offered) {
            return UCT_SEP_RING_ACT_BAD;
        }
        uct_sep_ring_state_free(state);
        return UCT_SEP_RING_ACT_FREED;
    case UCT_SEP_RING_MSG_RELEASE:
        if ((state->rx != UCT_SEP_RING_OPEN) || !state->is_revoked ||
            (state->due & UCS_BIT(UCT_SEP_RING_MSG_REVOKE))) {
            return UCT_SEP_RING_ACT_BAD;
        }
        uct_sep_ring_state_free(state);
        return UCT_SEP_RING_ACT_FREED;
    default:
        return UCT_SEP_RING_ACT_BAD;
    }
}
