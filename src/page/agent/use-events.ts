/** Server-sent events of the agent in a view, for as long as somebody sees it. */
import { useEffect, useState } from 'preact/hooks'
import type { Rows } from '../all-rows.ts'
import { isRecord } from '../api-caller.ts'
import { usePage } from '../page-state.ts'
import type { Reading } from '../polling.ts'
import { type EventStream, followEvents } from './followed-events.ts'
import { addFrames, type FrameLog, noFrames } from './frame-log.ts'
import { followExchanges } from './live-exchanges.ts'

/** As many as the agent keeps. */
const LIST = '/exchanges?limit=500'

/** How long frames are gathered before they are shown, in milliseconds. */
const GATHER_MS = 100

const nothing: Reading<Rows> = { value: undefined, readAt: 0, fault: undefined }

/** The exchanges of the agent as they come. */
export function useLiveExchanges(): Reading<Rows> {
  const page = usePage()
  const isSeen = useSeen()
  const [reading, setReading] = useState(nothing)
  useEffect(() => {
    if (!isSeen) return
    return followExchanges({
      open: () => openStream('exchanges/stream'),
      load: () => page.api.get(LIST),
      onChange(next) {
        if (next.fault?.kind === 'away') page.awaySince.value ??= Date.now()
        setReading(next)
      },
      now: () => Date.now(),
      after,
    })
  }, [page, isSeen])
  return reading
}

/** The frames of an exchange as they come, while it goes on. */
export function useFrames(id: string, isOpen: boolean): FrameLog {
  const isSeen = useSeen()
  const [log, setLog] = useState(noFrames)
  useEffect(() => {
    if (!isSeen || !isOpen) return
    let known = noFrames
    let cancel: (() => void) | undefined
    const tell = () => {
      cancel = undefined
      setLog(known)
    }
    const change = (next: FrameLog) => {
      known = next
      cancel ??= after(GATHER_MS, tell)
    }
    const stop = followEvents({
      open: () => openStream(`exchanges/${encodeURIComponent(id)}/stream`),
      after,
      // Each stream begins with the first frame that is kept.
      onOpen: () => change(noFrames),
      onLost() {},
      on: {
        frame: (frame) => isRecord(frame) && change(addFrames(known, { frames: [frame] })),
        missed: (gap) => isRecord(gap) && change(addFrames(known, { missed: Number(gap.count) })),
        // The agent ends the stream with the exchange, which is no break.
        exchange: (row: unknown) => isRecord(row) && row.is_open === false && stop(),
        removed: () => stop(),
      },
    })
    return () => {
      cancel?.()
      stop()
    }
  }, [id, isOpen, isSeen])
  return log
}

function openStream(path: string): EventStream {
  return new EventSource(new URL(`api/${path}`, document.baseURI))
}

function after(ms: number, then: () => void): () => void {
  const timer = setTimeout(then, ms)
  return () => clearTimeout(timer)
}

/** A browser has six connections to one agent for all its windows: those that nobody sees leave theirs to others. */
function useSeen(): boolean {
  const [isSeen, setSeen] = useState(document.visibilityState !== 'hidden')
  useEffect(() => {
    const note = () => setSeen(document.visibilityState !== 'hidden')
    document.addEventListener('visibilitychange', note)
    return () => document.removeEventListener('visibilitychange', note)
  }, [])
  return isSeen
}
