/** What every step of opening a data plane is given. */
import type { Duplex } from 'node:stream'
import type { RemotePortHolders } from '../../data-plane/edge/public-tcp-ports.ts'
import type { Registry } from '../../data-plane/tunnel/registry.ts'
import type { Seal } from '../../data-plane/tunnel/sealed.ts'
import { Sealer } from '../../lib/secrets/seal.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import type { WorkerPool } from '../../lib/threads/worker-pool.ts'
import { Authority } from '../../lib/x509/certificate-authority.ts'
import { type ControlLink, LOOKUP_MS } from '../../link/planes/control-link.ts'
import type { Listeners } from '../config/listeners.ts'
import { LiveSettings } from '../config/live-settings.ts'
import type { openEdges, openGate, openRecords } from './open-edges.ts'
import type { openMirrors } from './open-mirrors.ts'
import type { openNodeLimits } from './open-node-limits.ts'
import type { openRemote, openTunnels } from './open-tunnels.ts'
import type { openVisitors } from './open-visitors.ts'
import type { ServerContext } from './server-context.ts'

export interface DataPlaneOptions extends ServerContext {
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
  /** Opens a connection to the control plane, for the calls of other nodes. */
  readonly callsToControl: () => Duplex
  /** Number of data planes of this node, which share its limits. */
  readonly planeCount: number
  /** A private folder with the Unix sockets of the node's data planes; undefined when there is only one. */
  readonly folder?: string | undefined
  /** The secret from which TLS ticket keys derive, the same at all data planes of the node: 32 bytes. */
  readonly ticketSecret?: Buffer | undefined
}

export type OpeningPlane = Awaited<ReturnType<typeof beginPlane>>

/** Fetches the secrets that only the control plane can read. `opened` takes how to close what each step opens. */
export async function beginPlane(options: DataPlaneOptions, opened: AsyncDisposableStack) {
  const { settings, control } = options
  const { sealingKey, authority, sshHostKey } = await control.secrets()
  const sealer = new Sealer(Buffer.from(sealingKey))
  const seal: Seal = {
    seal: (text, context) => sealer.seal(text, context),
    open: (text, context) => sealer.open(text, context),
    openFormer: (text, context) => control.ask('openFormerSeal', { text, context }, { withinMs: LOOKUP_MS }),
  }
  return {
    ...options,
    opened,
    live: new LiveSettings(settings),
    sealer,
    seal,
    authority: new Authority(authority.cert, authority.key),
    sshHostKey: new Secret(sshHostKey),
    /** The ports shown in URLs; those that the system chooses are known once the listeners are open. */
    publicPorts: { https: settings.publicHttpsPort, http: settings.publicHttpPort },
  }
}

/** What the steps open, in their order; each step is given what those before it opened. */
export interface PlaneParts {
  readonly mirrors: ReturnType<typeof openMirrors>
  readonly threads: WorkerPool
  readonly limits: ReturnType<typeof openNodeLimits>
  readonly gate: ReturnType<typeof openGate>
  readonly registry: Registry
  readonly table: ReturnType<typeof openEdges>
  readonly records: ReturnType<typeof openRecords>
  readonly tunnels: ReturnType<typeof openTunnels>
  readonly remote: ReturnType<typeof openRemote>
  readonly visitors: ReturnType<typeof openVisitors>
}
