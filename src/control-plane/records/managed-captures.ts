/** Starts and ends captures for the API, and removes those that have expired. */
import { timestamp } from '../../lib/clock.ts'
import { BadValue } from '../../lib/shape/check.ts'
import { Refusal } from '../../model/errors.ts'
import type { Presence } from '../../model/presence.ts'
import { captures, MAX_CAPTURES } from '../resources/captures.ts'
import { httpsEdges } from '../resources/https-edges.ts'
import type { Fields } from '../resources/resource.ts'
import type { ControlTools } from '../store/control-tools.ts'
import type { Change } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { StoredResource } from '../store/reader.ts'
import { checkMentions } from './check-references.ts'
import type { Principal } from './find-caller.ts'
import type { ResourceTarget } from './ownership.ts'
import type { Records } from './records.ts'
import type { Complete } from './show-resource.ts'

interface CaptureControlOptions extends Pick<ControlTools, 'store' | 'now' | 'log'> {
  readonly records: Records
  readonly presence: Pick<Presence, 'endpoint' | 'tunnel' | 'session'>
  /** The configuration of an agent's endpoint that is online here. */
  readonly endpoint: (id: string) => { readonly id: string; readonly ownerId?: string | undefined } | undefined
}

/** Pause between two tries to remove expired captures, in milliseconds. Data planes stop on time by themselves. */
const RETRY_MS = 10_000

export class ManagedCaptures implements Followed {
  readonly #options: CaptureControlOptions
  #timer: NodeJS.Timeout | undefined
  #isStopped = false
  /** The edges that are captured. */
  #edges: ReadonlySet<string> = new Set()

  constructor(options: CaptureControlOptions) {
    this.#options = options
  }

  /** Removes captures that have expired or whose edge is gone, and later the running ones as they expire. */
  async load(): Promise<void> {
    const { store, now, log } = this.#options
    const all = await store.read((reader) => reader.page({ kind: captures.kind, limit: MAX_CAPTURES }))
    const edgeIds = all.flatMap(({ fields: { edge_id: id } }) => (typeof id === 'string' ? [id] : []))
    const edges = new Set((await store.read((reader) => reader.resources(edgeIds))).map(({ id }) => id))
    this.#edges = edges
    const isGone = ({ fields: { edge_id: id } }: StoredResource) => typeof id === 'string' && !edges.has(id)
    for (const capture of all.filter((each) => expiryOf(each) <= now() || isGone(each))) {
      const { id } = capture
      const isRemoved = await store.write(async (writer) => {
        // Another node may have been faster.
        if (!(await writer.lock(captures.kind, id))) return false
        await writer.remove(id)
        writer.changed(captures.kind, id)
        return true
      })
      if (isRemoved) log.info({ capture: id }, isGone(capture) ? 'capture ended with its edge' : 'capture expired')
    }
    const next = Math.min(...all.map(expiryOf).filter((at) => at > now()))
    if (Number.isFinite(next)) this.#wakeIn(next - now())
  }

  async apply(changes: readonly Change[]): Promise<void> {
    const concerns = ({ kind, id }: Change) => kind === captures.kind || this.#edges.has(id)
    if (changes.some(concerns)) await this.load()
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  /** `body` has passed its form. Rejects with `BadValue` or `Refusal`. */
  async create(principal: Principal, body: Fields): Promise<Complete> {
    const { records, now, log } = this.#options
    if (body.unmask === true && principal.role !== 'admin') {
      throw new Refusal('FORBIDDEN', 'only an admin may keep secrets of visitors; leave out `unmask`', {
        field: 'unmask',
      })
    }
    const named = await this.#captured(principal, body)
    await this.load()
    // The form has a default.
    const expiresAt = Math.ceil(now() / 1000) * 1000 + Number(body.duration) * 1000
    const { edge_id: _, endpoint_id: __, ...rest } = body
    const made = await records.create(
      captures,
      principal,
      { ...rest, ...named, expires_at: timestamp(expiresAt) },
      null,
    )
    const { bodies, unmask } = body
    log.info(
      { capture: made.id, ...named, bodies, unmask, until: timestamp(expiresAt), by: principal.id },
      'capture started',
    )
    return made
  }

  async remove(principal: Principal, target: ResourceTarget): Promise<void> {
    const { records, log } = this.#options
    await records.remove(captures, principal, target)
    log.info({ capture: target.id, by: principal.id }, 'capture ended')
  }

  #wakeIn(ms: number): void {
    clearTimeout(this.#timer)
    if (this.#isStopped) return
    this.#timer = setTimeout(() => {
      this.load().catch((err: unknown) => {
        this.#options.log.debug({ err }, 'cannot remove expired captures; retrying')
        this.#wakeIn(RETRY_MS)
      })
    }, ms).unref()
  }

  /** The edge or endpoint that the body names, which the caller must be allowed to use. */
  async #captured(principal: Principal, body: Fields): Promise<Fields> {
    const { edge_id: edgeId, endpoint_id: endpointId } = body
    if (typeof edgeId === 'string' && typeof endpointId === 'string') {
      throw new BadValue('endpoint_id', 'value', '`endpoint_id` cannot be combined with `edge_id`; name one of them')
    }
    if (typeof edgeId === 'string') {
      const mention = { field: 'edge_id', id: edgeId, kinds: [httpsEdges.kind] }
      await this.#options.store.read((reader) => checkMentions(reader, [mention]))
      return { edge_id: edgeId }
    }
    if (typeof endpointId !== 'string')
      throw new BadValue('edge_id', 'required', '`edge_id` or `endpoint_id` is required')
    const found = this.#options.endpoint(endpointId) ?? (await this.#atAnotherNode(endpointId))
    if (!found || (principal.role !== 'admin' && found.ownerId !== principal.id)) {
      const msg = `\`endpoint_id\`: there is no endpoint of an agent with the id \`${endpointId.slice(0, 64)}\` online`
      throw new Refusal('UNKNOWN_REFERENCE', msg, { field: 'endpoint_id' })
    }
    return { endpoint_id: found.id }
  }

  /** An endpoint whose agent is at another node, with its owner. */
  async #atAnotherNode(
    endpointId: string,
  ): Promise<{ readonly id: string; readonly ownerId?: string | undefined } | undefined> {
    const { presence, store } = this.#options
    const { tunnelId } = (await presence.endpoint(endpointId)) ?? {}
    const tunnel = tunnelId === undefined ? undefined : await presence.tunnel(tunnelId)
    const session = tunnel && (await presence.session(tunnel.sessionId))
    if (!session) return undefined
    const [credential] = await store.read((reader) => reader.resources([session.credentialId]))
    return { id: endpointId, ownerId: credential?.ownerId ?? undefined }
  }
}

/** When a stored capture ends, in milliseconds since 1970. */
export function expiryOf({ fields }: Pick<StoredResource, 'fields'>): number {
  return Date.parse(String(fields.expires_at))
}
