/** Keeps a view up to date with the server. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { type Rows, readAllRows } from './all-rows.ts'
import type { CallOutcome } from './api-caller.ts'
import type { ApiOutline } from './api-outline.ts'
import { usePage } from './page-state.ts'
import { type PollingTools, type Reading, startPolling } from './polling.ts'

/** How often live data is read, in milliseconds. */
export const LIVE_MS = 3000
/** How often configuration is read, in milliseconds; others may change it too. */
export const CALM_MS = 15_000

export interface Live<T> extends Reading<T> {
  /** Reads again now. */
  readonly refresh: () => void
}

/** Something that reports what it reads, until it is stopped. */
interface Source {
  readonly refresh: () => void
  readonly stop: () => void
}

/** Follows the source that `begin` starts; a new `key` or something new in `others` starts over. */
export function useSource<T>(
  key: string,
  others: readonly unknown[],
  begin: (tools: PollingTools & { readonly onChange: (reading: Reading<T>) => void }) => Source,
): Live<T> {
  const empty: Reading<T> = { value: undefined, readAt: 0, fault: undefined }
  const [known, setKnown] = useState<{ readonly key: string; readonly reading: Reading<T> }>({ key, reading: empty })
  const source = useRef<Source>(undefined)
  useEffect(() => {
    let isOver = false
    const onChange = (reading: Reading<T>) => {
      if (!isOver) setKnown({ key, reading })
    }
    const current = begin({ onChange, now: () => Date.now(), after: whenSeen })
    source.current = current
    return () => {
      isOver = true
      current.stop()
    }
  }, [key, ...others])
  const reading = known.key === key ? known.reading : empty
  return { ...reading, refresh: () => source.current?.refresh() }
}

/** Calls `load` again and again; a new `key` starts over. A hidden page reads nothing. */
export function useLive<T>(key: string, load: () => Promise<CallOutcome<T>>, everyMs: number): Live<T> {
  const latest = useRef(load)
  latest.current = load
  return useSource<T>(key, [everyMs], (tools) => startPolling({ ...tools, load: () => latest.current(), everyMs }))
}

/** A whole list of the API. */
export function useRows(path: string, everyMs: number): Live<Rows> {
  const { api } = usePage()
  return useLive(path, () => readAllRows(api, path), everyMs)
}

/** Waits for `ms`, and then until the page is visible. */
function whenSeen(ms: number, then: () => void): () => void {
  const run = () => {
    if (document.visibilityState === 'hidden') return
    document.removeEventListener('visibilitychange', run)
    then()
  }
  const timer = setTimeout(() => {
    document.addEventListener('visibilitychange', run)
    run()
  }, ms)
  return () => {
    clearTimeout(timer)
    document.removeEventListener('visibilitychange', run)
  }
}

/** The outline of the API; undefined until it is read. Tries again while the server is away. */
export function useOutline(): ApiOutline | undefined {
  const page = usePage()
  const [outline, setOutline] = useState<ApiOutline>()
  useEffect(() => {
    if (outline) return
    let isOver = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const read = async (): Promise<void> => {
      const given = await page.outline()
      if (isOver) return
      if ('kinds' in given) setOutline(given)
      else timer = setTimeout(() => void read(), LIVE_MS)
    }
    void read()
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [page, outline])
  return outline
}
