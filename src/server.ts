/** The composition root: builds, starts and stops everything, in the order it is written here. */
import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Registry } from '@prometheus-io/client'
import { buildApi } from './api/app.ts'
import { registerCaps } from './api/cap-metrics.ts'
import { ApiMetrics } from './api/metrics.ts'
import { registerProcess } from './api/process-metrics.ts'
import { registerTraffic } from './api/traffic-metrics.ts'
import type { Listen } from './config/parse.ts'
import type { Settings } from './config/read.ts'
import { ApiGuard } from './control/api-guard.ts'
import { openAuthority } from './control/authority.ts'
import { bindSecrets } from './control/bound-secrets.ts'
import { Documents } from './control/documents.ts'
import { EdgeModules } from './control/edge-modules.ts'
import { Explanations } from './control/explanations.ts'
import { Follower } from './control/follower.ts'
import { KeyMaker } from './control/key-maker.ts'
import { rotateKey } from './control/key-rotation.ts'
import { StoredSessions } from './control/login-sessions.ts'
import { LoginUpkeep } from './control/login-upkeep.ts'
import { loginsOf } from './control/logins.ts'
import { authenticate } from './control/principal.ts'
import { RateLimit } from './control/rate-limit.ts'
import { Records } from './control/records.ts'
import { RefusedLog } from './control/refused-log.ts'
import { requestKeyOf } from './control/request-key.ts'
import { liftRestrictions } from './control/restrictions.ts'
import { openSealer } from './control/sealing.ts'
import { openSshHostKey } from './control/ssh-host-key.ts'
import {
  createKey,
  createUser,
  deleteUser,
  type FirstStart,
  listUsers,
  makeFirstUser,
  type Role,
  setUserActive,
} from './control/users.ts'
import { startDataPlane } from './data-plane.ts'
import { Explainer } from './edge/explain/explainer.ts'
import { type Caller, Descriptors } from './lib/files/descriptors.ts'
import { IdSource } from './lib/ids.ts'
import { type Logger, lostLines } from './lib/log/log.ts'
import { ConnectionCaps } from './lib/net/connection-caps.ts'
import { compileIpRules } from './lib/net/ip-rules.ts'
import { loadLibraries } from './modules/oidc/libraries.ts'
import { samlThreads } from './modules/saml/document-threads.ts'
import type { RestrictedPart } from './resources/ip-restrictions.ts'
import type { StoreLimits } from './store/limits.ts'
import { lockForServing } from './store/serve-lock.ts'
import { openStore } from './store/store.ts'

export interface RunningServer {
  readonly addresses: Addresses
  /** The fingerprint of the key that the SSH gateway shows of itself. */
  readonly sshHostKey: string
  /** What the very first start made, to be shown once. */
  readonly firstStart: FirstStart | null
  /** Finishes what is open within the drain time, then closes everything. */
  stop(): Promise<void>
}

/** Where the server listens, as `host:port`. */
export interface Addresses {
  readonly api: string
  readonly metrics: string
  readonly agents: string
  readonly ssh: string
  readonly https: string
  readonly http: string
}

export interface ServerOptions {
  readonly log: Logger
  /** Shorter ones are for tests. */
  readonly storeLimits?: StoreLimits
}

/** How long `/readyz` waits for the database, in milliseconds: who asks, asks often, and gives up soon. */
const READINESS_MS = 2000

/** Starts a whole server; resolves once it is ready. Whatever was opened is closed again when something fails. */
export async function startServer(
  settings: Settings,
  { log, storeLimits: limits }: ServerOptions,
): Promise<RunningServer> {
  const now = Date.now
  const ids = new IdSource({ now })
  const version = packageVersion()
  const opened: (() => Promise<void>)[] = []
  const closeAll = async () => {
    for (const close of opened.splice(0).reverse()) await close()
  }

  try {
    const descriptors = new Descriptors({ log })
    await descriptors.start()
    opened.push(() => descriptors.stop())

    // What is kept.
    const release = lockForServing(settings.databaseUrl)
    opened.push(async () => release())
    const store = await openStore(settings.databaseUrl, { ...(limits && { limits }) })
    opened.push(() => store.close())
    const sealer = await openSealer(store, settings.keyFile)
    await bindSecrets(store, sealer)
    const authority = await openAuthority(store, sealer, join(settings.dataDir, 'ca.pem'))
    const requestKey = requestKeyOf(store, sealer, now)
    const hostKey = await openSshHostKey(store, sealer)

    // What people write is checked here, and off the event loop where that takes long.
    const documents = new Documents()
    opened.push(() => documents.close())
    const samlDocuments = samlThreads()
    opened.push(() => samlDocuments.close())

    // The data plane, first of all its listeners: agents that find nobody wait for minutes before they ask again (D50).
    const refused = new RefusedLog({ log })
    opened.push(async () => refused.close())
    // Now, since it takes a tenth of a second: later it would hold up everybody when the first visitor logs in.
    await loadLibraries()
    const sessions = new StoredSessions({ store, sealer, ids, now, log })
    opened.push(() => sessions.close())
    const endings = new Follower({ store, followed: sessions, log })
    await endings.start()
    opened.push(() => endings.stop())
    const upkeep = new LoginUpkeep({ store, now, log })
    upkeep.start()
    opened.push(() => upkeep.stop())
    const shared = {
      settings,
      store,
      sealer,
      authority,
      sshHostKey: hostKey.privateText,
      ids,
      now,
      log,
      refused,
      descriptors,
      documents,
      sessions,
      requestKey,
      samlDocuments,
      version,
    }
    const plane = await startDataPlane(shared)
    opened.push(() => plane.close())
    const { presence, groups } = plane

    // The management API.
    const { tcpPorts, domain, region } = settings
    const { endpointAt } = plane
    const around = { tcpPorts, publicHttpsPort: plane.publicPorts.https, domain, region, endpointAt }
    const keys = new KeyMaker()
    opened.push(() => keys.close())
    const records = new Records({ store, ids, now, sealer, around, presence, checks: documents, keys, requestKey })
    const guard = new ApiGuard(store, refused)
    const explainer = new Explainer()
    opened.push(() => explainer.close())
    const explanations = new Explanations({
      store,
      sealer,
      checks: documents,
      explain: (owner, work) => explainer.explain(owner, work),
      region,
      publicHttpsPort: () => plane.publicPorts.https,
      counted: plane.counted,
      presence,
      endpoint: plane.endpoint,
    })
    const registry = new Registry()
    const metrics = new ApiMetrics(registry)
    registerTraffic(registry, plane.numbers)
    // The API takes no PROXY header, so the address of a trusted proxy there is that of all its callers.
    const isShared = compileIpRules(settings.trustedProxies.map((network) => ({ action: 'allow', network })))
    const caps = new ConnectionCaps({ limits: settings, door: 'api', log, isShared })
    opened.push(async () => caps.close())
    registerCaps(registry, [...plane.caps, caps], plane.numbers.agentDoor)
    registerProcess(registry, {
      lostLines: () => lostLines(log),
      refusedConnections: () => descriptors.refused,
    })
    let isServing = false
    const addresses = { api: '', metrics: '', ...plane.addresses }
    const readiness = async () => {
      const isReady = isServing && (await store.answers(READINESS_MS))
      return { isReady, addresses }
    }

    const metricsServer = metrics.server()
    addresses.metrics = await listen(metricsServer, settings.metricsListen, { descriptors, caller: 'metrics' })
    opened.push(() => close(metricsServer))

    const api = await buildApi({
      ids,
      authenticate: (token) => authenticate(store, token),
      admits: (part, address) => guard.admits(part, address),
      records,
      modules: new EdgeModules({ store, sealer, checks: documents, requestKey }),
      presence,
      logins: loginsOf(store, sessions),
      explanations,
      groupsOf: (labels) => groups.serving(labels),
      metrics,
      log,
      caps,
      readiness,
      sshHostKey: hostKey.fingerprint,
      rateLimit: new RateLimit({ perMinute: settings.apiRateLimit, now: () => performance.now() }),
      apiUrl: settings.apiUrl,
      version,
    })
    api.addHook('onSend', async (_request, reply) => {
      // An answer under way when we stop is the last on its connection, which would otherwise idle on.
      if (!isServing) reply.header('connection', 'close')
    })
    await api.ready()
    addresses.api = await listen(api.server, settings.apiListen, { descriptors, caller: 'api' })
    opened.push(async () => {
      const overdue = setTimeout(() => api.server.closeAllConnections(), settings.drainTimeoutMs)
      await api.close()
      clearTimeout(overdue)
    })

    // Last, since what it makes is shown once: a start that fails before, on a taken port say, must not use it up.
    const firstStart = await makeFirstUser({ store, ids, now }, revealed(settings))
    isServing = true

    log.info({ ...addresses, database: store.dialect, region: settings.region }, 'server ready')
    return {
      addresses,
      sshHostKey: hostKey.fingerprint,
      firstStart,
      stop: async () => {
        isServing = false
        log.info('server stopping')
        await closeAll()
        log.info('server stopped')
      },
    }
  } catch (error) {
    await closeAll()
    throw error
  }
}

/** Users and keys straight in the database, for when no key is at hand. */
export async function openAdmin(settings: Settings) {
  const now = Date.now
  const store = await openStore(settings.databaseUrl)
  const making = { store, ids: new IdSource({ now }), now }
  return {
    createUser: (user: { name: string; role: Role }) => createUser(making, user),
    createKey: (key: { ownerId: string; description: string }) => createKey(making, key),
    listUsers: () => listUsers(making),
    setUserActive: (id: string, active: boolean) => setUserActive(making, id, active),
    deleteUser: (id: string) => deleteUser(making, id),
    liftRestrictions: (parts?: readonly RestrictedPart[]) => liftRestrictions(store, parts),
    rotateKey: () => rotateKey(store, settings.keyFile),
    close: () => store.close(),
  }
}

function revealed({ bootstrap }: Settings): { apiKey: string | null; authtoken: string | null } {
  return { apiKey: bootstrap.apiKey?.reveal() ?? null, authtoken: bootstrap.authtoken?.reveal() ?? null }
}

/** Listens and gives the address with the port that was chosen. */
async function listen(
  server: Server,
  { host, port }: Listen,
  { descriptors, caller }: { readonly descriptors: Descriptors; readonly caller: Caller },
): Promise<string> {
  server.prependListener('connection', (socket) => descriptors.admits(socket, caller))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.off('error', reject)
      server.on('error', (error) => descriptors.failed(error, `${host}:${port}`))
      resolve()
    })
  })
  // A server on a host and port has an address of this form.
  const bound = server.address() as AddressInfo
  return `${bound.family === 'IPv6' ? `[${bound.address}]` : bound.address}:${bound.port}`
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}

export function packageVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
