/** Hears of changes from PostgreSQL on a connection of its own, which is made anew when it breaks or falls silent. */
import type pg from 'pg'
import type { StoreLimits } from './limits.ts'
import { endClient, limitedQuery } from './postgres-pool.ts'

const RECONNECT_MS = 1000

export interface NoticesOptions {
  readonly connect: () => pg.Client
  readonly channel: string
  readonly limits: Pick<StoreLimits, 'connectionMs' | 'pollMs'>
}

/** Calls `heard` after a notice, after a reconnect, and with a slow poll underneath; gives back how to stop. */
export async function hearNotices(
  { connect, channel, limits }: NoticesOptions,
  heard: () => void,
): Promise<() => Promise<void>> {
  let isStopped = false
  let client: pg.Client | undefined
  /** The same, once it hears. */
  let listening: pg.Client | undefined
  let isAsking = false
  let retry: NodeJS.Timeout | undefined

  const open = async (): Promise<void> => {
    const next = connect()
    client = next
    // Whatever breaks a connection also ends it, so its end is what counts.
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
  // What was announced in between is missed, so say once that something may have changed.
  const reopen = () => void open().then(heard, later)
  const later = () => {
    if (!isStopped) retry = setTimeout(reopen, RECONNECT_MS)
  }
  const poll = () => {
    heard()
    if (!listening || isAsking) return
    // A peer that fell silent is noticed by asking only. The statement takes its connection along when it is overdue.
    isAsking = true
    const asked = () => {
      isAsking = false
    }
    limitedQuery(listening, limits.connectionMs, 'select 1').then(asked, asked)
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
