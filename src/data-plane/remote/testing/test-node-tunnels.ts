/** For tests: a data plane that looks up what other nodes have, and a directory that answers. */
import type { ByteStream } from '../../../lib/bytes/byte-stream.ts'
import { createLog } from '../../../lib/log/create-log.ts'
import type { RemoteAddress, RemoteTunnel } from '../../../link/planes/plane-calls.ts'
import { DialFault, type DialRequest } from '../../../model/dial.ts'
import type { EdgeConfig, TunnelPlan } from '../../../model/edge-config.ts'
import { LabelGroups, type LabelledTunnel } from '../../../model/label-groups.ts'
import type { Listener } from '../../../model/look-up.ts'
import { NodeTunnels } from '../node-tunnels.ts'

/** Longer than an answer is used as it is, and longer than it is used without waiting, in milliseconds. */
export const AGED_MS = 2000
export const OLD_MS = 6000

/** More names than are kept, and more look-ups than are allowed at once. */
export const MANY_NAMES = 20_001
export const MANY_ASKED = 501

const visit = { ip: '192.0.2.1', port: 4000, proto: 'https', edge: 'none', passthroughTls: false } as const
export const request = (tunnelId: string, version?: string): DialRequest => ({ tunnelId, ...visit, version })

const log = createLog({ level: 'silent', format: 'json', destination: { write() {} } })
export const stream = { isStream: true } as unknown as ByteStream
export const settled = () => new Promise<void>((resolve) => setImmediate(resolve))
export const isUnknown = (outcome: unknown): boolean => outcome instanceof DialFault && outcome.reason === 'unreachable'
export const isOffline = (outcome: unknown): boolean => outcome instanceof DialFault && outcome.reason === 'offline'

export const tunnelOf = (tunnelId: string, nodeId = 'nd_b', labels?: Record<string, string>): RemoteTunnel => ({
  ...{ tunnelId, sessionId: `ts_${tunnelId}`, nodeId, planeId: 'w1', httpVersion: 1 },
  ...(labels && { labels }),
})

interface PlaceFacts {
  readonly tunnelId?: string
  readonly nodeId?: string
  readonly version?: string
  /** What else an agent asked for. */
  readonly guard?: string
}

/** A place such as `secure:a.example.com` or `:20001`, of a tunnel at another node. */
export function placeOf(
  place: string,
  { tunnelId = 'tn_1', nodeId, version = 'v1', guard }: PlaceFacts = {},
): RemoteAddress {
  const [listener, name = ''] = place.split(':')
  const backend: TunnelPlan = { kind: 'tunnel', tunnelId, httpVersion: 1, proxyHeader: 0 }
  const config: EdgeConfig = {
    id: `ep_${tunnelId}`,
    kind: listener === 'plain' ? 'http' : 'https',
    names: listener === '' ? [] : [name],
    ports: listener === '' ? [Number(name)] : [],
    modules: {},
    routes: [
      { id: 'r', matchType: 'path_prefix', match: '/', modules: { ...(guard && { basic_auth: guard }), backend } },
    ],
  }
  return { place, config, version, tunnel: tunnelOf(tunnelId, nodeId) }
}

/** A data plane, and what the directory of all nodes answers it. */
export class RemotePlane {
  now = 0
  /** By place. */
  readonly stored = new Map<string, RemoteAddress>()
  members: RemoteTunnel[] = []
  isAway = false
  /** Holds back answers while it is set. */
  held: Promise<void> | undefined
  readonly asked: string[] = []
  groupsAsked = 0
  /** What is served, by id. */
  readonly served = new Map<string, EdgeConfig>()
  readonly own = new Map<string, string>()
  /** Names that a wildcard here serves. */
  readonly covered = new Set<string>()
  readonly here = new Set<string>()
  readonly groups = new LabelGroups<LabelledTunnel>()
  readonly dialled: string[] = []
  readonly moved: string[] = []
  /** What is really online: the version, or `''`, by tunnel and node. */
  readonly online = new Map<string, string>()
  readonly nodes = new NodeTunnels({
    edges: {
      exact: (listener, name) => this.own.get(`${listener}:${name}`) ?? this.#servedAt(listener, name),
      onPort: (port) => this.own.get(`:${port}`),
      serves: (_, name) => this.covered.has(name),
      serveIdle: async (config) => void this.served.set(config.id, config),
      letGo: (id) => void this.served.delete(id),
    },
    groups: this.groups,
    lookUpAddresses: async (addresses) => {
      this.asked.push(addresses[0] ?? '')
      // Like a database, it answers with its state at this moment.
      const found = addresses.flatMap((place) => this.stored.get(place) ?? [])
      await this.held
      if (this.isAway) throw new Error('the database is away')
      return found
    },
    lookUpGroup: async () => {
      this.groupsAsked++
      const found = [...this.members]
      await this.held
      if (this.isAway) throw new Error('the database is away')
      return found
    },
    dial: async ({ nodeId }, { tunnelId, version }) => {
      this.dialled.push(`${tunnelId}@${nodeId}${version === undefined ? '' : ` ${version}`}`)
      const there = this.online.get(`${tunnelId}@${nodeId}`)
      if (there === undefined) return new DialFault('offline', 'not here')
      return version === undefined || version === there ? stream : new DialFault('offline', 'it has changed')
    },
    isHere: (id) => this.here.has(id),
    moved: (id) => void this.moved.push(id),
    log,
    now: () => this.now,
  })

  #servedAt(listener: Listener, name: string): string | undefined {
    const kind = listener === 'plain' ? 'http' : 'https'
    return [...this.served.values()].find((config) => config.kind === kind && config.names.includes(name))?.id
  }

  store(...addresses: readonly RemoteAddress[]): void {
    for (const place of addresses) {
      this.stored.set(place.place, place)
      this.online.set(`${place.tunnel.tunnelId}@${place.tunnel.nodeId}`, place.version)
    }
  }

  /** Whether a visitor has to wait; resolves when it no longer has to. */
  async look(name: string, listener: Listener = 'secure', ip = '192.0.2.1'): Promise<boolean> {
    const pending = this.nodes.lookUp(listener, name, {}, ip)
    await pending
    // It looks again, and uses what is known by then.
    if (pending) await this.nodes.lookUp(listener, name, { hasWaited: true }, ip)
    return pending !== undefined && pending !== 'busy'
  }

  /** The version in which visitors of an endpoint are let in. */
  version(endpointId: string): string | undefined {
    const plan = this.served.get(endpointId)?.routes[0]?.modules.backend as TunnelPlan | undefined
    return plan?.version
  }

  get ids(): string[] {
    return [...this.served.keys()].toSorted()
  }
}
