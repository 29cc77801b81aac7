/** Listens for PostgreSQL notifications on a separate connection, which is replaced when it breaks or falls silent. */
import type pg from 'pg'
import type { StoreLimits } from './limits.ts'
import { endClient, limitedQuery } from './postgres-pool.ts'

const RECONNECT_MS = 1000

interface NoticesOptions {
  readonly connect: () => pg.Client
  readonly channel: string
  readonly limits: Pick<StoreLimits, 'connectionMs' | 'pollMs'>
}

/** Calls `heard` after a notification, after a reconnect, and at every `pollMs`; returns a function that stops it. */
export async function hearNotices(
  { connect, channel, limits }: NoticesOptions,
  heard: () => void,
): Promise<() => Promise<void>> {
  let isStopped = false
  let client: pg.Client | undefined
  /** The same client, once it is listening. */
  let listening: pg.Client | undefined
  let isProbing = false
  let retry: NodeJS.Timeout | undefined

  const open = async (): Promise<void> => {
    const next = connect()
    client = next
    // Every error also ends the connection, and its `end` event is handled below.
    next.on('error', () => {})
    next.once('end', () => {
      if (listening !== next) return
      listening = undefined
      later()
    })
    next.on('notification', heard)
    try {
      await next.connect()
      await limitedQuery(next, limits.connectionMs, `listen ${channel}`)
      listening = next
    } catch (error) {
      void endClient(next)
      throw error
    }
  }
  // Notifications sent meanwhile were missed, so report once that something may have changed.
  const reopen = () => void open().then(heard, later)
  const later = () => {
    if (!isStopped) retry = setTimeout(reopen, RECONNECT_MS)
  }
  const poll = () => {
    heard()
    if (!listening || isProbing) return
    // Only a query reveals that the database has fallen silent. When it is overdue, its connection is closed.
    isProbing = true
    const answered = () => {
      isProbing = false
    }
    limitedQuery(listening, limits.connectionMs, 'select 1').then(answered, answered)
  }

  await open()
  const polling = setInterval(poll, limits.pollMs).unref()
  return async () => {
    isStopped = true
    clearInterval(polling)
    clearTimeout(retry)
    if (client) await endClient(client)
  }
}
