/** Combines two watchers of exchanges into one. */
import type { ExchangeWatcher } from './connection-watch.ts'

/** Either may be missing. */
export function bothWatchers(
  one: ExchangeWatcher | undefined,
  other: ExchangeWatcher | undefined,
): ExchangeWatcher | undefined {
  if (!one || !other) return one ?? other
  return {
    began(request) {
      const first = one.began(request)
      const second = other.began(request)
      return {
        onRequestBody(chunk) {
          first.onRequestBody?.(chunk)
          second.onRequestBody?.(chunk)
        },
        onRequestEnded() {
          first.onRequestEnded?.()
          second.onRequestEnded?.()
        },
        onAnswered(head) {
          first.onAnswered(head)
          second.onAnswered(head)
        },
        onResponseBody(chunk) {
          first.onResponseBody?.(chunk)
          second.onResponseBody?.(chunk)
        },
        onFrame(from, frame) {
          first.onFrame?.(from, frame)
          second.onFrame?.(from, frame)
        },
        onEvent(event) {
          first.onEvent?.(event)
          second.onEvent?.(event)
        },
        onEnded(how) {
          first.onEnded(how)
          second.onEnded(how)
        },
      }
    },
  }
}
