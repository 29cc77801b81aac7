/** The latest exchanges, as they come. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Rows } from './all-rows.ts'
import { type ExchangeFilters, queryOf, readExchanges } from './exchange-feed.ts'
import { ExchangeFollower, type FollowerOptions } from './exchange-follower.ts'
import { usePage } from './page-state.ts'
import type { Reading } from './polling.ts'
import { type Live, whenSeen } from './use-live.ts'

const nothing: Reading<Rows> = { value: undefined, readAt: 0, fault: undefined }

/** The exchanges of the server that pass a filter. */
export function useExchanges(filters: ExchangeFilters): Live<Rows> {
  const { api } = usePage()
  const query = queryOf(filters)
  return useFollowed(query, {
    stream: `/exchanges/stream?${query}`,
    load: (known) => readExchanges(api, filters, known),
  })
}

/** A new `key` starts over. */
export function useFollowed(key: string, options: Pick<FollowerOptions, 'stream' | 'load' | 'maxRetryMs'>): Live<Rows> {
  const { api } = usePage()
  const [known, setKnown] = useState({ key, reading: nothing })
  const follower = useRef<ExchangeFollower>(undefined)
  useEffect(() => {
    let isOver = false
    const current = new ExchangeFollower({
      ...options,
      api,
      onChange: (reading) => {
        if (!isOver) setKnown({ key, reading })
      },
      now: () => Date.now(),
      after: whenSeen,
    })
    follower.current = current
    // A hidden page follows nothing: a browser allows few connections to one server, and an open stream takes one of them.
    const look = () => (document.visibilityState === 'hidden' ? current.stop() : current.start())
    look()
    document.addEventListener('visibilitychange', look)
    return () => {
      isOver = true
      document.removeEventListener('visibilitychange', look)
      current.stop()
    }
  }, [api, key])
  const reading = known.key === key ? known.reading : nothing
  return { ...reading, refresh: () => follower.current?.refresh() }
}
