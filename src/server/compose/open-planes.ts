/** Opens the data planes of a server of one process: one, or several for tests. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { duplexPair } from 'node:stream'
import { type ListenOn, listenText } from '../../lib/net/listen-on.ts'
import { channelPair } from '../../link/calls/plane-channel.ts'
import { ControlLink } from '../../link/planes/control-link.ts'
import type { Listeners } from '../config/listeners.ts'
import type { Settings } from '../config/read-settings.ts'
import type { ControlPlane } from './open-control-plane.ts'
import { type DataPlane, openDataPlane } from './open-data-plane.ts'
import type { DataPlaneOptions } from './opening-plane.ts'
import type { OpeningServer } from './opening-server.ts'

/** Size of the secret from which TLS ticket keys derive, in bytes. */
const TICKET_SECRET_BYTES = 32

/** From here on agents are served; visitors wait until they are let in. */
export async function openPlanes(server: OpeningServer, control: ControlPlane) {
  const { context, publicListeners, isShared, planeCount, opened } = server
  // What all of them share.
  const folder = isShared ? await mkdtemp(join(tmpdir(), 'postern-')) : undefined
  if (folder !== undefined) opened.defer(() => rm(folder, { recursive: true, force: true }))
  const common = {
    ...{ ...context, nodeId: server.node.nodeId, planeCount, folder },
    tcpPorts: tcpPortsOf(server),
    callsToControl: () => callsTo(control),
    ticketSecret: randomBytes(TICKET_SECRET_BYTES),
  }
  const planes = new Map<string, { readonly plane: DataPlane; readonly link: ControlLink }>()
  opened.defer(async () => {
    // All planes at the same time, since visitors at one may be served through another.
    await Promise.all([...planes.values()].map(({ plane }) => plane.close()))
    for (const { link } of planes.values()) link.close()
  })
  const open = async (planeId: string, listeners: DataPlaneOptions['listeners']) => {
    const link = new ControlLink({ log: context.log })
    const [ours, theirs] = channelPair()
    control.planes.take(theirs)
    void link.use(ours)
    const plane = await openDataPlane({ ...common, planeId, listeners, control: link })
    planes.set(planeId, { plane, link })
    return plane
  }
  // The first one decides the ports, which the others then share.
  const first = await open('w1', isShared ? shareable(publicListeners) : publicListeners)
  const openBeside = (planeId: string) => open(planeId, beside(first.addresses, publicListeners.cluster))
  for (let n = 2; n <= planeCount; n++) await openBeside(`w${n}`)

  return {
    first,
    letVisitorsIn: () => Promise.all([...planes.values()].map(({ plane }) => plane.letVisitorsIn())),
    use(next: Settings) {
      for (const { plane } of planes.values()) plane.use(next)
    },
    async open(planeId: string) {
      const plane = await openBeside(planeId)
      await plane.letVisitorsIn()
    },
    async end(planeId: string) {
      const ended = planes.get(planeId)
      await ended?.plane.close()
      ended?.link.close()
      planes.delete(planeId)
    },
  }
}

function tcpPortsOf({ listeners, context, isShared }: OpeningServer): DataPlaneOptions['tcpPorts'] {
  return {
    handed: [...listeners.tcp.keys()],
    open: (port) => listeners.tcp.get(port) ?? { host: context.settings.tcpListen, port, isShared },
    close() {},
  }
}

function callsTo(control: ControlPlane) {
  const [ours, theirs] = duplexPair()
  control.takeCalls(theirs)
  return ours
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
