/** Starts a whole platform in one call: a server on free ports, with a fresh database, and clients for it. */
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type OrderTimes, orderTimes } from '../../src/control-plane/acme/order-times.ts'
import type { StoreLimits } from '../../src/control-plane/store/limits.ts'
import type { Descriptors } from '../../src/lib/files/descriptors.ts'
import { createLog, type LogDestination } from '../../src/lib/log/create-log.ts'
import { openAdmin } from '../../src/server/compose/open-admin.ts'
import { startServer, type WholeServer } from '../../src/server/compose/open-server.ts'
import { readSettings } from '../../src/server/config/read-settings.ts'
import { ApiClient } from './api-client.ts'
import { databaseFlags } from './database-flags.ts'
import { SHARED_TCP_PORTS } from './free-port.ts'
import { testPlanes } from './test-workers.ts'

export interface Platform {
  /** `http://127.0.0.1:<port>`. */
  readonly url: string
  readonly metricsUrl: string
  /** `127.0.0.1:<port>`, where agents connect. */
  readonly agents: string
  readonly sshPort: number
  readonly httpsPort: number
  readonly httpPort: number
  /** The certificate of its authority, in PEM. */
  readonly ca: string
  readonly caFile: string
  readonly dataDir: string
  readonly databaseUrl: string
  /** The credentials that the first start created. */
  readonly apiKey: string
  readonly authtoken: string
  readonly adminId: string
  /** Calls with the API key of the first admin. */
  readonly admin: ApiClient
  /** Creates a user of the account, and a client with the user's own key. */
  member(role?: 'admin' | 'member'): Promise<{ id: string; token: string; api: ApiClient }>
  /** Everything the server logged, line by line. */
  readonly log: readonly string[]
  /** How many data planes it started with. */
  readonly planeCount: number
  /** Lets data planes come and go while others serve. */
  readonly planes: WholeServer['planes']
  stop(): Promise<void>
}

export interface PlatformOptions {
  /** Flags without dashes, such as `api-rate-limit`. */
  readonly flags?: Readonly<Record<string, string>>
  readonly env?: Readonly<Record<string, string>>
  readonly databaseUrl?: string
  /** Kept by the caller, to start again on the same data. By default a new folder, removed with the platform. */
  readonly dataDir?: string
  /** How long calls to the database may take. */
  readonly storeLimits?: StoreLimits
  /** How long orders of certificates wait. */
  readonly orderTimes?: Partial<OrderTimes>
  /** By default as many as the test run specifies. */
  readonly planeCount?: number
  /** In place of those of the process; already watched. */
  readonly descriptors?: Descriptors
}

const API_KEY = 'test_api_key_of_the_first_admin_0001'
const AUTHTOKEN = 'test_authtoken_of_the_first_admin_01'

export async function startPlatform(options: PlatformOptions = {}): Promise<Platform> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'postern-test-')))
  const flags = {
    'data-dir': dataDir,
    'api-listen': '127.0.0.1:0',
    'metrics-listen': '127.0.0.1:0',
    'agent-listen': '127.0.0.1:0',
    'ssh-listen': '127.0.0.1:0',
    'https-listen': '127.0.0.1:0',
    'http-listen': '127.0.0.1:0',
    'tcp-listen': '127.0.0.1',
    'tcp-ports': `${SHARED_TCP_PORTS.from}-${SHARED_TCP_PORTS.to}`,
    'log-format': 'json',
    // V8 collects everything after each 64 MiB of memory outside of its heap, which is the default: at each start.
    'exchange-memory': '4MiB',
    ...(options.databaseUrl !== undefined && databaseFlags(options.databaseUrl)),
    ...options.flags,
  }
  const presets = { POSTERN_BOOTSTRAP_API_KEY: API_KEY, POSTERN_BOOTSTRAP_AUTHTOKEN: AUTHTOKEN }
  const settings = readSettings({ flags, env: { ...presets, ...options.env }, cwd: dataDir })
  const planeCount = options.planeCount ?? testPlanes
  const log: string[] = []
  const destination: LogDestination = { write: (line) => log.push(line) }
  const server = await startServer(settings, {
    log: createLog({ level: settings.logLevel, format: settings.logFormat, destination }),
    ...(options.descriptors && { descriptors: options.descriptors }),
    ...(options.storeLimits && { storeLimits: options.storeLimits }),
    orderTimes: { ...orderTimes, ...options.orderTimes },
    planeCount,
  })
  const url = `http://${server.addresses.api}`
  const caFile = join(dataDir, 'ca.pem')
  const admin = new ApiClient(url, API_KEY)
  return {
    url,
    metricsUrl: `http://${server.addresses.metrics}/metrics`,
    agents: server.addresses.agents,
    sshPort: portOf(server.addresses.ssh),
    httpsPort: portOf(server.addresses.https),
    httpPort: portOf(server.addresses.http),
    ca: readFileSync(caFile, 'utf8'),
    caFile,
    dataDir,
    databaseUrl: settings.databaseUrl,
    apiKey: API_KEY,
    authtoken: AUTHTOKEN,
    adminId: server.firstStart?.userId ?? '',
    admin,
    log,
    planeCount,
    planes: server.planes,
    async member(role = 'member') {
      const database = await openAdmin(settings)
      try {
        const { id } = await database.createUser({ name: 'somebody', role })
        const { token } = await database.createKey({ ownerId: id, description: '' })
        return { id, token, api: new ApiClient(url, token) }
      } finally {
        await database.close()
      }
    },
    async stop() {
      await server.stop()
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true })
    },
  }
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(':') + 1))
}
