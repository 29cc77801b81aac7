/** Opens what callers of the API can do: change and read what is stored, capture its traffic, and explain it. */
import { tryAgain } from '../../control-plane/acme/asked-tries.ts'
import { EdgeModules } from '../../control-plane/records/edge-modules.ts'
import { KeyMaker } from '../../control-plane/records/key-maker.ts'
import { ManagedCaptures } from '../../control-plane/records/managed-captures.ts'
import { Records } from '../../control-plane/records/records.ts'
import { askRenewal } from '../../control-plane/records/renewals.ts'
import { type HeavyResult, outcomeOf } from '../../control-plane/records/worker-tasks.ts'
import { Follower } from '../../control-plane/store/feed-follower.ts'
import { ExchangeStreams } from '../../control-plane/traffic/exchange-streams.ts'
import { Explanations } from '../../control-plane/traffic/explanations.ts'
import { Exchanges } from '../../control-plane/traffic/listed-exchanges.ts'
import { undivided } from '../../lib/limits/divided-counters.ts'
import { ownTurn } from '../../lib/threads/others-turn.ts'
import type { Explanation } from '../../model/explanation.ts'
import { keptNames, reachedBy } from '../config/own-names.ts'
import type { OpeningApi } from './opening-api.ts'

/** What is stored, and what is done with it besides. */
export function openRecords({ settings, live, control, ids, now, log, publicHttpsPort }: OpeningApi) {
  const { store, sealer, threads, documents, requestKey, planes, presence, proven, clusterNodeId: nodeId } = control
  const { tcpPorts, domain, region } = settings
  const { directory } = planes
  const ownNames = live.derive(reachedBy)
  const kept = live.derive(keptNames)
  const managesCertificates = settings.acmeDirectory !== ''
  const records = new Records({
    ...{ store, ids, now, sealer, nodeId, presence, requestKey },
    keys: new KeyMaker(threads),
    checks: documents,
    around: {
      ...{ tcpPorts, publicHttpsPort, domain, region, managesCertificates },
      isOwnName: (name) => ownNames().has(name),
      keptNames: kept,
      cnameTarget: proven && ((name) => proven.recordsFor(name).cnameTarget),
      endpointAt: (address) => directory.endpointAt(address),
    },
    whyNotProven: proven && ((name, owner) => proven.whyNot(name, { owner })),
  })
  return {
    records,
    modules: new EdgeModules({ store, sealer, checks: documents, requestKey }),
    renew: askRenewal.bind(null, { store, log, managesCertificates }),
    retry: tryAgain.bind(null, { store, now, log, managesCertificates, ordersPerHour: settings.acmeOrdersPerHour }),
    logins: control.logins,
    inForce: planes.inForce.bind(planes),
  }
}

/** Captures run from here on: those that are stored, and those that callers start. */
export async function openCaptures(
  { control, now, log, opened }: OpeningApi,
  { records }: Pick<ReturnType<typeof openRecords>, 'records'>,
) {
  const { store, planes, presence } = control
  const captures = new ManagedCaptures({
    ...{ store, records, presence, now, log },
    endpoint: (id) => planes.directory.endpointConfig(id),
  })
  const capturing = new Follower({ store, followed: captures, log })
  await capturing.start()
  opened.defer(async () => {
    captures.stop()
    await capturing.stop()
  })
  return captures
}

/** The traffic that passed, and what would become of other traffic. */
export function openTraffic({ settings, live, control, log, publicHttpsPort }: OpeningApi) {
  const { store, sealer, threads, documents, planes, presence, exchangeNodes } = control
  const { directory } = planes
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
      ...{ region: settings.region, publicHttpsPort },
      ngrokErrorHeader: live.now.ngrokErrorHeader,
      limitPart: live.now.sharedLimits ? control.limitPart() : undivided,
    }),
    counted: (edgeId) => planes.counted(edgeId),
    endpoint: (id) => directory.endpointConfig(id),
  })
  return {
    explanations,
    exchanges: new Exchanges({ nodes: exchangeNodes, log }),
    exchangeStreams: new ExchangeStreams({ nodes: exchangeNodes, log }),
    traffic: control.traffic,
    brokenEdges: control.brokenEdges,
  }
}
