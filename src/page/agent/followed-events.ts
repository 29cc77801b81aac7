/** Follows server-sent events of the agent, and begins anew after each break. */
import type { PollingTools } from '../polling.ts'

/** How long after a break it is tried again, in milliseconds: the agent is on the same machine. */
const RETRY_MS = 1000

/** What is used of an `EventSource`. */
export interface EventStream {
  addEventListener(type: string, listener: (event: { readonly data?: unknown }) => void): void
  close(): void
}

export interface FollowedEventsOptions {
  readonly open: () => EventStream
  readonly after: PollingTools['after']
  /** A stream is there; what an earlier one told may be old. */
  readonly onOpen: () => void
  readonly onLost: () => void
  /** By the type of the event; what it brings is JSON. */
  readonly on: Readonly<Record<string, (value: unknown) => void>>
}

/** Returns a function that ends it. */
export function followEvents({ open, after, onOpen, onLost, on }: FollowedEventsOptions): () => void {
  let cancel = (): void => {}
  const begin = (): void => {
    const stream = open()
    cancel = () => stream.close()
    stream.addEventListener('open', onOpen)
    // A browser tries again by itself after some breaks and gives up after others, so it is not left to it.
    stream.addEventListener('error', () => {
      stream.close()
      cancel = after(RETRY_MS, begin)
      onLost()
    })
    for (const [type, listener] of Object.entries(on)) {
      stream.addEventListener(type, ({ data }) => listener(JSON.parse(String(data))))
    }
  }
  begin()
  return () => cancel()
}
