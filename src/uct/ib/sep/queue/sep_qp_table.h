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
 * hits. Numbers are compared in the order of bytes that completions have; the
 * lower half of the factor is the golden ratio, too, since the lowest byte of a
 * number is the highest of its key.
 */

/** Key of a QP number: the 24 bits as they are in the word sop_drop_qpn of a
 *  completion, without the byte in front of them. */
#define UCT_SEP_QP_KEY(_qpn)      be32toh((uint32_t)(_qpn) << 8)
#define UCT_SEP_QP_KEY_CQE(_cqe)  ((uint32_t)(_cqe)->sop_drop_qpn >> 8)


typedef struct uct_sep_qp_entry {
    uint32_t       key;   /**< UCT_SEP_QP_KEY, 0 if the entry is free */
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
uct_sep_qp_table_index(const uct_sep_qp_table_t *table, uint32_t key)
{
    return (key * 0x9e379e37u) >> table->shift;
}


/** @return UCS_OK or UCS_ERR_NO_MEMORY. */
ucs_status_t uct_sep_qp_table_init(uct_sep_qp_table_t *table);

void uct_sep_qp_table_cleanup(uct_sep_qp_table_t *table);

/** @return UCS_OK or UCS_ERR_NO_MEMORY. The number must not be in the table. */
ucs_status_t uct_sep_qp_table_add(uct_sep_qp_table_t *table, uint32_t qpn,
                                  uct_sep_txwq_t *txwq);

/** Does nothing if the number is not in the table. */
void uct_sep_qp_table_remove(uct_sep_qp_table_t *table, uint32_t qpn);


/** @return The send queue of a key that is not where the search starts, or
 *          NULL. */
uct_sep_txwq_t *uct_sep_qp_table_find_next(const uct_sep_qp_table_t *table,
                                           uint32_t key);


/** @return The send queue of a key if it is where the search starts, or
 *          NULL. */
static UCS_F_ALWAYS_INLINE uct_sep_txwq_t *
uct_sep_qp_table_find_first(const uct_sep_qp_table_t *table, uint32_t key)
{
    const uct_sep_qp_entry_t *entry;

    entry = &table->entries[uct_sep_qp_table_index(table, key)];
    if (ucs_unlikely(entry->key != key)) {
        return NULL;
    }

    if (entry->txwq == NULL) {
        __builtin_unreachable(); /* Callers need not look again */
    }
    return entry->txwq;
}


/** @return The send queue of a key, or NULL. */
static UCS_F_ALWAYS_INLINE uct_sep_txwq_t *
uct_sep_qp_table_find_key(const uct_sep_qp_table_t *table, uint32_t key)
{
    uct_sep_txwq_t *txwq = uct_sep_qp_table_find_first(table, key);

    return ucs_likely(txwq != NULL) ? txwq :
                                      uct_sep_qp_table_find_next(table, key);
}


/** @return The send queue of a QP number, or NULL. */
static UCS_F_ALWAYS_INLINE uct_sep_txwq_t *
uct_sep_qp_table_find(const uct_sep_qp_table_t *table, uint32_t qpn)
{
    return uct_sep_qp_table_find_key(table, UCT_SEP_QP_KEY(qpn));
}

END_C_DECLS

#endif
