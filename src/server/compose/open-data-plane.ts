/** Composes the data plane: opens all that carries traffic, step by step, and closes it in the opposite order. */
import { DrainTogether } from '../../data-plane/node-limits/drain-together.ts'
import { Registry } from '../../data-plane/tunnel/registry.ts'
import { addressText } from '../../lib/net/listen-on.ts'
import { threadFile } from '../../lib/threads/thread-file.ts'
import { WorkerPool } from '../../lib/threads/worker-pool.ts'
import { attachToControl } from './attach-to-control.ts'
import { planeMetrics } from './collect-plane-metrics.ts'
import { type AgentDoor, drainPlane } from './drain-plane.ts'
import { openAll } from './open-all.ts'
import { openDoorstep, openEdges, openRecords } from './open-edges.ts'
import { listenForAgents, listenForVisitors } from './open-listeners.ts'
import { openMirrors } from './open-mirrors.ts'
import { openNodeLimits } from './open-node-limits.ts'
import { openElsewhere, openTunnels } from './open-tunnels.ts'
import { openVisitors } from './open-visitors.ts'
import { beginPlane, type DataPlaneOptions } from './opening-plane.ts'

export type DataPlane = Awaited<ReturnType<typeof openDataPlane>>

/** Listens for agents and visitors; resolves once agents are served. Visitors wait until all edges are there. */
export function openDataPlane(options: DataPlaneOptions) {
  return openAll(async (opened) => {
    // First the secrets that only the control plane can read: everything else is built with them.
    const plane = await beginPlane(options, opened)
    // Records and limits come before whatever asks them. They are empty until the control plane sends the records.
    const mirrors = openMirrors(plane)
    const threads = new WorkerPool(threadFile('data-thread', import.meta.url))
    opened.defer(() => threads.close())
    const limits = openNodeLimits(plane)
    const doorstep = openDoorstep(plane, { mirrors })
    // Edges dial through the registry, and tunnels serve their endpoints as edges: so the registry comes before both.
    const registry = new Registry({ control: plane.control, region: plane.settings.region })
    const table = openEdges(plane, { mirrors, threads, limits, doorstep, registry })
    const records = openRecords(plane, { table, registry })
    const tunnels = openTunnels(plane, { table, registry, limits })
    const elsewhere = openElsewhere(plane, { table, tunnels, limits })
    // Visitors come last, since they use all of it.
    const visitors = openVisitors(plane, { mirrors, limits, table, records, tunnels, elsewhere })
    const parts = { mirrors, threads, limits, doorstep, registry, table, records, tunnels, elsewhere, visitors }
    const together = new DrainTogether(limits.neighbours, (id) => elsewhere.others.drains(id))

    // Other planes may dial this one before they hear of it from the control plane.
    const clusterAddress = await elsewhere.listen()
    // From here on the control plane sends stored configuration; restrictions are known before anybody can connect.
    const doors: AgentDoor[] = []
    const attached = await attachToControl(plane, parts, () => planeMetrics(plane, parts, doors))
    await mirrors.restrictions.known
    // The doors, before anything slow: agents that cannot connect wait for minutes before they try again (D50).
    const forVisitors = await listenForVisitors(plane, parts)
    const forAgents = await listenForAgents(plane, parts)
    doors.push(...forAgents.doors)
    // Closing begins with a drain, while everything is still open that those who are present may need.
    opened.defer(() => drainPlane(plane, parts, { ...forVisitors, doors, together }))

    return {
      /** Resolves once every stored edge is served. */
      async letVisitorsIn() {
        await attached.isStocked
        doorstep.held.letIn()
      },
      /** Applies other settings, as far as they can change while the server runs (`isLive` in their table). */
      use: plane.live.use.bind(plane.live),
      publicPorts: plane.publicPorts,
      addresses: {
        ...forAgents.addresses,
        ...forVisitors.addresses,
        ...(clusterAddress && { cluster: addressText(clusterAddress) }),
      },
      close: () => opened.disposeAsync(),
    }
  })
}
