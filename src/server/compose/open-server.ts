/** Composes a server of one process: opens everything, step by step, and closes it in the opposite order. */
import { setTimeout as pause } from 'node:timers/promises'
import { type FirstStart, makeFirstUser } from '../../control-plane/records/manage-users.ts'
import type { Descriptors } from '../../lib/files/descriptors.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import type { Listeners } from '../config/listeners.ts'
import type { Settings } from '../config/read-settings.ts'
import type { ControlAddresses, WorkerAddresses } from '../supervisor/process-messages.ts'
import { openAll } from './open-all.ts'
import { openControlPlane } from './open-control-plane.ts'
import { openPlanes } from './open-planes.ts'
import type { ControlPlaneOptions } from './opening-control.ts'
import { beginServer } from './opening-server.ts'

export interface RunningServer {
  readonly addresses: Addresses
  /** The fingerprint of the SSH gateway's host key. */
  readonly sshHostKey: string
  /** What the very first start created, to be shown once. */
  readonly firstStart: FirstStart | null
  /** Applies other settings, as far as they can change while it runs; resolves with the processes that have not done so yet. */
  use(settings: Settings): Promise<readonly string[]>
  /** Finishes what is open within the drain time, then closes everything. */
  stop(): Promise<void>
}

/** A server of one process. */
export interface WholeServer extends RunningServer {
  /** Data planes that come and go while others serve, for tests. */
  readonly planes: { open(planeId: string): Promise<void>; end(planeId: string): Promise<void> }
}

/** Where the server listens, as `host:port`. */
export type Addresses = ControlAddresses & WorkerAddresses

export interface ServerOptions extends Pick<ControlPlaneOptions, 'storeLimits' | 'orderTimes'> {
  readonly log: Logger
  /** Listeners that are already open; otherwise they are opened as the settings say. */
  readonly listeners?: Listeners
  /** A watch on file descriptors that already runs. */
  readonly descriptors?: Descriptors
  /** Data planes in this process; more than one are for tests. */
  readonly planeCount?: number
}

/**
 * Starts a whole server in this process; resolves once it is ready. Whatever was opened is closed again when something
 * fails.
 *
 * The most urgent comes first. Agents do, since some that cannot connect wait for minutes before they try again (D50): nothing
 * is loaded before their listener that it can do without. Visitors follow, then callers of the API.
 */
export function startServer(settings: Settings, options: ServerOptions): Promise<WholeServer> {
  const { log, storeLimits, orderTimes } = options
  return openAll(async (opened) => {
    const server = await beginServer(settings, options, opened)
    const { context, node, listeners } = server
    const { ids, now } = context
    // The control plane first: data planes get their secrets from it, and all that is stored.
    const control = await openControlPlane({ ...node, ...context, storeLimits, orderTimes })
    opened.defer(() => control.close())
    const planes = await openPlanes(server, control)
    await planes.letVisitorsIn()
    // The management API, loaded only now.
    await control.readLists()
    const { openManagementApi } = await import('./open-management-api.ts')
    const { addresses: planeAddresses, publicPorts } = planes.first
    const api = await openManagementApi({
      ...context,
      ...{ listeners, control, planeAddresses },
      publicHttpsPort: publicPorts.https,
    })
    opened.defer(() => api.close())
    // Last, since its result is shown once: a start that fails earlier, on a taken port for example, must not use it up.
    const firstStart = await makeFirstUser({ store: control.store, ids, now }, settings.bootstrap)
    api.isServing = true

    const { addresses } = api
    let { stopDelayMs } = settings
    const database = control.store.dialect
    log.info({ ...addresses, database, region: settings.region, ...handedIn(listeners) }, 'server ready')
    // Authorities connect to the names that are ordered, so visitors must be served by now.
    await control.orderCertificates()
    return {
      addresses,
      sshHostKey: control.sshHostKey,
      firstStart,
      use: async (next) => {
        planes.use(next)
        api.use(next)
        stopDelayMs = next.stopDelayMs
        return []
      },
      planes,
      stop: async () => {
        // First load balancers notice that it is not ready, then other nodes hear that it leaves.
        api.isServing = false
        log.info('server stopping')
        if (stopDelayMs > 0) await pause(stopDelayMs)
        await control
          .leaving()
          .catch((err: unknown) => log.debug({ err }, 'cannot tell other nodes that this node is leaving'))
        // The API ends first, since it asks all others; then the data planes drain; then the control plane, which they ask.
        await opened.disposeAsync()
        log.info('server stopped')
      },
    }
  })
}

function handedIn({ handed }: Listeners): { readonly handed_in?: readonly string[] } {
  return handed.length > 0 ? { handed_in: handed } : {}
}
