/** Composes how this data plane reaches what is online at others, of this node and of other nodes. */
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { isDeepStrictEqual } from 'node:util'
import type { Movable } from '../../lib/bytes/close-when-idle.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import type { ListenOn } from '../../lib/net/listen-on.ts'
import type { Authority } from '../../lib/x509/certificate-authority.ts'
import { type ControlLink, LOOKUP_MS } from '../../link/planes/control-link.ts'
import { createNodeIdentity } from '../../link/planes/node-identity.ts'
import { NodeLinks } from '../../link/planes/node-links.ts'
import { PassedCalls } from '../../link/planes/passed-calls.ts'
import type { OtherNode, PlaneCalls } from '../../link/planes/plane-calls.ts'
import type { WireStream } from '../../link/wire/wire-stream.ts'
import { type Dial, DialFault } from '../../model/dial.ts'
import type { EdgeConfig } from '../../model/edge-config.ts'
import type { LookUp } from '../../model/look-up.ts'
import type { RemoteMetrics } from '../../model/plane-metrics.ts'
import type { EdgeTable } from '../edge/edge-table.ts'
import type { EndpointHolders } from '../edge/endpoint-holders.ts'
import type { Online } from '../tunnel/online-tunnels.ts'
import type { Tunnel } from '../tunnel/session-types.ts'
import { keepLast } from './address-cache.ts'
import { NodeListener } from './node-listener.ts'
import { NodeTunnels } from './node-tunnels.ts'
import type { RelayLinks } from './relay-links.ts'
import { WorkerListener } from './worker-listener.ts'
import { WorkerTunnels } from './worker-tunnels.ts'

interface RemoteTunnelsOptions {
  readonly nodeId: string
  readonly planeId: string
  /** The folder with the Unix sockets of the node's data planes; undefined when there is only one. */
  readonly folder?: string | undefined
  /** Where other nodes connect; undefined for a node on its own. */
  readonly clusterListen: ListenOn | undefined
  readonly control: ControlLink
  readonly authority: Authority
  readonly edges: EdgeTable
  readonly shared: EndpointHolders
  readonly online: Online
  /** Sessions to the other planes of this node. */
  readonly links: RelayLinks
  /** Takes the stream with the calls of another plane of this node. */
  readonly answer: (stream: WireStream) => void
  /** Opens a connection to the control plane of this node, for the calls of other nodes. */
  readonly callsToControl: () => Duplex
  /** Whether an endpoint is being opened at this plane. */
  readonly isOpening: (endpointId: string) => boolean
  readonly log: Logger
}

/** The holder of endpoints that are served here for tunnels at other nodes; other holders are ids of tunnels. */
const OTHER_NODES = 'other nodes'

export function openRemoteTunnels(options: RemoteTunnelsOptions) {
  const { nodeId, planeId, folder, clusterListen, control, authority, edges, shared, online, links, log } = options
  const { registry } = online
  let isLeaving = false
  let onMoved = (_tunnelId: string) => {}
  const moved = (tunnelId: string) => onMoved(tunnelId)
  const others = new WorkerTunnels({
    edges: shared,
    groups: registry.groups,
    relay: (id, request) => links.dial(id, request),
    leg: (sessionId, request) => online.legs.open(sessionId, request),
    isHere: (tunnelId) => registry.liveTunnel(tunnelId) !== undefined,
    isLeaving: () => isLeaving,
    handOver: (tunnelId) => {
      registry.handOver(tunnelId)
      ended(tunnelId)
    },
    moved,
  })
  /** Tells nodes that reached a tunnel here, or through here, to look it up again. */
  const ended = (tunnelId: string): void => nodeListener?.tunnelEnded(tunnelId)
  const dialHere: Dial = (request) => registry.dialHere(request)
  const workerListener = new WorkerListener({ dial: dialHere, answer: options.answer, log })

  // The same for other nodes.
  const isOfThisNode = (tunnelId: string): boolean =>
    registry.liveTunnel(tunnelId) !== undefined || others.holderOf(tunnelId) !== undefined
  /** Dials tunnels of this node for visitors at another node; never goes on to a third node. */
  const dialForNode: Dial = (request) =>
    registry.liveTunnel(request.tunnelId) ? dialHere(request) : others.dialOnce(request)
  const identity = clusterListen && createNodeIdentity({ nodeId, planeId }, authority)
  let known: ReadonlyMap<string, OtherNode> = new Map()
  /** Nodes that are gone: while look-ups fail, their tunnels are still dialled there. */
  const gone = new Map<string, OtherNode>()
  const nodeLinks =
    identity &&
    new NodeLinks({
      ...{ identity, log },
      addressOf: (id): OtherNode['address'] | undefined =>
        (known.get(id) ?? (nodes?.isBlind ? gone.get(id) : undefined))?.address,
      onGone: (tunnelIds) => nodes?.gone(tunnelIds),
    })
  const calls = new PassedCalls({ connect: options.callsToControl })
  const nodeListener =
    identity &&
    new NodeListener({
      ...{ identity, dial: dialForNode, log },
      answer: (stream, from) => calls.accept(stream, from),
      serves: (holders) =>
        holders.map(
          (each) =>
            registry.liveTunnel(each.tunnelId) !== undefined ||
            registry.holdersOf(each.place).length > 0 ||
            others.serves(each),
        ),
    })
  const nodes: NodeTunnels | undefined =
    nodeLinks &&
    new NodeTunnels({
      edges: {
        exact: (listener, name) => edges.exact(listener, name),
        onPort: (port) => edges.holder('tcp', { port }),
        serves: (listener, name) => edges.serves(name, listener),
        serveIdle: (config) => shared.serveIdle(config, OTHER_NODES),
        letGo: (id) => shared.letGo(id, OTHER_NODES),
      },
      groups: registry.groups,
      lookUpAddresses: (names) => control.ask('lookUpPlaces', names, { withinMs: LOOKUP_MS }),
      lookUpGroup: (labels) => control.ask('lookUpGroup', labels, { withinMs: LOOKUP_MS }),
      dial: (at, request) => nodeLinks.dial(at, request),
      isHere: isOfThisNode,
      isOpening: options.isOpening,
      moved,
      log,
    })
  shared.whenRemoved(() => void nodes?.edgeRemoved())
  /** Where nodes that are not leaving accept agents. */
  const agentAddresses = (): string[] =>
    [...known.values()].flatMap(({ isLeaving, agentAddresses: accept }) => (isLeaving ? [] : accept))
  const lookUp: LookUp | undefined = nodes && ((...asked) => nodes.lookUp(...asked))

  return {
    others,
    lookUp,
    /** Whether this plane gives up tunnels that move away. */
    get isLeaving(): boolean {
      return isLeaving
    },
    leave(): void {
      isLeaving = true
    },
    /** `then` runs when a tunnel is reached another way from now on. */
    whenMoved(then: (tunnelId: string) => void): void {
      onMoved = then
    },
    /** The session of a tunnel at another plane or node, if known. */
    sessionOf: (tunnelId: string) => others.holderOf(tunnelId) ?? nodes?.sessionOf(tunnelId),
    isRemote: (endpointId: string) => nodes?.has(endpointId) === true,
    followGroup: nodes && ((labels: Readonly<Record<string, string>>) => nodes.follow(labels)),
    /** Dials a tunnel at another plane or node. */
    dial: (async (request) => {
      const outcome = await nodes?.dial(request)
      if (outcome && !(outcome instanceof DialFault && isOfThisNode(request.tunnelId))) return outcome
      return others.dial(request)
    }) satisfies Dial,
    /** A tunnel has come online at this plane. */
    cameHere(tunnelId: string, config: EdgeConfig | undefined): void {
      others.cameHere(tunnelId)
      nodes?.cameHere(tunnelId, config)
    },
    leftHere({ id, labels, endpoint }: Pick<Tunnel, 'id' | 'labels' | 'endpoint'>): void {
      ended(id)
      if (labels) nodes?.labelsGone(id, labels)
      if (!endpoint || !isLeaving) return
      nodes?.leftHere(id, { place: endpoint.place, config: endpoint.open.served.config })
    },
    holderOf: (tunnelId: string) => others.holderOf(tunnelId),
    legChanged: (sessionId: string) => others.legChanged(sessionId),
    /** Streams that this plane carries for visitors at others. */
    relayed: {
      get streams(): number {
        return workerListener.dials.streams + (nodeListener?.dials.streams ?? 0)
      },
      get open(): Movable[] {
        return [...workerListener.dials.open, ...(nodeListener?.dials.open ?? [])]
      },
      /** Asks other nodes to use other planes of this node. */
      stop: () => nodeListener?.stop(),
    },
    /** For the metrics. */
    get metrics(): RemoteMetrics {
      const lookUps = nodes?.lookUps
      return {
        totals: {
          relayed: links.dialled,
          toNodes: nodeLinks?.dialled ?? 0,
          unreachedNodes: nodeLinks?.unreached ?? 0,
          fromNodes: nodeListener?.dials.accepted ?? 0,
          lookUps: lookUps?.total ?? 0,
          failedLookUps: lookUps?.failed ?? 0,
        },
        present: {
          linksToNodes: nodeLinks?.links ?? 0,
          linksFromNodes: nodeListener?.links ?? 0,
          streamsToNodes: nodeLinks?.streams ?? 0,
          streamsFromNodes: nodeListener?.dials.streams ?? 0,
        },
      }
    },
    /** Whether a connection to a tunnel may be kept for the next request. */
    mayKeep: (tunnelId: string) => others.mayKeep(tunnelId) && nodes?.mayKeep(tunnelId) !== false,
    /** What agents are told of nodes; undefined for a node on its own. */
    agentNodes: identity && { id: nodeId, addresses: agentAddresses },
    agentAddresses,
    calls: {
      async elsewhere(change) {
        for (const id of [...change.removed, ...change.lost]) {
          ended(id)
          const labels = others.labelsOf(id)
          if (labels) nodes?.labelsGone(id, labels)
        }
        await others.change(change)
        // Last, so that an address that another node had is served without a gap: closing a port resets visitors.
        for (const { tunnelId, config } of change.added) nodes?.cameHere(tunnelId, config)
      },
      nodes(given) {
        const before = known
        const sent = agentAddresses()
        known = new Map(given.map((each) => [each.nodeId, each]))
        nodes?.nodesChanged(given)
        const addresses = agentAddresses()
        // Agents of a draining plane learn the addresses when they are asked to move.
        if (!isDeepStrictEqual(addresses, sent) && !isLeaving) void online.tellNodes(addresses)
        for (const id of known.keys()) gone.delete(id)
        for (const [id, node] of before) {
          if (known.has(id)) continue
          keepLast(gone, id, node)
          nodes?.nodeGone(id)
        }
        for (const id of gone.keys()) nodeLinks?.forget(id)
      },
      distantPorts: async (change) => nodes?.portsChanged(change),
    } satisfies Partial<PlaneCalls>,
    /** Listens for other planes of this node, and then for other nodes; resolves with the address for nodes. */
    async listen(): Promise<AddressInfo | undefined> {
      if (folder !== undefined) await workerListener.listen(join(folder, `${planeId}.relay`))
      return clusterListen && nodeListener?.listen(clusterListen)
    },
    async close(): Promise<void> {
      await nodeListener?.close()
      calls.close()
      await workerListener.close()
      nodes?.close()
      nodeLinks?.close()
    },
  }
}
