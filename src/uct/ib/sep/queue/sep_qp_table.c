/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/queue/sep_qp_table.h>

#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>

/* QP number 0 is never one of ours (IBA: subnet management) */

#define UCT_SEP_QP_TABLE_MIN  16


static ucs_status_t
uct_sep_qp_table_alloc(uct_sep_qp_table_t *table, uint32_t size)
{
    table->entries = ucs_calloc(size, sizeof(*table->entries), "sep_qp_table");
    if (table->entries == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    table->mask  = size - 1;
    table->shift = 32 - ucs_ilog2(size);
    table->count = 0;
    return UCS_OK;
}

static void uct_sep_qp_table_insert(uct_sep_qp_table_t *table, uint32_t key,
                                    uct_sep_txwq_t *txwq)
{
    uint32_t i = uct_sep_qp_table_index(table, key);

    while (table->entries[i].key != 0) {
        i = (i + 1) & table->mask;
    }

    table->entries[i].key  = key;
    table->entries[i].txwq = txwq;
    ++table->count;
}

ucs_status_t uct_sep_qp_table_init(uct_sep_qp_table_t *table)
{
    return uct_sep_qp_table_alloc(table, UCT_SEP_QP_TABLE_MIN);
}

void uct_sep_qp_table_cleanup(uct_sep_qp_table_t *table)
{
    ucs_free(table->entries);
}

ucs_status_t uct_sep_qp_table_add(uct_sep_qp_table_t *table, uint32_t qpn,
                                  uct_sep_txwq_t *txwq)
{
    uct_sep_qp_table_t old = *table;
    ucs_status_t status;
    uint32_t i;

    if ((table->count + 1) > (table->mask + 1) / 2) {
        status = uct_sep_qp_table_alloc(table, (old.mask + 1) * 2);
        if (status != UCS_OK) {
            *table = old;
            return status;
        }

        for (i = 0; i <= old.mask; ++i) {
            if (old.entries[i].key != 0) {
                uct_sep_qp_table_insert(table, old.entries[i].key,
                                        old.entries[i].txwq);
            }
        }
        ucs_free(old.entries);
    }

    uct_sep_qp_table_insert(table, UCT_SEP_QP_KEY(qpn), txwq);
    return UCS_OK;
}

uct_sep_txwq_t *uct_sep_qp_table_find_next(const uct_sep_qp_table_t *table,
                                           uint32_t key)
{
    uint32_t i = uct_sep_qp_table_index(table, key);

    while (table->entries[i].key != 0) {
        i = (i + 1) & table->mask;
        if (table->entries[i].key == key) {
            return table->entries[i].txwq;
        }
    }
    return NULL;
}

void uct_sep_qp_table_remove(uct_sep_qp_table_t *table, uint32_t qpn)
{
    uint32_t key = UCT_SEP_QP_KEY(qpn);
    uct_sep_qp_entry_t entry;
    uint32_t i;

    for (i = uct_sep_qp_table_index(table, key); table->entries[i].key != key;
         i = (i + 1) & table->mask) {
        if (table->entries[i].key == 0) {
            return;
        }
    }

    table->entries[i].key = 0;
    --table->count;

    /* Entries that follow may have been displaced by the removed one */
    for (i = (i + 1) & table->mask; table->entries[i].key != 0;
         i = (i + 1) & table->mask) {
        entry                 = table->entries[i];
        table->entries[i].key = 0;
        --table->count;
        uct_sep_qp_table_insert(table, entry.key, entry.txwq);
    }
}
