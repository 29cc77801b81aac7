/** Sends a data plane the running captures, at first and whenever one starts or ends. */
import type { RunningCapture } from '../../model/capture.ts'
import { expiryOf, MAX_CAPTURES } from '../records/managed-captures.ts'
import { captures } from '../resources/captures.ts'
import type { Change } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'

export class CaptureFeed implements Followed {
  readonly #store: Store
  readonly #send: (running: readonly RunningCapture[]) => void

  constructor(store: Store, send: (running: readonly RunningCapture[]) => void) {
    this.#store = store
    this.#send = send
  }

  async load(): Promise<void> {
    const stored = await this.#store.read((reader) => reader.page({ kind: captures.kind, limit: MAX_CAPTURES }))
    // Sent even when there are none: a capture may have ended while this plane had no control plane.
    this.#send(stored.map(running))
  }

  async apply(changes: readonly Change[]): Promise<void> {
    if (changes.some(({ kind }) => kind === captures.kind)) await this.load()
  }
}

// What is stored has passed the form of its resource.
function running(stored: StoredResource): RunningCapture {
  const { edge_id, endpoint_id, bodies, max_body_bytes, unmask } = stored.fields
  return {
    id: stored.id,
    edgeId: String(edge_id ?? endpoint_id),
    bodies: bodies === true,
    maxBodyBytes: Number(max_body_bytes),
    unmask: unmask === true,
    expiresAt: expiryOf(stored),
  }
}
