/** Composes the management API and the metrics: builds, starts and stops them, in the order written here. */
import { constants } from 'node:crypto'
import type { Server } from 'node:http'
import { Registry } from '@prometheus-io/client'
import { buildApi } from '../../control-plane/api/app.ts'
import { encryptConnections } from '../../control-plane/api/encrypt-connections.ts'
import { ApiMetrics } from '../../control-plane/api/metrics.ts'
import { OwnCertificate } from '../../control-plane/api/own-certificate.ts'
import { readPageFiles } from '../../control-plane/api/page-files.ts'
import { PageSessions } from '../../control-plane/api/page-session.ts'
import {
  registerCaps,
  registerCertificateFiles,
  registerCertificates,
  registerCluster,
  registerProcess,
} from '../../control-plane/api/server-metrics.ts'
import { registerTraffic } from '../../control-plane/api/traffic-metrics.ts'
import type { Directory } from '../../control-plane/directory/directory.ts'
import { ApiRestriction } from '../../control-plane/records/api-restriction.ts'
import { EdgeModules } from '../../control-plane/records/edge-modules.ts'
import { authenticate } from '../../control-plane/records/find-caller.ts'
import { KeyMaker } from '../../control-plane/records/key-maker.ts'
import { RateLimit } from '../../control-plane/records/key-rate-limit.ts'
import { ManagedCaptures } from '../../control-plane/records/managed-captures.ts'
import { Records } from '../../control-plane/records/records.ts'
import { askRenewal } from '../../control-plane/records/renewals.ts'
import { type HeavyResult, outcomeOf } from '../../control-plane/records/worker-tasks.ts'
import { Follower } from '../../control-plane/store/feed-follower.ts'
import { ExchangeStreams } from '../../control-plane/traffic/exchange-streams.ts'
import { Explanations } from '../../control-plane/traffic/explanations.ts'
import { Exchanges } from '../../control-plane/traffic/listed-exchanges.ts'
import type { Caller, Descriptors } from '../../lib/files/descriptors.ts'
import { undivided } from '../../lib/limits/divided-counters.ts'
import { lostLines } from '../../lib/log/create-log.ts'
import { ConnectionCaps } from '../../lib/net/connection-caps.ts'
import { compileIpRules } from '../../lib/net/ip-rules.ts'
import { addressText, type ListenOn, listenOn, listenText } from '../../lib/net/listen-on.ts'
import { ownTurn } from '../../lib/threads/others-turn.ts'
import { Authority } from '../../lib/x509/certificate-authority.ts'
import { modernSuites } from '../../lib/x509/tls-suites.ts'
import type { Explanation } from '../../model/explanation.ts'
import type { Listeners } from '../config/listeners.ts'
import { LiveSettings } from '../config/live-settings.ts'
import { namesOfApi, reachedBy } from '../config/own-names.ts'
import type { Settings } from '../config/read-settings.ts'
import type { WorkerAddresses } from '../supervisor/process-messages.ts'
import { openAll } from './open-all.ts'
import type { ControlPlane } from './open-control-plane.ts'
import type { ServerContext } from './server-context.ts'

interface ManagementOptions extends ServerContext {
  readonly listeners: Pick<Listeners, 'api' | 'metrics'>
  readonly control: ControlPlane
  /** The port that hostports of HTTPS and TLS edges have. */
  readonly publicHttpsPort: number
  /** Where the data planes listen, as `host:port`. */
  readonly planeAddresses: WorkerAddresses
  /** Counts of the supervisor, when there are several processes. */
  readonly supervisor?: SupervisorMetrics | undefined
}

interface SupervisorMetrics {
  /** Processes that were replaced, by role. */
  restarts(): Readonly<Record<string, number>>
  /** Log lines of all processes that could not be written. */
  lostLines(): number
}

/** How long `/readyz` waits for the database, in milliseconds: health checks are frequent and give up soon. */
const READINESS_MS = 2000

/** How often the API gets a new certificate of the server's own authority, in milliseconds: each lasts a year. */
const RENEWAL_LOOK_MS = 24 * 3_600_000

/** Each renegotiation would cost the server a handshake and the peer next to nothing. */
const secureOptions = constants.SSL_OP_NO_RENEGOTIATION | constants.SSL_OP_PRIORITIZE_CHACHA

/** Listens for callers; resolves once they are served. */
export function openManagementApi(options: ManagementOptions) {
  return openAll(async (opened) => {
    const { settings, listeners, control, ids, now, log, descriptors, publicHttpsPort, version } = options
    const { store, sealer, threads, documents, refused, logins, requestKey, planes, groups, presence, sshHostKey } =
      control
    const { directory } = planes
    const { supervisor } = options
    const { tcpPorts, domain, region } = settings
    const live = new LiveSettings(settings)
    const isTrusted = live.derive(isTrustedBy)
    const ownNames = live.derive(reachedBy)

    // The operations of the API.
    const endpointAt: Directory['endpointAt'] = (address) => directory.endpointAt(address)
    const managesCertificates = settings.acmeDirectory !== ''
    const { proven } = control
    const cnameTarget = proven && ((name: string) => proven.recordsFor(name).cnameTarget)
    const isOwnName = (name: string) => ownNames().has(name)
    const known = { tcpPorts, publicHttpsPort, domain, region, managesCertificates }
    const around = { ...known, isOwnName, cnameTarget, endpointAt }
    const keys = new KeyMaker(threads)
    const { clusterNodeId: nodeId } = control
    const records = new Records({
      ...{ store, ids, now, sealer, around, nodeId, presence, keys, requestKey },
      checks: documents,
      whyNotProven: proven && ((name) => proven.whyNot(name)),
    })
    const guard = new ApiRestriction(store, refused)
    const explaining = threads.lane('explain')
    const explanations = new Explanations({
      ...{ store, sealer, presence },
      checks: documents,
      explain: async (owner, work) => {
        // A turn of its own: the edge was just read, and is now copied to the other thread.
        await ownTurn()
        return outcomeOf<Explanation>((await explaining.run(owner, work)) as HeavyResult)
      },
      around: () => ({
        ...{ region, publicHttpsPort },
        ngrokErrorHeader: live.now.ngrokErrorHeader,
        limitPart: live.now.sharedLimits ? control.limitPart() : undivided,
      }),
      counted: (edgeId) => planes.counted(edgeId),
      endpoint: (id) => directory.endpointConfig(id),
    })

    const captures = new ManagedCaptures({
      ...{ store, records, presence, now, log },
      endpoint: (id) => directory.endpointConfig(id),
    })
    const capturing = new Follower({ store, followed: captures, log })
    await capturing.start()
    opened.defer(async () => {
      captures.stop()
      await capturing.stop()
    })

    // Numbers.
    const registry = new Registry()
    const metrics = new ApiMetrics(registry)
    let planeMetrics = await planes.metrics()
    registerTraffic(registry, () => planeMetrics)
    const { clusterMetrics, certificateMetrics, certificateFileMetrics } = control
    const firstCertificates = await certificateMetrics?.()
    let certificates = firstCertificates
    if (firstCertificates) registerCertificates(registry, () => certificates ?? firstCertificates)
    if (certificateFileMetrics) registerCertificateFiles(registry, certificateFileMetrics)
    if (clusterMetrics) registerCluster(registry, clusterMetrics, () => planeMetrics)
    // The API reads no PROXY header, so all callers behind a trusted proxy share its address.
    const caps = new ConnectionCaps({ limits: settings, door: 'api', log, isShared: (ip) => isTrusted()(ip) })
    opened.defer(() => caps.close())
    live.whenChanged((next) => caps.use(next))
    registerCaps(
      registry,
      () => [...planeMetrics.doors, caps],
      () => planeMetrics,
    )
    registerProcess(registry, {
      lostLines: () => supervisor?.lostLines() ?? lostLines(log),
      ...(supervisor && { restarts: () => supervisor.restarts() }),
      refusedConnections: () => planeMetrics.totals.refusedConnections + (supervisor ? descriptors.refused : 0),
    })
    const metricsServer = metrics.server(async () => {
      planeMetrics = await planes.metrics()
      // While the database is down, the last numbers are used.
      certificates = await certificateMetrics?.().catch(() => certificates)
    })
    const metricsAddress = await listen(metricsServer, listeners.metrics, { descriptors, caller: 'metrics' })
    opened.defer(() => closeServer(metricsServer))

    // The API itself.
    const rateLimit = new RateLimit({ perMinute: settings.apiRateLimit, now: () => performance.now() })
    live.whenChanged((next) => rateLimit.use(next.apiRateLimit))
    const addresses = { api: '', metrics: metricsAddress, ...options.planeAddresses }
    const opening = {
      addresses,
      /** Whether the server is ready; set by the caller. */
      isServing: false,
      /** Applies other settings, as far as they can change while the server runs (`isLive` in their table). */
      use: (next: Settings) => live.use(next),
      close: () => opened.disposeAsync(),
    }
    const pageFiles = await readPageFiles()
    if (!pageFiles) log.warn('dashboard files not found; build them with `npm run page` (the API is not affected)')
    const exchangeStreams = new ExchangeStreams({ nodes: control.exchangeNodes, log })
    const api = await buildApi({
      ...{ ids, records, presence, logins, captures, exchangeStreams, explanations, metrics, log, caps },
      ...{ sshHostKey, rateLimit, pageFiles, version },
      authenticate: (token) => authenticate(store, token),
      admits: (part, address) => guard.admits(part, address),
      modules: new EdgeModules({ store, sealer, checks: documents, requestKey }),
      exchanges: new Exchanges({ nodes: control.exchangeNodes, log }),
      renew: (principal, target) => askRenewal({ store, log, managesCertificates }, principal, target),
      traffic: (period) => control.traffic(period),
      brokenEdges: () => control.brokenEdges(),
      groupsOf: (labels) => groups.serving(labels),
      readiness: async () => {
        const isReady = opening.isServing && (await store.answers(READINESS_MS))
        return { isReady, addresses }
      },
      apiUrl: () => live.now.apiUrl,
      pageSessions: new PageSessions({ sealer, now, apiUrl: () => live.now.apiUrl }),
    })
    api.addHook('onSend', async (_request, reply) => {
      // While stopping, an answer is the last on its connection, which would otherwise stay open idle.
      if (!opening.isServing) reply.header('connection', 'close')
    })
    await api.ready()
    let endHandshakes = () => {}
    if (settings.apiTls) {
      const issuer = new Authority(control.authority.cert, control.authority.key)
      const tls = { minVersion: `TLSv${settings.tlsMinVersion}`, ciphers: modernSuites, secureOptions } as const
      const certificate = new OwnCertificate({ issue: () => issuer.issue(namesOfApi(settings)), tls })
      await control.followCertificates((byName) => certificate.replace(byName))
      const encryption = encryptConnections(api.server, { certificate, tls, mayShake: (ip) => caps.shake(ip) })
      const renewal = setInterval(() => encryption.renew(), RENEWAL_LOOK_MS).unref()
      opened.defer(() => clearInterval(renewal))
      endHandshakes = () => encryption.stop()
    }
    addresses.api = await listen(api.server, listeners.api, { descriptors, caller: 'api' })
    opened.defer(async () => {
      const overdue = setTimeout(() => {
        api.server.closeAllConnections()
        endHandshakes()
      }, live.now.drainTimeoutMs)
      const closed = api.close()
      endHandshakes()
      await closed
      clearTimeout(overdue)
    })
    opened.defer(() => exchangeStreams.close())
    return opening
  })
}

function isTrustedBy({ trustedProxies }: Settings): (ip: string) => boolean {
  return compileIpRules(trustedProxies.map((network) => ({ action: 'allow', network })))
}

/** Listens; resolves with the address and the actual port. */
async function listen(
  server: Server,
  on: ListenOn,
  { descriptors, caller }: { readonly descriptors: Descriptors; readonly caller: Caller },
): Promise<string> {
  server.prependListener('connection', (socket) => descriptors.admits(socket, caller))
  return addressText(await listenOn(server, on, (error) => descriptors.failed(error, listenText(on))))
}

async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}
