/** Keeps a view up to date with what the agent says. */
import { useEffect } from 'preact/hooks'
import { usePage } from '../page-state.ts'
import { LIVE_MS, type Live, useLive } from '../use-live.ts'

export function useAgentLive<T>(path: string): Live<T> {
  const { api, awaySince } = usePage()
  const live = useLive<T>(path, () => api.get(path), LIVE_MS)
  const isAway = awaySince.value !== undefined
  // Reads at once when the agent is back, however long the pause between attempts has become.
  useEffect(() => {
    if (!isAway) live.refresh()
  }, [isAway])
  return live
}
