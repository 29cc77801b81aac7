/** Follows the agent's server-sent events while the page is visible. */
import { useEffect, useState } from 'preact/hooks'
import type { ServerEvent } from '../../lib/http/event-stream-reader.ts'
import { type ListedRow, type Rows, readRows } from '../all-rows.ts'
import { type ApiCaller, isRecord } from '../api-caller.ts'
import { usePage } from '../page-state.ts'
import { useFollowed } from '../use-exchanges.ts'
import type { Live } from '../use-live.ts'
import { addFrames, type FrameLog, noFrames } from './frame-log.ts'

/** As many as the agent keeps. */
const LIST = '/exchanges?limit=500'

/** The pause before reconnecting, in milliseconds; short, since the agent is on the same machine. */
const RETRY_MS = 1000

/** The exchanges of the agent as they come. */
export function useLiveExchanges(): Live<Rows> {
  const { api } = usePage()
  return useFollowed('all', { stream: '/exchanges/stream', load: () => readRows(api, LIST), maxRetryMs: RETRY_MS })
}

/** The frames of an exchange as they come, while it is open. */
export function useFrames(id: string, isOpen: boolean): FrameLog {
  const { api } = usePage()
  const isSeen = useIsVisible()
  const [log, setLog] = useState(noFrames)
  useEffect(() => {
    if (!isSeen || !isOpen) return
    const end = new AbortController()
    void followFrames({ api, id, signal: end.signal, onChange: setLog })
    return () => end.abort()
  }, [api, id, isOpen, isSeen])
  return log
}

interface FollowedFrames {
  readonly api: ApiCaller
  readonly id: string
  readonly signal: AbortSignal
  readonly onChange: (log: FrameLog) => void
}

/** Reconnects after each break until the exchange is over. */
async function followFrames({ api, id, signal, onChange }: FollowedFrames): Promise<void> {
  const over = new AbortController()
  const ended = AbortSignal.any([signal, over.signal])
  while (!ended.aborted) {
    // Each stream starts over with the oldest frame that the agent keeps.
    let known = noFrames
    await api.follow(`/exchanges/${encodeURIComponent(id)}/stream`, {
      signal: ended,
      onEvents(events) {
        known = addFrames(known, { frames: rowsIn(events, 'frame'), missed: missedIn(events) })
        onChange(known)
        // The agent ends the stream when the exchange is over; that is not a break.
        const isOver = rowsIn(events, 'exchange').some((row) => row.is_open === false)
        if (isOver || rowsIn(events, 'removed').length > 0) over.abort()
      },
    })
    if (!ended.aborted) await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
}

function rowsIn(events: readonly ServerEvent[], type: string): ListedRow[] {
  const found = events.filter(({ name }) => name === type).map(({ data }): unknown => JSON.parse(data))
  return found.filter(isRecord)
}

function missedIn(events: readonly ServerEvent[]): number {
  return rowsIn(events, 'missed').reduce((sum, { count }) => sum + Number(count), 0)
}

/** A browser allows six connections to one agent for all its windows, so hidden windows give theirs up. */
function useIsVisible(): boolean {
  const [isSeen, setSeen] = useState(document.visibilityState !== 'hidden')
  useEffect(() => {
    const note = () => setSeen(document.visibilityState !== 'hidden')
    document.addEventListener('visibilitychange', note)
    return () => document.removeEventListener('visibilitychange', note)
  }, [])
  return isSeen
}
