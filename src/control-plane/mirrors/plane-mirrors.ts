/** The feeds of stored configuration to a data plane, in their order. */
import type { Logger } from '../../lib/log/create-log.ts'
import type { Sealer } from '../../lib/secrets/seal.ts'
import type { CallLink } from '../../link/calls/call-link.ts'
import type { ControlCalls, PlaneCalls } from '../../link/planes/plane-calls.ts'
import { LinkFault } from '../../model/link-fault.ts'
import { RestrictionFeed } from '../records/stored-restrictions.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { Store } from '../store/store.ts'
import { CaptureFeed } from './capture-mirror.ts'
import { type FileCertificates, LiveCertificates, type ReplaceCertificates } from './certificate-mirror.ts'
import { CertificateFeed } from './certificate-sender.ts'
import { LiveChallenges } from './challenge-mirror.ts'
import { LiveEdges } from './edge-mirror.ts'
import { IngressNameFeed } from './ingress-name-mirror.ts'
import type { ClusterOfPlanes } from './shared-calls.ts'

type PlaneLink = CallLink<PlaneCalls, ControlCalls>

export interface PlaneFeedsOptions {
  readonly store: Store
  readonly sealer: Sealer
  /** Undefined when no certificates are in files. */
  readonly files?: (FileCertificates & { whenChanged(listener: () => void): () => void }) | undefined
  readonly log: Logger
  readonly nodes?: Pick<ClusterOfPlanes, 'ports'> | undefined
}

/** Doors open once they know their names and who may connect; edges come after their certificates. */
export function planeFeeds(link: PlaneLink, { store, sealer, files, log, nodes }: PlaneFeedsOptions): Followed[] {
  const certificates = new CertificateFeed((change) => link.tell('certificates', change))
  const replace: ReplaceCertificates = (served, changed) => certificates.replace(served, changed)
  const live = new LiveCertificates({ store, sealer, files, replace, log })
  const forget = files?.whenChanged(() => live.filesChanged())
  void link.closed.then(forget)
  return [
    new IngressNameFeed(store, (change) => link.tell('ingressNames', change)),
    new RestrictionFeed(store, (restrictions) => sent(link, 'restrict', restrictions)),
    live,
    new LiveChallenges(store, (change) => sent(link, 'challenges', change)),
    new LiveEdges({
      store,
      sealer,
      sink: {
        change: (change) => sent(link, 'edges', change),
        storedIds: async () => (await sent(link, 'storedEdges', null)) ?? [],
      },
      log,
    }),
    new CaptureFeed(store, (running) => link.tell('captures', running)),
    ...(nodes ? [nodes.ports((change) => sent(link, 'distantPorts', change))] : []),
  ]
}

/** Asks a plane; when the plane goes meanwhile, that is no failure. */
async function sent<Name extends keyof PlaneCalls>(
  link: PlaneLink,
  name: Name,
  argument: Parameters<PlaneCalls[Name]>[0],
): Promise<Awaited<ReturnType<PlaneCalls[Name]>> | undefined> {
  try {
    return await link.ask(name, argument)
  } catch (error) {
    if (error instanceof LinkFault && link.isClosed) return undefined
    throw error
  }
}
