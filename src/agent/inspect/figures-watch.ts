/** Counts the exchanges of a tunnel for the live view. */
import type { SeenRequest, TunnelFigures } from '../tunnel-figures.ts'
import type { ExchangeNotes, ExchangeWatcher, PassingRequest } from './connection-watch.ts'

/** How much of a path is kept, in characters. */
const PATH_CHARACTERS = 200

/** The status that the server sends to a visitor whose request the service did not answer. */
const BAD_GATEWAY = 502

interface FiguresWatchOptions {
  readonly figures: TunnelFigures
  /** The name of the tunnel. */
  readonly tunnel: string
  /** Milliseconds, for durations. */
  readonly now: () => number
  /** Milliseconds since 1970. */
  readonly clock: () => number
  /** A request began, or got its answer. */
  readonly onChange: () => void
  /** Gets all exchanges too. It cannot leave any out, since all are counted. */
  readonly inspector?: ExchangeWatcher | undefined
}

export function figuresWatch({
  figures,
  tunnel,
  now,
  clock,
  onChange,
  inspector,
}: FiguresWatchOptions): ExchangeWatcher {
  return {
    began(begun: PassingRequest): ExchangeNotes {
      const notes = inspector?.began(begun)
      const at = now()
      const request: SeenRequest = {
        ...{ tunnel, time: clock(), method: begun.method, path: begun.target.slice(0, PATH_CHARACTERS) },
        ...{ status: undefined, durationMs: undefined },
      }
      const answered = (status: number): void => {
        if (request.status !== undefined) return
        request.status = status
        request.durationMs = now() - at
        figures.took(request.durationMs)
        onChange()
      }
      figures.saw(request)
      onChange()
      return {
        onRequestBody: (chunk) => notes?.onRequestBody?.(chunk),
        onRequestEnded: () => notes?.onRequestEnded?.(),
        onAnswered(head) {
          notes?.onAnswered(head)
          answered(head.status)
        },
        onResponseBody: (chunk) => notes?.onResponseBody?.(chunk),
        onFrame: (from, frame) => notes?.onFrame?.(from, frame),
        onEvent: (event) => notes?.onEvent?.(event),
        onEnded(how) {
          notes?.onEnded(how)
          if (how === 'unserved') answered(BAD_GATEWAY)
        },
      }
    },
  }
}
