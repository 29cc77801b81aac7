/** Keeps a view up to date with what the agent says. */
import { useEffect } from 'preact/hooks'
import { usePage } from '../page-state.ts'
import { LIVE_MS, type Live, useLive } from '../use-live.ts'

export function useAgentLive<T>(path: string): Live<T> {
  const { api, awaySince } = usePage()
  const live = useLive<T>(path, () => api.get(path), LIVE_MS)
  const isAway = awaySince.value !== undefined
  // An agent that is back is asked at once, however long it was away.
  useEffect(() => {
    if (!isAway) live.refresh()
  }, [isAway])
  return live
}
