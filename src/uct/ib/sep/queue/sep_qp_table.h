/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_QP_TABLE_H
#define UCT_SEP_QP_TABLE_H

#include <uct/ib/sep/queue/sep_txwq.h>
#include <ucs/sys/compiler.h>

BEGIN_C_DECLS

/**
 * @file sep_qp_table.h
 *
 * From the QP number in a completion to the send queue: hash table with open
 * addressing, at most half full. Multiplying by the golden ratio spreads
 * consecutive numbers, as devices assign them, so the first probe nearly always
 * hits.
 */

typedef struct uct_sep_qp_entry {
    uint32_t       qpn;   /**< 0 if the entry is free */
    uct_sep_txwq_t *txwq;
} uct_sep_qp_entry_t;


typedef struct uct_sep_qp_table {
    uct_sep_qp_entry_t *entries;
    uint32_t           mask;  /**< Number of entries less 1 */
    uint32_t           count; /**< Entries in use */
    uint8_t            shift; /**< 32 less the logarithm of their number */
} uct_sep_qp_table_t;


/** @return Index where the search for a QP number starts. */
static UCS_F_ALWAYS_INLINE uint32_t
uct_sep_qp_table_index(const uct_sep_qp_table_t *table, uint32_t qpn)
{
    return (qpn * 0x9e3779b1u) >> table->shift;
}


/** @return UCS_OK or UCS_ERR_NO_MEMORY. */
ucs_status_t uct_sep_qp_table_init(uct_sep_qp_table_t *table);

void uct_sep_qp_table_cleanup(uct_sep_qp_table_t *table);

/** @return UCS_OK or UCS_ERR_NO_MEMORY. The number must not be in the table. */
ucs_status_t uct_sep_qp_table_add(uct_sep_qp_table_t *table, uint32_t qpn,
                                  uct_sep_txwq_t *txwq);

/** Does nothing if the number is not in the table. */
void uct_sep_qp_table_remove(uct_sep_qp_table_t *table, uint32_t qpn);


/** @return The send queue of a QP number, or NULL. */
static UCS_F_ALWAYS_INLINE uct_sep_txwq_t *
uct_sep_qp_table_find(const uct_sep_qp_table_t *table, uint32_t qpn)
{
    const uct_sep_qp_entry_t *entry;
    uint32_t i;

    for (i = uct_sep_qp_table_index(table, qpn);;
         i = (i + 1) & table->mask) {
        entry = &table->entries[i];
        if (ucs_likely(entry->qpn == qpn)) {
            if (entry->txwq == NULL) {
                __builtin_unreachable(); /* Callers need not look again */
            }
            return entry->txwq;
        }
        if (entry->qpn == 0) {
            return NULL;
        }
    }
}

END_C_DECLS

#endif
