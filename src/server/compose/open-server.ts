/** The composition root: builds, starts and stops everything, in the order written here. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { duplexPair } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { type FirstStart, makeFirstUser } from '../../control-plane/records/manage-users.ts'
import type { StoreLimits } from '../../control-plane/store/limits.ts'
import { Descriptors } from '../../lib/files/descriptors.ts'
import { packageVersion } from '../../lib/files/package-file.ts'
import { IdSource } from '../../lib/ids.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import { type ListenOn, listenText } from '../../lib/net/listen-on.ts'
import { channelPair } from '../../link/calls/plane-channel.ts'
import { ControlLink } from '../../link/planes/control-link.ts'
import { withKnownPorts } from '../config/known-ports.ts'
import { type Listeners, plainListeners } from '../config/listeners.ts'
import { newNode, ownNode } from '../config/own-node.ts'
import type { Settings } from '../config/read-settings.ts'
import type { ControlAddresses, WorkerAddresses } from '../supervisor/process-messages.ts'
import { openAll } from './open-all.ts'
import { openControlPlane } from './open-control-plane.ts'
import { type DataPlane, openDataPlane } from './open-data-plane.ts'
import type { ControlPlaneOptions } from './opening-control.ts'
import type { DataPlaneOptions } from './opening-plane.ts'

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

export interface ServerOptions {
  readonly log: Logger
  /** Listeners that are already open; otherwise they are opened as the settings say. */
  readonly listeners?: Listeners
  /** A watch on file descriptors that already runs. */
  readonly descriptors?: Descriptors
  /** Shorter ones are for tests. */
  readonly storeLimits?: StoreLimits
  readonly orderTimes?: ControlPlaneOptions['orderTimes']
  /** Data planes in this process; more than one are for tests. */
  readonly planeCount?: number
}

/** Size of the secret from which TLS ticket keys derive, in bytes. */
const TICKET_SECRET_BYTES = 32

/**
 * Starts a whole server in this process; resolves once it is ready. Whatever was opened is closed again when something
 * fails.
 *
 * The most urgent comes first. Agents do, since some that cannot connect wait for minutes before they try again (D50): nothing
 * is loaded before their listener that it can do without. Visitors follow, then callers of the API.
 */
export function startServer(
  settings: Settings,
  { log, storeLimits, orderTimes, listeners = plainListeners(settings), planeCount = 1, ...given }: ServerOptions,
): Promise<WholeServer> {
  const now = Date.now
  const ids = new IdSource({ now })
  const version = packageVersion()
  return openAll(async (opened) => {
    const descriptors = given.descriptors ?? new Descriptors({ log })
    if (!given.descriptors) await descriptors.start()
    opened.defer(() => descriptors.stop())

    // This node, and the ports that it tells others.
    const isShared = planeCount > 1
    const known = await withKnownPorts(listeners, settings, { descriptors, isShared })
    opened.defer(async () => known.close())
    const node = ownNode(newNode({ ids, now }), settings, known.ports)

    // The control plane.
    const control = await openControlPlane({ ...node, settings, ids, now, log, version, storeLimits, orderTimes })
    opened.defer(() => control.close())

    // The listeners for agents and visitors. From here on agents are served, and visitors wait.
    const shared = { settings, ids, now, log, descriptors, version, nodeId: node.nodeId }
    const folder = isShared ? await mkdtemp(join(tmpdir(), 'postern-')) : undefined
    if (folder !== undefined) opened.defer(() => rm(folder, { recursive: true, force: true }))
    const ticketSecret = randomBytes(TICKET_SECRET_BYTES)
    const planes = new Map<string, { readonly plane: DataPlane; readonly link: ControlLink }>()
    opened.defer(async () => {
      // All planes at the same time, since visitors at one may be served through another.
      await Promise.all([...planes.values()].map(({ plane }) => plane.close()))
      for (const { link } of planes.values()) link.close()
    })
    const callsToControl = () => {
      const [ours, theirs] = duplexPair()
      control.takeCalls(theirs)
      return ours
    }
    const openPlane = async (planeId: string, given: Pick<DataPlaneOptions, 'listeners' | 'tcpPorts' | 'folder'>) => {
      const link = new ControlLink({ log })
      const [ours, theirs] = channelPair()
      control.planes.take(theirs)
      void link.use(ours)
      const own = { planeId, planeCount, ticketSecret, control: link, callsToControl }
      const plane = await openDataPlane({ ...shared, ...given, ...own })
      planes.set(planeId, { plane, link })
      return plane
    }
    const tcpPorts = {
      handed: [...listeners.tcp.keys()],
      open: (port: number) => listeners.tcp.get(port) ?? { host: settings.tcpListen, port, isShared },
      close() {},
    }
    const publicListeners = { ...listeners, ...known.listeners }
    const plane = await openPlane('w1', {
      tcpPorts,
      folder,
      listeners: isShared ? shareable(publicListeners) : publicListeners,
    })
    const openBeside = (planeId: string) =>
      openPlane(planeId, { tcpPorts, folder, listeners: beside(plane.addresses, publicListeners.cluster) })
    for (let n = 2; n <= planeCount; n++) await openBeside(`w${n}`)
    await Promise.all([...planes.values()].map((each) => each.plane.letVisitorsIn()))

    // The management API, loaded only now.
    await control.readLists()
    const { openManagementApi } = await import('./open-management-api.ts')
    const publicHttpsPort = plane.publicPorts.https
    const api = await openManagementApi({
      ...shared,
      listeners,
      control,
      publicHttpsPort,
      planeAddresses: plane.addresses,
    })
    opened.defer(() => api.close())

    // Last, since its result is shown once: a start that fails earlier, on a taken port for example, must not use it up.
    const firstStart = await makeFirstUser({ store: control.store, ids, now }, settings.bootstrap)
    api.isServing = true

    const { addresses } = api
    let { stopDelayMs } = settings
    const database = control.store.dialect
    log.info({ ...addresses, database, region: settings.region, ...handedIn(listeners) }, 'server ready')
    await control.orderCertificates()
    return {
      addresses,
      sshHostKey: control.sshHostKey,
      firstStart,
      use: async (next) => {
        for (const each of planes.values()) each.plane.use(next)
        api.use(next)
        stopDelayMs = next.stopDelayMs
        return []
      },
      planes: {
        open: async (planeId) => (await openBeside(planeId)).letVisitorsIn(),
        async end(planeId) {
          const ended = planes.get(planeId)
          await ended?.plane.close()
          ended?.link.close()
          planes.delete(planeId)
        },
      },
      stop: async () => {
        api.isServing = false
        log.info('server stopping')
        if (stopDelayMs > 0) await pause(stopDelayMs)
        await control
          .leaving()
          .catch((err: unknown) => log.debug({ err }, 'cannot tell other nodes that this node is leaving'))
        await opened.disposeAsync()
        log.info('server stopped')
      },
    }
  })
}

/** Listeners that further data planes can join. */
function shareable({ agent, ssh, https, http, cluster }: Listeners): DataPlaneOptions['listeners'] {
  const shareSocket = (on: ListenOn): ListenOn => ('host' in on ? { ...on, isShared: true } : on)
  return {
    agent: shareSocket(agent),
    ssh: shareSocket(ssh),
    https: shareSocket(https),
    http: shareSocket(http),
    cluster: cluster && shareSocket(cluster),
  }
}

/** The listeners of a data plane beside the first one. */
function beside(
  { agents, ssh, https, http }: DataPlane['addresses'],
  cluster: ListenOn | undefined,
): DataPlaneOptions['listeners'] {
  const at = (address: string): ListenOn => {
    const colon = address.lastIndexOf(':')
    const host = address.slice(0, colon).replace(/^\[|\]$/g, '')
    return { host, port: Number(address.slice(colon + 1)), isShared: true }
  }
  return {
    agent: at(agents),
    ssh: at(ssh),
    https: at(https),
    http: at(http),
    cluster: cluster && at(listenText(cluster)),
  }
}

function handedIn({ handed }: Listeners): { readonly handed_in?: readonly string[] } {
  return handed.length > 0 ? { handed_in: handed } : {}
}
