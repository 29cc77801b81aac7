/** Shows requests to those who watch their endpoint from another data plane. */
import type { ServedRequest } from '../model/served-request.ts'
import { Gathering } from './gathering.ts'
import { type Neighbours, tellAll, whenMoved } from './neighbours.ts'

/** What is shared: the watched requests of this plane. */
export interface Watched {
  watched(): readonly string[]
  whenWatched(heard: (endpointId: string, isWatched: boolean) => void): void
  watchElsewhere(endpointId: string, watcher: (request: ServedRequest) => void): () => void
  sawElsewhere(endpointId: string, request: ServedRequest): void
}

type Seen = readonly [endpointId: string, request: ServedRequest]

/** Requests that wait to be told to one plane; of more, the newest: a screen shows no more than some dozens. */
const MAX_UNTOLD = 200

/** Gives a function that stops telling. */
export function shareWatched(neighbours: Neighbours, watched: Watched): () => void {
  const untold = new Map<string, Seen[]>()
  /** How to stop watching, by plane and endpoint. */
  const stops = new Map<string, Map<string, () => void>>()
  const gathering = new Gathering(() => {
    for (const [plane, seen] of untold) neighbours.tell(plane, 'watched.saw', seen.slice(-MAX_UNTOLD))
    untold.clear()
  })
  const note = (plane: string, endpointId: string, { method, path, status, durationMs }: ServedRequest): void => {
    const seen = untold.get(plane) ?? []
    untold.set(plane, seen)
    seen.push([endpointId, { method, path, status, durationMs }])
    if (seen.length > 2 * MAX_UNTOLD) seen.splice(0, MAX_UNTOLD)
    gathering.soon()
  }
  const change = (plane: string, endpointId: string, isWatched: boolean): void => {
    // Of a plane that is gone, or not known yet, nobody would take it back.
    if (!neighbours.others().includes(plane)) return
    const own = stops.get(plane) ?? new Map<string, () => void>()
    stops.set(plane, own)
    own.get(endpointId)?.()
    own.delete(endpointId)
    if (!isWatched) return
    own.set(
      endpointId,
      watched.watchElsewhere(endpointId, (request) => note(plane, endpointId, request)),
    )
  }
  const forget = (plane: string): void => {
    for (const stop of stops.get(plane)?.values() ?? []) stop()
    stops.delete(plane)
    untold.delete(plane)
  }

  watched.whenWatched((endpointId, isWatched) => tellAll(neighbours, 'watched.change', [endpointId, isWatched]))
  neighbours.serve('watched.change', (argument, from) => change(from, ...(argument as [string, boolean])))
  neighbours.serve('watched.all', () => watched.watched())
  neighbours.serve('watched.saw', (seen) => {
    for (const [endpointId, request] of seen as Seen[]) watched.sawElsewhere(endpointId, request)
  })
  whenMoved(neighbours, (came, left) => {
    for (const plane of left) forget(plane)
    for (const plane of came) {
      neighbours.ask(plane, 'watched.all', null).then(
        (ids) => {
          for (const id of ids as string[]) change(plane, id, true)
        },
        () => {}, // it is gone again
      )
    }
  })
  return () => {
    gathering.close()
    watched.whenWatched(() => {})
    for (const plane of [...stops.keys()]) forget(plane)
  }
}
