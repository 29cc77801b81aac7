/** The latest exchanges, as they come. */
import type { Rows } from './all-rows.ts'
import { type ExchangeFilters, queryOf, readExchanges } from './exchange-feed.ts'
import { ExchangeFollower, type FollowerOptions } from './exchange-follower.ts'
import { usePage } from './page-state.ts'
import { type Live, useSource } from './use-live.ts'

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
  return useSource<Rows>(key, [api], (tools) => {
    const follower = new ExchangeFollower({ ...options, ...tools, api })
    // A hidden page follows nothing: a browser allows few connections to one server, and an open stream takes one of them.
    const look = () => (document.visibilityState === 'hidden' ? follower.stop() : follower.start())
    look()
    document.addEventListener('visibilitychange', look)
    return {
      refresh: () => follower.refresh(),
      stop() {
        document.removeEventListener('visibilitychange', look)
        follower.stop()
      },
    }
  })
}
