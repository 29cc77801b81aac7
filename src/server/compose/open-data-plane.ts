/**
 * Composes the data plane: builds, starts and stops all that carries traffic, in the order written here.
 *
 * One thing: everything that a data plane opens, in order.
 */
import { randomBytes } from 'node:crypto'
import { Replays } from '../../data-plane/dry-run/replay-exchange.ts'
import { AccessLog } from '../../data-plane/edge/access-log.ts'
import { Challenges } from '../../data-plane/edge/acme-challenges.ts'
import { AgentEndpoints } from '../../data-plane/edge/agent-endpoints.ts'
import { BodyMemory, bodyMemoryOf } from '../../data-plane/edge/body-memory.ts'
import { ConfiguredEdges } from '../../data-plane/edge/configured-edges.ts'
import { DisconnectWatch } from '../../data-plane/edge/detect-disconnects.ts'
import { EdgeRouter } from '../../data-plane/edge/edge-router.ts'
import { EdgeTable } from '../../data-plane/edge/edge-table.ts'
import { EndpointHolders } from '../../data-plane/edge/endpoint-holders.ts'
import { HttpFront } from '../../data-plane/edge/http-front.ts'
import { boundTo, listening, openListener } from '../../data-plane/edge/open-listener.ts'
import { errorPages } from '../../data-plane/edge/pages/error-page.ts'
import { PublicListener } from '../../data-plane/edge/public-listener.ts'
import { PublicTcpPorts, type RemotePortHolders } from '../../data-plane/edge/public-tcp-ports.ts'
import { httpRefusals } from '../../data-plane/edge/refuse-http.ts'
import { retireEdge } from '../../data-plane/edge/retire-edge.ts'
import { Certificates } from '../../data-plane/edge/served-certificates.ts'
import { TlsServers } from '../../data-plane/edge/tls-servers.ts'
import { TrafficCount } from '../../data-plane/edge/traffic-count.ts'
import { waitForLoad } from '../../data-plane/edge/wait-for-load.ts'
import { CachedLogins } from '../../data-plane/mirrored/cached-logins.ts'
import { requestKeyOf } from '../../data-plane/mirrored/control-queries.ts'
import { IngressNames } from '../../data-plane/mirrored/ingress-names.ts'
import { MirroredMap } from '../../data-plane/mirrored/mirrored-map.ts'
import { Restrictions } from '../../data-plane/mirrored/part-restrictions.ts'
import { UploadedCertificates } from '../../data-plane/mirrored/uploaded-certificates.ts'
import { DrainTogether } from '../../data-plane/node-limits/drain-together.ts'
import { shareCaps } from '../../data-plane/node-limits/share-caps.ts'
import { shareWatched } from '../../data-plane/node-limits/share-watched.ts'
import { SharedBreakers } from '../../data-plane/node-limits/shared-breakers.ts'
import { SharedCounters } from '../../data-plane/node-limits/shared-counters.ts'
import type { WorkerCalls } from '../../data-plane/node-limits/worker-peers.ts'
import { openRemoteTunnels } from '../../data-plane/remote/remote-tunnels.ts'
import { PlaneExchanges } from '../../data-plane/requests/plane-exchanges.ts'
import { sshLimits } from '../../data-plane/ssh/ssh-limits.ts'
import { AgentListener } from '../../data-plane/tunnel/agent-listener.ts'
import { ListenerCertificates } from '../../data-plane/tunnel/listener-certificates.ts'
import { Online } from '../../data-plane/tunnel/online-tunnels.ts'
import type { Seal } from '../../data-plane/tunnel/sealed.ts'
import { admissionOf, listenerLimits } from '../../data-plane/tunnel/tunnel-limits.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Descriptors } from '../../lib/files/descriptors.ts'
import { outboundFetch } from '../../lib/http/outbound-fetch.ts'
import type { IdSource } from '../../lib/ids.ts'
import { dividedCounters, undivided } from '../../lib/limits/divided-counters.ts'
import { shareOf } from '../../lib/limits/share-of.ts'
import { type Logger, lineWriter } from '../../lib/log/create-log.ts'
import { ConnectionCaps } from '../../lib/net/connection-caps.ts'
import { addressText } from '../../lib/net/listen-on.ts'
import { RefusedAddresses } from '../../lib/net/refused-addresses.ts'
import { type MeetVisitor, meetAdmitted, meetVisitors } from '../../lib/net/trusted-hop.ts'
import { Sealer } from '../../lib/secrets/seal.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import { threadFile } from '../../lib/threads/thread-file.ts'
import { WorkerPool } from '../../lib/threads/worker-pool.ts'
import { Authority } from '../../lib/x509/certificate-authority.ts'
import { Peers } from '../../link/calls/peers.ts'
import { type ControlLink, LOOKUP_MS } from '../../link/planes/control-link.ts'
import { linkedLogins } from '../../link/planes/login-calls.ts'
import type { NameChallenge } from '../../link/planes/plane-calls.ts'
import type { LookUp } from '../../model/look-up.ts'
import type { PlaneMetrics } from '../../model/plane-metrics.ts'
import { EdgeWork } from '../../modules/edge-worker-tasks.ts'
import { samlDocuments } from '../../modules/saml/saml-documents.ts'
import type { Listeners } from '../config/listeners.ts'
import { agentTls, allowedBy, ownPorts, requestLimits } from '../config/plane-settings.ts'
import type { Settings } from '../config/read-settings.ts'
import { planeMetrics } from './collect-plane-metrics.ts'
import { drainPlane } from './drain-plane.ts'

export interface DataPlaneOptions {
  readonly settings: Settings
  readonly listeners: Pick<Listeners, 'agent' | 'ssh' | 'https' | 'http' | 'cluster'>
  readonly tcpPorts: RemotePortHolders & {
    /** Ports that a service manager keeps open: if we closed them, visitors would wait in vain. */
    readonly handed: readonly number[]
  }
  readonly nodeId: string
  /** Unique among all data planes of the node. */
  readonly planeId: string
  /** Sends the stored configuration, and is told what is online. */
  readonly control: ControlLink
  /** Number of data planes of this node, which share its limits. */
  readonly planeCount: number
  /** A private folder with the Unix sockets of the node's data planes; undefined when there is only one. */
  readonly folder?: string | undefined
  /** The secret from which TLS ticket keys derive, the same at all data planes of the node: 32 bytes. */
  readonly ticketSecret?: Buffer | undefined
  readonly ids: IdSource
  readonly now: Clock
  readonly log: Logger
  readonly descriptors: Descriptors
  readonly version: string
}

export type DataPlane = Awaited<ReturnType<typeof openDataPlane>>

/** How often TLS state of names that are gone is dropped, in milliseconds. */
const TIDY_MS = 30_000

/** The holder of TCP ports that a service manager opened. */
const HANDED_IN = 'handed in'

/** Listens for agents and visitors; resolves once agents are served. Visitors wait until all edges are there. */
export async function openDataPlane(options: DataPlaneOptions) {
  const { settings, listeners, nodeId, planeId, planeCount, folder, control, ids, now, log, descriptors, version } =
    options
  const { domain, region, tcpPorts: tcpRange } = settings
  // Settings that may change while the server runs; see `use`.
  let { drainTimeoutMs, ngrokErrorHeader, sharedLimits } = settings
  let hops = meetVisitors(settings.trustedProxies)
  let mayBeAsked = allowedBy(settings)
  let isLeaving = false
  const opened: (() => Promise<void> | void)[] = []
  const close = async () => {
    for (const each of opened.splice(0).reverse()) await each()
  }

  try {
    // Secrets that only the control plane can read.
    const secrets = await control.secrets()
    const sealer = new Sealer(Buffer.from(secrets.sealingKey))
    const authority = new Authority(secrets.authority.cert, secrets.authority.key)
    const seal: Seal = {
      seal: (text, context) => sealer.seal(text, context),
      open: (text, context) => sealer.open(text, context),
      openFormer: (text, context) => control.ask('openFormerSeal', { text, context }, { withinMs: LOOKUP_MS }),
    }

    // The other data planes of this node, which count as one server with this one.
    const neighbours = new Peers<WorkerCalls>({ self: planeId, channelTo: (id) => links.calls(id), log })

    // Who may connect at all (D64), and who has logged in.
    const refused = new RefusedAddresses({ log })
    opened.push(() => refused.close())
    const restrictions = new Restrictions({ refused })
    const admitsVisitor = (peer: { readonly ip: string }) => restrictions.admits('endpoints', peer)
    const sessions = new CachedLogins({ rows: linkedLogins(() => control), now, log })
    opened.push(() => sessions.close())

    // Other threads for long work.
    const threads = new WorkerPool(threadFile('data-thread', import.meta.url))
    opened.push(() => threads.close())
    const edgeWork = new EdgeWork(threads)
    const samlWork = threads.lane('saml')

    // Certificates: uploaded ones, else leaves of our own authority.
    const certificates = new Certificates({ authority, now })
    const uploaded = new UploadedCertificates((served) => certificates.replace(served))
    const ingresses = new IngressNames()
    const asked = new MirroredMap<NameChallenge>()
    const challenges = new Challenges(asked)
    const { ticketSecret } = options
    const tls = new TlsServers({ certificates, log, now, ...(ticketSecret && { ticketSecret }) })

    // Edges, found by name and port. They dial through `online` and `elsewhere`, which are built below.
    const counts = new TrafficCount({
      isServed: (id) => edges.has(id),
      addressOf: (id) => edges.endpointAddress(id),
    })
    const caps = new ConnectionCaps({ limits: settings, door: 'visitors', log })
    const agentCaps = new ConnectionCaps({ limits: settings, door: 'agents', log })
    const sshCaps = new ConnectionCaps({ limits: settings, door: 'ssh', log })
    for (const each of [caps, agentCaps, sshCaps]) opened.push(shareCaps(neighbours, each))
    opened.push(() => {
      for (const each of [caps, agentCaps, sshCaps]) each.close()
    })
    const throughHops: MeetVisitor = (socket, peer, done) => hops(socket, peer, done)
    const held = waitForLoad(throughHops)
    const { meet } = held
    const meetSecure = meetAdmitted(meet, admitsVisitor)
    opened.push(() => held.sendAway())
    const ports = new PublicTcpPorts({
      places: options.tcpPorts,
      onConnection: (socket, port, peer) => visitors.onPort(socket, port, peer),
      meet: meetSecure,
      caps,
      descriptors,
      log,
      now,
    })
    let budgetsSpent = 0
    const counters = new SharedCounters(neighbours)
    opened.push(() => counters.close())
    const edges = new EdgeTable({
      reach: {
        dial: (request) => online.registry.dial(request),
        followGroup: (labels) => elsewhere.followGroup(labels),
        random: Math.random,
      },
      tools: {
        now,
        log,
        region,
        fetch: outboundFetch({ isAllowed: (address) => mayBeAsked(address), isOwn: ownPorts(settings) }),
        sealer,
        sessions,
        counters: dividedCounters(counters, () => (sharedLimits ? elsewhere.limitPart : undivided)),
        breakers: new SharedBreakers(neighbours),
        onBudgetSpent: () => {
          budgetsSpent++
        },
        requestKey: requestKeyOf(control),
        samlDocuments: samlDocuments((owner, work) => samlWork.run(owner, work)),
      },
      compilePatterns: (patterns) => edgeWork.compilePatterns(patterns),
      prepareExpressions: (texts) => edgeWork.prepareExpressions(texts),
      ports,
      log,
      onRemoved: (id) => {
        counts.forget(id)
        const isServed = (edgeId: string) => edges.has(edgeId)
        retireEdge(id, { streams: visitors, http: front, isServed, drainMs: drainTimeoutMs })
      },
    })
    const tidying = setInterval(() => tls.dropGone((name) => edges.serves(name)), TIDY_MS).unref()
    opened.push(() => clearInterval(tidying))
    const publicPorts = { https: settings.publicHttpsPort, http: settings.publicHttpPort }
    const accessLog = new AccessLog({ write: lineWriter(log), isOn: () => log.isLevelEnabled('info'), now })
    opened.push(() => accessLog.flush())
    const exchanges = new PlaneExchanges({
      ...{ nodeId, planeId, now },
      bytes: shareOf(settings.exchangeMemory, planeCount),
      sessionOf: (id) => online.registry.liveTunnel(id)?.session.id ?? elsewhere.sessionOf(id),
      openReplays: (captures) =>
        new Replays({
          ...{ edges, captures, now },
          serve: (...given) => front.answer(...given),
          publicPorts: () => publicPorts,
        }),
      publicPorts: () => publicPorts,
    })
    const bodyMemory = new BodyMemory({ bytes: bodyMemoryOf(settings.bodyMemory, planeCount) })
    const departed = new DisconnectWatch()
    opened.push(() => departed.close())
    // Only in a cluster.
    const lookUp: LookUp | undefined = listeners.cluster && ((...asked) => elsewhere.lookUp?.(...asked))
    const front = new HttpFront({
      edges,
      counts,
      bodyMemory,
      departed,
      pages: () => errorPages({ ngrokErrorHeader }),
      log,
      now,
      publicPorts,
      admits: admitsVisitor,
      onRequest: (record) => {
        accessLog.request(record)
        exchanges.note(record)
        online.requests.saw(record)
      },
      answerFirst: challenges.answerHttp,
      requestsOf: (ip) => caps.requestsOf(ip),
      mayKeep: (tunnelId) => elsewhere.mayKeep(tunnelId),
      lookUp,
      limits: requestLimits(settings),
      captures: exchanges.captures,
    })
    const visitors = new EdgeRouter({
      edges,
      tls,
      serveHttp: (visit) => front.serve(visit),
      lookUp,
      mayShake: (ip) => caps.shake(ip),
      idleMs: settings.idleTimeoutMs,
      counts,
      departed,
      challenges,
      log,
      onRecord: (record) => accessLog.connection(record),
      defaultCertificate: (name) => certificates.findDefault(name, { domain }),
    })
    opened.push(() => visitors.close())

    // Sessions and tunnels, here and at other data planes.
    const shared = new EndpointHolders(edges)
    const agentEndpoints = new AgentEndpoints({
      ...{ edges, shared },
      ...{ control, log },
      isDistant: (id) => elsewhere.nodes?.has(id) === true,
      publicPorts,
    })
    const online: Online = new Online({
      endpoints: agentEndpoints,
      control,
      remote: () => elsewhere,
      seal,
      ids,
      now,
      random: randomBytes,
      log,
      region,
      domain,
      tcpPorts: tcpRange,
      publicPorts: () => publicPorts,
    })
    opened.push(shareWatched(neighbours, online.requests))
    const elsewhere = openRemoteTunnels({
      ...{ nodeId, planeId, folder, control, authority, edges, shared, log },
      clusterListen: listeners.cluster,
      online: () => online,
      isLeaving: () => isLeaving,
      answer: (channel) => neighbours.accept(channel),
      isOpening: (endpointId) => agentEndpoints.isOpening(endpointId),
      moved: (tunnelId) => front.tunnelMoved(tunnelId),
    })
    const { links, others } = elsewhere
    opened.push(() => elsewhere.close())
    neighbours.whenMoved((_, left) => {
      for (const id of left) {
        links.forget(id)
        others.isGone(id)
      }
    })
    const stored = new ConfiguredEdges({
      edges,
      agents: agentEndpoints,
      stopTunnel: (id, why) => online.stopTunnel(id, why),
    })

    const together = new DrainTogether(neighbours, (id) => others.drains(id))
    const clusterAddress = await elsewhere.listen()

    // From here on the control plane sends stored configuration; restrictions are known before anybody can connect.
    const isStocked = Promise.withResolvers<void>()
    await control.start({
      attachment: () => ({ planeId, version, isLeaving, ...online.registry.online, legs: online.legs.sessionIds }),
      calls: {
        ingressNames: (change) => ingresses.take(change),
        restrict: (given) => restrictions.use(given),
        certificates: (change) => uploaded.take(change),
        challenges: (change) => asked.take(change),
        storedEdges: () => edges.storedIds,
        edges: async ({ removed, applied, isIdle }) => {
          // Removed edges go first, so that their names are free for the others.
          for (const id of removed) stored.remove(id)
          for (const config of applied) await stored.apply(config, { isIdle })
        },
        ...elsewhere.calls,
        planes: (given) => neighbours.use(given.map((each) => each.planeId)),
        letVisitorsIn: () => isStocked.resolve(),
        command: async ({ sessionId, command }) => online.registry.command(sessionId, command),
        endSession: ({ sessionId, reason }) => online.registry.liveSession(sessionId)?.end(reason),
        endLegs: ({ sessionId }) => online.legs.end(sessionId, 'its session is over'),
        proveAlive: async ({ sessionId }) => online.registry.liveSession(sessionId)?.proveAlive(),
        stopTunnel: ({ tunnelId, why }) => void online.stopTunnel(tunnelId, why),
        tunnelStopped: ({ tunnelId }) => online.noteStopped(tunnelId),
        loginsEnded: (endings) => sessions.ended(endings),
        numbers: () => numbers(),
        brokenEdges: () => edges.broken,
        counted: (edgeId) => counters.counted(`${edgeId} `),
        ...exchanges.calls,
      },
    })
    await restrictions.known

    // The doors, before anything slow: agents that cannot connect wait for minutes before they try again (D50).
    const secure = new PublicListener({
      onConnection: visitors.onGreeted,
      meet: meetSecure,
      caps,
      descriptors,
      log,
      now,
    })
    const httpsAddress = listening(await secure.listen(listeners.https))
    opened.push(() => {
      void secure.close()
      secure.sendAway()
    })
    publicPorts.https ||= httpsAddress.port
    const plain = listening(
      await openListener({
        on: listeners.http,
        log,
        now,
        meet,
        caps,
        onTooMany: httpRefusals({ ngrokErrorHeader: () => ngrokErrorHeader }),
        descriptors,
        onConnection: visitors.onPlain,
      }),
    )
    opened.push(() => void plain.close())
    const httpAddress = boundTo(plain)
    publicPorts.http ||= httpAddress.port
    for (const port of options.tcpPorts.handed) listening(await ports.open(port, HANDED_IN))
    const admitsAgent = (peer: { readonly ip: string }) => restrictions.admits('agent', peer)
    restrictions.whenChanged(() => online.dropUnadmitted(admitsAgent))
    const tlsSettings = agentTls(settings)
    const shown = new ListenerCertificates({ settings: tlsSettings, authority, certificates, uploaded, ingresses })
    const agents = new AgentListener({
      online,
      admits: admitsAgent,
      ...shown.shown(),
      meet: throughHops,
      caps: agentCaps,
      limits: admissionOf(listenerLimits, planeCount),
      credentials: {
        find: (token) => control.ask('findCredential', { token: token.reveal() }, { withinMs: LOOKUP_MS }),
        recall: (token, sessionId) =>
          control.ask('recallCredential', { token: token.reveal(), sessionId }, { withinMs: LOOKUP_MS }),
      },
      seal,
      ids,
      now,
      log,
      descriptors,
      ...{ version, planeId, planeCount, nodes: elsewhere.agentNodes },
    })
    await shown.ready()
    const agentAddress = await agents.listen(listeners.agent)
    opened.push(() => agents.stop())
    // Loaded after the agents' door, which is more urgent.
    const { SshListener } = await import('../../data-plane/ssh/ssh-listener.ts')
    const gateway = new SshListener({
      online,
      admits: admitsAgent,
      hostKey: new Secret(secrets.sshHostKey),
      meet: throughHops,
      caps: sshCaps,
      limits: admissionOf(sshLimits, planeCount),
      credentials: {
        find: (fingerprint) => control.ask('findSshCredential', { fingerprint }, { withinMs: LOOKUP_MS }),
        certificate: (digest) => control.ask('findSshCertificate', { digest }, { withinMs: LOOKUP_MS }),
      },
      ids,
      now,
      log,
      descriptors,
    })
    const sshAddress = await gateway.listen(listeners.ssh)
    opened.push(() =>
      drainPlane({
        visitors: { plain, ports, secure, tls, front, visitors },
        doors: [agents, gateway],
        ...{ online, control, together, counters, drainMs: drainTimeoutMs },
        relayed: elsewhere.relayed,
        hasOthers: neighbours.others().length > 0,
        nodes: () => elsewhere.agentNodes?.addresses() ?? [],
        onLeaving: () => {
          isLeaving = true
        },
      }),
    )
    opened.push(shown.keepUp(agents))

    const doors = [caps, agentCaps, sshCaps]
    const numbers = (): PlaneMetrics =>
      planeMetrics({
        ...{ counts, doors, online, bodyMemory, edges, certificates, elsewhere },
        strangers: [agents.numbers, gateway.numbers],
        policyBudgetsSpent: budgetsSpent,
        refusedConnections: descriptors.refused,
      })

    return {
      /** Resolves once every stored edge is served. */
      async letVisitorsIn() {
        await isStocked.promise
        held.letIn()
      },
      /** Applies other settings, as far as they can change while the server runs (`isLive` in their table). */
      use(next: Settings) {
        for (const each of [caps, agentCaps, sshCaps]) each.use(next)
        front.use(requestLimits(next))
        visitors.useIdleMs(next.idleTimeoutMs)
        bodyMemory.use(bodyMemoryOf(next.bodyMemory, planeCount))
        drainTimeoutMs = next.drainTimeoutMs
        ngrokErrorHeader = next.ngrokErrorHeader
        sharedLimits = next.sharedLimits
        hops = meetVisitors(next.trustedProxies)
        mayBeAsked = allowedBy(next)
        shown.use(agentTls(next))
      },
      publicPorts,
      addresses: {
        agents: addressText(agentAddress),
        ssh: addressText(sshAddress),
        https: addressText(httpsAddress),
        http: addressText(httpAddress),
        ...(clusterAddress && { cluster: addressText(clusterAddress) }),
      },
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}
