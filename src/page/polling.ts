/** Polls: at a steady pace while it works, with ever longer pauses while it fails. */
import type { CallFault, CallOutcome } from './api-caller.ts'

/** The first wait after a failure, in milliseconds; it doubles with each further one. */
const FIRST_RETRY_MS = 1000
const MAX_RETRY_MS = 30_000
/** Reading takes at most a fifth of the time, so that long lists do not keep the server busy. */
const PAUSE_FACTOR = 4

/** The latest result of polling. */
export interface Reading<T> {
  /** The latest value; undefined before the first. */
  readonly value: T | undefined
  /** When it was read, in milliseconds since 1970. */
  readonly readAt: number
  /** Why the latest attempt failed; undefined while `value` is current. */
  readonly fault: CallFault | undefined
}

export interface PollingTools {
  readonly now: () => number
  /** Runs `then` after `ms`; returns a function that cancels it. */
  readonly after: (ms: number, then: () => void) => () => void
}

interface PollingOptions<T> extends PollingTools {
  readonly load: () => Promise<CallOutcome<T>>
  readonly everyMs: number
  readonly onChange: (reading: Reading<T>) => void
}

export function pauseMs(everyMs: number, tookMs: number, failures: number): number {
  if (failures === 0) return Math.max(everyMs, tookMs * PAUSE_FACTOR)
  return Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** (failures - 1))
}

/** Starts at once; returns functions to read again now and to stop. */
export function startPolling<T>({ load, everyMs, onChange, now, after }: PollingOptions<T>) {
  let reading: Reading<T> = { value: undefined, readAt: 0, fault: undefined }
  let failures = 0
  let isOver = false
  let isReading = false
  let isWanted = false
  let cancel = (): void => {}

  const read = async (): Promise<void> => {
    cancel()
    // One at a time. A refresh reads once more after the current read, which may have begun before a change.
    if (isReading) {
      isWanted = true
      return
    }
    isReading = true
    const began = now()
    const outcome = await load()
    isReading = false
    if (isOver) return
    failures = outcome.ok ? 0 : failures + 1
    reading = outcome.ok
      ? { value: outcome.value, readAt: now(), fault: undefined }
      : { ...reading, fault: outcome.fault }
    onChange(reading)
    if (isWanted) {
      isWanted = false
      await read()
      return
    }
    cancel = after(pauseMs(everyMs, now() - began, failures), () => void read())
  }

  void read()
  return {
    refresh: () => void read(),
    stop() {
      isOver = true
      cancel()
    },
  }
}
