/** Shows requests to watchers of their endpoint at other data planes. */
import type { ServedRequest } from '../../model/served-request.ts'
import { GatheredChanges } from './gather-changes.ts'
import type { WorkerPeers } from './worker-peers.ts'

/** The watched requests of this plane. */
interface Watched {
  watched(): readonly string[]
  whenWatched(heard: (endpointId: string, isWatched: boolean) => void): void
  watchForPeer(endpointId: string, watcher: (request: ServedRequest) => void): () => void
  sawAtPeer(endpointId: string, request: ServedRequest): void
}

/** Most requests that wait to be sent to one plane; the newest are kept, since a screen shows only a few dozen. */
const MAX_UNSENT = 200

/** Gives a function that stops sharing. */
export function shareWatched(peers: WorkerPeers, watched: Watched): () => void {
  const unsent = new Map<string, [endpointId: string, request: ServedRequest][]>()
  /** How to stop watching, by plane and endpoint. */
  const stops = new Map<string, Map<string, () => void>>()
  const gathering = new GatheredChanges(() => {
    for (const [plane, seen] of unsent) peers.tell(plane, 'watched.saw', seen.slice(-MAX_UNSENT))
    unsent.clear()
  })
  const note = (plane: string, endpointId: string, { method, path, status, durationMs }: ServedRequest): void => {
    const seen = unsent.get(plane) ?? []
    unsent.set(plane, seen)
    seen.push([endpointId, { method, path, status, durationMs }])
    if (seen.length > 2 * MAX_UNSENT) seen.splice(0, MAX_UNSENT)
    gathering.soon()
  }
  const change = (plane: string, endpointId: string, isWatched: boolean): void => {
    // A watch by an unknown plane is ignored: when that plane goes, nothing would end it.
    if (!peers.others().includes(plane)) return
    const own = stops.get(plane) ?? new Map<string, () => void>()
    stops.set(plane, own)
    own.get(endpointId)?.()
    own.delete(endpointId)
    if (!isWatched) return
    own.set(
      endpointId,
      watched.watchForPeer(endpointId, (request) => note(plane, endpointId, request)),
    )
  }
  const forget = (plane: string): void => {
    for (const stop of stops.get(plane)?.values() ?? []) stop()
    stops.delete(plane)
    unsent.delete(plane)
  }

  watched.whenWatched((endpointId, isWatched) => peers.tellAll('watched.change', [endpointId, isWatched]))
  peers.serve('watched.change', (watched, from) => change(from, ...watched))
  peers.serve('watched.all', () => watched.watched())
  peers.serve('watched.saw', (seen) => {
    for (const [endpointId, request] of seen) watched.sawAtPeer(endpointId, request)
  })
  peers.whenMoved((came, left) => {
    for (const plane of left) forget(plane)
    for (const plane of came) {
      peers.ask(plane, 'watched.all', null).then(
        (ids) => {
          for (const id of ids) change(plane, id, true)
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
