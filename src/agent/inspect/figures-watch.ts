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
}

export function figuresWatch({ figures, tunnel, now, clock, onChange }: FiguresWatchOptions): ExchangeWatcher {
  return {
    began({ method, target }: PassingRequest): ExchangeNotes {
      const at = now()
      const request: SeenRequest = {
        ...{ tunnel, time: clock(), method, path: target.slice(0, PATH_CHARACTERS) },
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
        onAnswered: ({ status }) => answered(status),
        onEnded: (how) => {
          if (how === 'unserved') answered(BAD_GATEWAY)
        },
      }
    },
  }
}
