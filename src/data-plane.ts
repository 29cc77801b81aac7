/** Composes the data plane: builds, starts and stops all that carries traffic, in the order it is written here. */
import { randomBytes } from 'node:crypto'
import type { AddressInfo, Server } from 'node:net'
import type { Listeners } from './config/listeners.ts'
import { type AgentTlsSettings, agentTls, allowedBy, ownPorts, requestLimits } from './config/plane-settings.ts'
import type { Settings } from './config/read.ts'
import { holdersOfName, holdersOfPort } from './control/addresses.ts'
import { currentCredential, findCredential, findSshCredential, ownerOfCredential } from './control/agent-credentials.ts'
import { EdgeEndpoints } from './control/edge-endpoints.ts'
import { Follower } from './control/follower.ts'
import { LiveCertificates } from './control/live-certificates.ts'
import { LiveCredentials } from './control/live-credentials.ts'
import { LiveEdges } from './control/live-edges.ts'
import { LiveRestrictions } from './control/live-restrictions.ts'
import { LiveSshCertificates } from './control/live-ssh-certificates.ts'
import type { RefusedLog } from './control/refused-log.ts'
import { findSshCertificate } from './control/ssh-certificates.ts'
import { StoredTunnelGroups } from './control/tunnel-groups.ts'
import { AccessLog } from './edge/access-log.ts'
import { AgentEndpoints, type AgentEndpointsOptions } from './edge/agent-endpoints.ts'
import { BodyMemory } from './edge/body-memory.ts'
import { Certificates } from './edge/certificates.ts'
import { DepartedVisitors } from './edge/departed-visitors.ts'
import { drainVisitors } from './edge/drain-visitors.ts'
import { Edges, type EdgesOptions } from './edge/edges.ts'
import { holdVisitors } from './edge/hold-visitors.ts'
import { HttpFront } from './edge/http-front.ts'
import { latencyBounds } from './edge/latency-count.ts'
import { ListenFault, openListener } from './edge/open-listener.ts'
import { errorPages } from './edge/pages/error-page.ts'
import { PublicDoor } from './edge/public-door.ts'
import { PublicListener } from './edge/public-listener.ts'
import { httpRefusals } from './edge/refuse-http.ts'
import { retireEdge } from './edge/retire-edge.ts'
import { StoredEdges } from './edge/stored-edges.ts'
import { PublicTcpPorts } from './edge/tcp-ports.ts'
import { TlsServers } from './edge/tls-servers.ts'
import { TrafficCount } from './edge/traffic-count.ts'
import type { Clock } from './lib/clock.ts'
import type { Descriptors } from './lib/files/descriptors.ts'
import { outboundFetch } from './lib/http/outbound-fetch.ts'
import type { IdSource } from './lib/ids.ts'
import { SlidingCounters } from './lib/limits/sliding-counters.ts'
import { type Logger, lineWriter } from './lib/log/log.ts'
import { ConnectionCaps } from './lib/net/connection-caps.ts'
import { addressText } from './lib/net/listen-on.ts'
import { type MeetVisitor, meetAdmitted, meetVisitors } from './lib/net/trusted-hop.ts'
import type { Sealer } from './lib/secrets/seal.ts'
import type { Secret } from './lib/secrets/secret.ts'
import type { Authority } from './lib/x509/certificate-authority.ts'
import type { EndpointRequest } from './model/endpoint.ts'
import type { Store } from './store/store.ts'
import { AgentDoor } from './tunnel/agent-door.ts'
import { Online } from './tunnel/online.ts'

export interface DataPlaneOptions {
  readonly settings: Settings
  readonly listeners: Listeners
  readonly store: Store
  readonly sealer: Sealer
  readonly authority: Authority
  readonly sshHostKey: Secret
  readonly ids: IdSource
  readonly now: Clock
  readonly log: Logger
  readonly refused: RefusedLog
  readonly descriptors: Descriptors
  readonly version: string
  /** What logins leave behind. */
  readonly sessions: EdgesOptions['tools']['sessions']
  readonly requestKey: EdgesOptions['tools']['requestKey']
  readonly samlDocuments: EdgesOptions['tools']['samlDocuments']
  /** Checks and compiles what may take long, off the event loop. */
  readonly documents: {
    readonly compilePatterns: EdgesOptions['compilePatterns']
    readonly prepareExpressions: EdgesOptions['prepareExpressions']
    bindModules(
      owner: () => Promise<string>,
      request: EndpointRequest,
    ): ReturnType<AgentEndpointsOptions['bindModules']>
  }
}

export type DataPlane = Awaited<ReturnType<typeof openDataPlane>>

/** How often the certificate of the agent listener is looked at, in milliseconds: it lasts a year. */
const RENEWAL_LOOK_MS = 24 * 3_600_000

/** How often what was made for names that are gone is dropped, in milliseconds. */
const TIDY_MS = 30_000

/** Who holds the ports of TCP edges that a service manager opened. */
const HANDED_IN = 'handed in'

/** Listens for agents and visitors; resolves once agents are served. Visitors wait until `letVisitorsIn`. */
export async function openDataPlane(options: DataPlaneOptions) {
  const { settings, listeners, store, sealer, authority, sshHostKey, ids, now, log, refused, descriptors } = options
  const { documents, sessions, version } = options
  const { domain, region, tcpPorts: tcpRange } = settings
  // What may change while we run; see `use`.
  let { drainTimeoutMs, ngrokErrorHeader } = settings
  let hops = meetVisitors(settings.trustedProxies)
  let mayBeAsked = allowedBy(settings)
  const opened: (() => Promise<void> | void)[] = []
  const close = async () => {
    for (const each of opened.splice(0).reverse()) await each()
  }

  try {
    // Who may connect at all (D64), read before anybody can.
    const restrictions = new LiveRestrictions({ store, refused })
    const restricting = new Follower({ store, followed: restrictions, log })
    await restricting.start()
    opened.push(() => restricting.stop())
    const admitsVisitor = (peer: { readonly ip: string }) => restrictions.admits('endpoints', peer)

    // Certificates: uploaded ones, else leaves of our own authority.
    const certificates = new Certificates({ authority, now })
    const tls = new TlsServers({ certificates, log, now })

    // Edges, found by name and port. What they dial is the door's business, which is built below.
    const counts = new TrafficCount({
      isServed: (id) => edges.has(id),
      addressOf: (id) => addressOfEndpoint(edges, id),
    })
    const caps = new ConnectionCaps({ limits: settings, door: 'visitors', log })
    const agentCaps = new ConnectionCaps({ limits: settings, door: 'agents', log })
    const sshCaps = new ConnectionCaps({ limits: settings, door: 'ssh', log })
    opened.push(() => {
      for (const each of [caps, agentCaps, sshCaps]) each.close()
    })
    const throughHops: MeetVisitor = (socket, peer, done) => hops(socket, peer, done)
    const held = holdVisitors(throughHops)
    const { meet } = held
    const meetSecure = meetAdmitted(meet, admitsVisitor)
    opened.push(() => held.sendAway())
    const ports = new PublicTcpPorts({
      host: settings.tcpListen,
      handed: listeners.tcp,
      onConnection: (socket, port, peer) => visitors.onPort(socket, port, peer),
      meet: meetSecure,
      caps,
      descriptors,
      log,
      now,
    })
    let budgetsSpent = 0
    const counters = new SlidingCounters()
    const edges = new Edges({
      reach: {
        dial: (request) => online.registry.dial(request),
        followGroup: (labels) => online.registry.followGroup(labels),
        random: Math.random,
      },
      tools: {
        now,
        log,
        region,
        fetch: outboundFetch({ isAllowed: (address) => mayBeAsked(address), isOwn: ownPorts(settings) }),
        sealer,
        sessions,
        counters,
        onBudgetSpent: () => {
          budgetsSpent++
        },
        requestKey: options.requestKey,
        samlDocuments: options.samlDocuments,
      },
      compilePatterns: (patterns) => documents.compilePatterns(patterns),
      prepareExpressions: (texts) => documents.prepareExpressions(texts),
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
    const bodyMemory = new BodyMemory({ bytes: settings.bodyMemory })
    const departed = new DepartedVisitors()
    opened.push(() => departed.close())
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
        online.requests.saw(record)
      },
      requestsOf: (ip) => caps.requestsOf(ip),
      limits: requestLimits(settings),
    })
    const visitors = new PublicDoor({
      edges,
      tls,
      serveHttp: (visit) => front.serve(visit),
      mayShake: (ip) => caps.shake(ip),
      idleMs: settings.idleTimeoutMs,
      counts,
      departed,
      log,
      onRecord: (record) => accessLog.connection(record),
      defaultCertificate: (name) => certificates.findDefault(name, { domain }),
    })
    opened.push(() => visitors.close())

    // The doors, before anything slow: agents that find nobody wait for minutes before they ask again (D50).
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
    const httpAddress = addressOf(plain)
    publicPorts.http ||= httpAddress.port
    // A port that was handed in stays open whoever holds it: closed by us, it would only let visitors wait for nobody.
    for (const port of listeners.tcp.keys()) listening(await ports.open(port, HANDED_IN))
    const agentEndpoints = new AgentEndpoints({
      edges,
      bindModules: (request) =>
        documents.bindModules(async () => (await ownerOfCredential(store, request.credentialId)) ?? '', request),
      holdersOfName: (name) => holdersOfName(store, name),
      holdersOfPort: (port) => holdersOfPort(store, port),
      publicPorts,
    })
    const online: Online = new Online({
      credentials: { current: (id) => currentCredential(store, id) },
      endpoints: agentEndpoints,
      seal: sealer,
      ids,
      now,
      random: randomBytes,
      log,
      region,
      domain,
      tcpPorts: tcpRange,
      publicPorts: () => publicPorts,
    })
    const admitsAgent = (peer: { readonly ip: string }) => restrictions.admits('agent', peer)
    restrictions.whenChanged(() => online.dropUnadmitted(admitsAgent))
    const agents = new AgentDoor({
      online,
      admits: admitsAgent,
      ...agentTls(settings, authority),
      meet: throughHops,
      caps: agentCaps,
      credentials: {
        find: (token) => findCredential(store, token),
        current: (id) => currentCredential(store, id),
      },
      seal: sealer,
      ids,
      now,
      log,
      descriptors,
      version,
    })
    const agentAddress = await agents.listen(listeners.agent)
    opened.push(() => agents.stop())
    // Behind the door of agents: its library is a large one.
    const { SshDoor } = await import('./ssh/ssh-door.ts')
    const gateway = new SshDoor({
      online,
      admits: admitsAgent,
      hostKey: sshHostKey,
      meet: throughHops,
      caps: sshCaps,
      credentials: {
        find: (fingerprint) => findSshCredential(store, fingerprint),
        certificate: (digest) => findSshCertificate(store, digest),
        current: (id) => currentCredential(store, id),
      },
      ids,
      now,
      log,
      descriptors,
    })
    const sshAddress = await gateway.listen(listeners.ssh)
    opened.push(async () => {
      // Agents last, since visitors are served through them.
      await drainVisitors({ plain, ports, secure, tls, front, visitors }, drainTimeoutMs)
      agents.stop()
      gateway.stop()
      online.endAll('the server is stopping')
      await Promise.all([agents.closed(), gateway.closed()])
    })
    let agentSettings: AgentTlsSettings = settings
    const renewCertificate = (): void => {
      const { certificate, tlsMinVersion } = agentTls(agentSettings, authority)
      agents.useCertificate(certificate, tlsMinVersion)
    }
    const renewal = setInterval(renewCertificate, RENEWAL_LOOK_MS).unref()
    opened.push(() => clearInterval(renewal))

    // What is stored, and every change of it.
    const groups = new StoredTunnelGroups(store)
    const endpoints = new EdgeEndpoints({ store, region })
    const stored = new StoredEdges({
      edges,
      agents: agentEndpoints,
      stopTunnel: (id, why) => online.stopTunnel(id, why),
    })
    const followed = [
      new LiveCertificates({ store, sealer, replace: (served) => certificates.replace(served), log }),
      groups,
      new LiveEdges({ store, sealer, sink: stored, endpoints, log }),
      new LiveCredentials(store, online),
      new LiveSshCertificates(store, online),
    ]

    return {
      /** Resolves once every stored edge is served. */
      async letVisitorsIn() {
        edges.load()
        for (const each of followed) {
          const follower = new Follower({ store, followed: each, log })
          await follower.start()
          opened.push(() => follower.stop())
        }
        held.letIn()
      },
      /** Goes over to other settings, as far as they can change while we run (`isLive` in their table). */
      use(next: Settings) {
        for (const each of [caps, agentCaps, sshCaps]) each.use(next)
        front.use(requestLimits(next))
        visitors.useIdleMs(next.idleTimeoutMs)
        bodyMemory.use(next.bodyMemory)
        drainTimeoutMs = next.drainTimeoutMs
        ngrokErrorHeader = next.ngrokErrorHeader
        hops = meetVisitors(next.trustedProxies)
        mayBeAsked = allowedBy(next)
        agentSettings = next
        renewCertificate()
      },
      presence: endpoints.beside(online.registry),
      groups,
      edges,
      /** What the limits of an edge have counted, to be looked at. */
      counted: (edgeId: string) => counters.counted(`${edgeId} `),
      /** What an agent's endpoint does to traffic, to be looked at. */
      endpoint: (id: string) => edges.endpoint(id),
      caps: [caps, agentCaps, sshCaps],
      publicPorts,
      /** Whether visitors' errors have ngrok's number too, as of now. */
      ngrokErrorHeader: () => ngrokErrorHeader,
      endpointAt: (address: { name: string } | { port: number }) => stored.endpointAt(address),
      addresses: {
        agents: addressText(agentAddress),
        ssh: addressText(sshAddress),
        https: addressText(httpsAddress),
        http: addressText(httpAddress),
      },
      numbers: {
        edges: () => counts,
        endpoints: () => counts.endpoints(),
        latency: () => ({ bounds: latencyBounds, steps: counts.latency.steps, sumMs: counts.latency.sumMs }),
        sessions: () => online.load.sessions,
        tunnels: () => online.load.tunnels,
        streams: () => online.load.connections,
        agentDoor: () => ({ ...online.load, ...ofBoth(agents.numbers, gateway.numbers) }),
        servedEdges: () => edges.size,
        comingEdges: () => edges.coming,
        bodyMemory: () => bodyMemory.used,
        bodyRefusals: () => bodyMemory.refusals,
        policyBudgetsSpent: () => budgetsSpent,
        firstExpiry: () => inSeconds(certificates.firstExpiry),
      },
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** The doors of agents and of SSH count alike. */
function ofBoth(a: AgentDoor['numbers'], b: AgentDoor['numbers']): AgentDoor['numbers'] {
  return {
    unproven: a.unproven + b.unproven,
    turnedAway: a.turnedAway + b.turnedAway,
    failures: a.failures + b.failures,
  }
}

/** The name or port of an agent's endpoint, for the metrics. */
function addressOfEndpoint(edges: Edges, id: string): string {
  const config = edges.endpoint(id)
  return config?.names[0] ?? (config?.ports[0] === undefined ? '' : `:${config.ports[0]}`)
}

/** As metrics count time. */
function inSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.floor(ms / 1000)
}

/** What listens, or the reason as an error: a listener of the operator's own choice must be had. */
function listening<T>(outcome: T | ListenFault): T {
  if (outcome instanceof ListenFault) throw outcome
  return outcome
}

function addressOf(server: Server): AddressInfo {
  return server.address() as AddressInfo // a server on a host and port has an address of this form
}
