/** Attaches a data plane to the control plane, which from then on sends what is stored, and calls what is answered here. */
import type { PlaneMetrics } from '../../model/plane-metrics.ts'
import type { OpeningPlane, PlaneParts } from './opening-plane.ts'

export async function attachToControl(
  { control, planeId, version }: OpeningPlane,
  { mirrors, limits, registry, records, tunnels, remote, visitors }: PlaneParts,
  metrics: () => PlaneMetrics,
) {
  const isStocked = Promise.withResolvers<void>()
  const { exchanges } = records
  await control.start({
    attachment: () => ({
      ...{ planeId, version, isLeaving: remote.isLeaving },
      ...registry.online,
      legs: tunnels.online.legs.sessionIds,
    }),
    calls: {
      ...mirrors.calls,
      ...tunnels.calls,
      ...remote.calls,
      nodes(given) {
        limits.divideAmong(given.flatMap(({ nodeId, isLost }) => (isLost ? [] : [nodeId])))
        remote.calls.nodes(given)
      },
      planes: (given) => limits.peers.use(given.map((each) => each.planeId)),
      letVisitorsIn: () => isStocked.resolve(),
      numbers: metrics,
      counted: (edgeId) => limits.counters.counted(edgeId),
      ...exchanges.calls,
      replay: (ask) => exchanges.repeat(ask, visitors.replays),
    },
  })
  return {
    /** Resolves once every stored edge is known. */
    isStocked: isStocked.promise,
  }
}
