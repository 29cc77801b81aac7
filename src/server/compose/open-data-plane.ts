/** Composes the data plane: opens all that carries traffic, step by step, and closes it in the opposite order. */
import { DrainTogether } from '../../data-plane/node-limits/drain-together.ts'
import { Registry } from '../../data-plane/tunnel/registry.ts'
import { addressText } from '../../lib/net/listen-on.ts'
import { threadFile } from '../../lib/threads/thread-file.ts'
import { WorkerPool } from '../../lib/threads/worker-pool.ts'
import { attachToControl } from './attach-to-control.ts'
import { planeMetrics } from './collect-plane-metrics.ts'
import { type AgentEntrance, drainPlane } from './drain-plane.ts'
import { openAll } from './open-all.ts'
import { openEdges, openGate, openRecords } from './open-edges.ts'
import { listenForAgents, listenForVisitors } from './open-listeners.ts'
import { openMirrors } from './open-mirrors.ts'
import { openNodeLimits } from './open-node-limits.ts'
import { openRemote, openTunnels } from './open-tunnels.ts'
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
    const gate = openGate(plane, { mirrors })
    // Edges dial through the registry, and tunnels serve their endpoints as edges: so the registry comes before both.
    const registry = new Registry({ control: plane.control, region: plane.settings.region })
    const table = openEdges(plane, { mirrors, threads, limits, gate, registry })
    const records = openRecords(plane, { table, registry })
    const tunnels = openTunnels(plane, { table, registry, limits })
    const remote = openRemote(plane, { table, tunnels, limits })
    // Visitors come last, since they use all of it.
    const visitors = openVisitors(plane, { mirrors, limits, table, records, tunnels, remote })
    const parts = { mirrors, threads, limits, gate, registry, table, records, tunnels, remote, visitors }
    const together = new DrainTogether(limits.peers, (id) => remote.others.drains(id))

    // Other planes may dial this one before they hear of it from the control plane.
    const clusterAddress = await remote.listen()
    // From here on the control plane sends stored configuration; restrictions are known before anybody can connect.
    const agentListeners: AgentEntrance[] = []
    const attached = await attachToControl(plane, parts, () => planeMetrics(plane, parts, agentListeners))
    await mirrors.restrictions.known
    // The listeners, before anything slow: agents that cannot connect wait for minutes before they try again (D50).
    const forVisitors = await listenForVisitors(plane, parts)
    const forAgents = await listenForAgents(plane, parts)
    agentListeners.push(...forAgents.agentListeners)
    // Closing begins with a drain, while everything is still open that those who are present may need.
    opened.defer(() => drainPlane(plane, parts, { ...forVisitors, agentListeners, together }))

    return {
      /** Resolves once every stored edge is served. */
      async letVisitorsIn() {
        await attached.isStocked
        gate.held.letIn()
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
