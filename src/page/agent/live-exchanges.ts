/** The exchanges of an agent as they come: the whole list first, then each as it changes, and all again after a break. */
import type { ListedRow, Rows } from '../all-rows.ts'
import { type CallFault, type CallOutcome, isRecord } from '../api-caller.ts'
import type { PollingTools, Reading } from '../polling.ts'
import { textIn } from '../text-in.ts'
import { type EventStream, followEvents } from './followed-events.ts'

/** How long changes are gathered before they are shown, in milliseconds. */
const GATHER_MS = 100

/** How long after a refused list it is asked for again, in milliseconds. */
const RETRY_MS = 1000

/** The most that are remembered; the agent keeps 500 and tells which it drops. */
const MAX_EXCHANGES = 1000

export interface LiveExchangesOptions extends PollingTools {
  readonly open: () => EventStream
  readonly load: () => Promise<CallOutcome<{ readonly exchanges: readonly unknown[] }>>
  readonly onChange: (reading: Reading<Rows>) => void
}

/** The stream broke; the page tries again. */
const LOST: CallFault = { kind: 'away', text: 'The agent does not answer.', code: '', field: '', operation: '' }

/** Begins at once; returns a function that ends it. */
export function followExchanges({ open, load, onChange, now, after }: LiveExchangesOptions): () => void {
  /** By id, the oldest first. */
  let known = new Map<string, ListedRow>()
  /** What came since the list was asked for; undefined when it is here. */
  let waiting: ((rows: Map<string, ListedRow>) => void)[] | undefined = []
  let reading: Reading<Rows> = { value: undefined, readAt: 0, fault: undefined }
  /** Prevents what is to happen in a moment. */
  let cancelNext: (() => void) | undefined
  /** Counts streams: a list that was asked for during an earlier one is of no use. */
  let streams = 0

  const tell = (): void => {
    cancelNext = undefined
    reading = { value: { rows: [...known.values()].reverse(), isCut: false }, readAt: now(), fault: undefined }
    onChange(reading)
  }
  const fail = (fault: CallFault): void => {
    cancelNext?.()
    cancelNext = undefined
    reading = { ...reading, fault }
    onChange(reading)
  }
  const change = (apply: (rows: Map<string, ListedRow>) => void): void => {
    if (waiting) {
      waiting.push(apply)
      return
    }
    apply(known)
    cancelNext ??= after(GATHER_MS, tell)
  }
  const readList = async (): Promise<void> => {
    const stream = ++streams
    cancelNext?.()
    cancelNext = undefined
    waiting = []
    const outcome = await load()
    if (stream !== streams) return
    if (!outcome.ok) {
      fail(outcome.fault)
      cancelNext = after(RETRY_MS, () => void readList())
      return
    }
    const rows = outcome.value.exchanges.filter(isRecord).map((row) => [textIn(row.id), row] as const)
    known = new Map(rows.reverse())
    for (const apply of waiting) apply(known)
    waiting = undefined
    tell()
  }

  const stop = followEvents({
    open,
    after,
    onOpen: () => void readList(),
    onLost() {
      streams++
      fail(LOST)
    },
    on: {
      exchange(row) {
        if (!isRecord(row)) return
        change((rows) => {
          rows.set(textIn(row.id), row)
          const [oldest] = rows.keys()
          if (rows.size > MAX_EXCHANGES && oldest !== undefined) rows.delete(oldest)
        })
      },
      removed(gone) {
        if (isRecord(gone)) change((rows) => void rows.delete(textIn(gone.id)))
      },
    },
  })
  return () => {
    streams++
    cancelNext?.()
    stop()
  }
}
