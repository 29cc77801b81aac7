/** What data planes mirror of the stored configuration, in the order in which it is sent. */
import type { CallLink } from '../../link/calls/call-link.ts'
import type {
  CertificateChange,
  ControlCalls,
  NameChallenge,
  PlaneCalls,
  ServedCertificate,
} from '../../link/planes/plane-calls.ts'
import type { RunningCapture } from '../../model/capture.ts'
import { readName } from '../../model/hostport.ts'
import { LinkFault } from '../../model/link-fault.ts'
import { expiryOf } from '../records/managed-captures.ts'
import { readPartRestrictions } from '../records/stored-restrictions.ts'
import { agentIngresses } from '../resources/agent-ingresses.ts'
import { captures } from '../resources/captures.ts'
import { ipPolicies } from '../resources/ip-policies.ts'
import { ipRestrictions } from '../resources/ip-restrictions.ts'
import { fieldsOf } from '../resources/resource.ts'
import { CHALLENGE } from '../store/certificate-reader.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { Store } from '../store/store.ts'
import type { CertificatesByName } from './certificate-choice.ts'
import { type MirrorCertificatesOptions, mirrorCertificates } from './certificate-mirror.ts'
import { type EdgeSink, mirrorEdges } from './edge-mirror.ts'
import { itemsOf, mirror } from './mirror.ts'
import type { ClusterOfPlanes } from './shared-calls.ts'

/** Sends a plane the argument of a call; resolves when it is in force there. */
type Send<Name extends keyof PlaneCalls> = (argument: Parameters<PlaneCalls[Name]>[0]) => Promise<unknown>

/** The names of agent ingresses. */
export function ingressNames(store: Store, send: Send<'ingressNames'>): Followed {
  return mirror({
    ...itemsOf(store, [agentIngresses], (stored) => {
      const { domain, certificate_management_policy: policy } = fieldsOf(agentIngresses, stored)
      return { name: readName(domain), isPublic: Boolean(policy) }
    }),
    send({ isAll, removed, set }) {
      return send({ isAll, removed: [...removed.values()].map(({ name }) => name), set: [...set.values()] })
    },
  })
}

/** The IP restrictions, each with its rules. */
export function partRestrictions(store: Store, send: Send<'restrict'>): Followed {
  return mirror({
    // A change of a rule is announced under its policy, which any of them may have.
    kinds: [ipRestrictions.kind, ipPolicies.kind],
    read: () => store.read(readPartRestrictions),
    send: ({ all }) => send([...all.values()]),
  })
}

/** The challenges by which authorities check that a name is served here; their id is the name. */
export function nameChallenges(store: Store, send: Send<'challenges'>): Followed {
  return mirror<NameChallenge>({
    kinds: [CHALLENGE],
    async read(names) {
      const stored = await store.read(({ certificates }) => certificates.challenges(names))
      // DNS challenges are not answered by a listener.
      return stored.flatMap(({ name, kind, token, answer }) =>
        kind === 'http-01' || kind === 'tls-alpn-01' ? [[name, { name, kind, token, answer }] as const] : [],
      )
    },
    // Planes are also shown challenges directly, so that one may be gone before it was sent from here.
    send: ({ isAll, ids, set }) =>
      send({ isAll, removed: ids.filter((name) => !set.has(name)), set: [...set.values()] }),
  })
}

export function runningCaptures(store: Store, send: Send<'captures'>): Followed {
  return mirror<RunningCapture>({
    ...itemsOf(store, [captures], (stored) => {
      const { edge_id, endpoint_id, bodies, max_body_bytes: maxBodyBytes, unmask } = fieldsOf(captures, stored)
      const edgeId = edge_id ?? endpoint_id ?? ''
      return { id: stored.id, edgeId, bodies, maxBodyBytes, unmask, expiresAt: expiryOf(stored) }
    }),
    send: ({ all }) => send([...all.values()]),
  })
}

export interface PlaneMirrorsOptions extends Omit<MirrorCertificatesOptions, 'replace'> {
  readonly nodes?: Pick<ClusterOfPlanes, 'ports'> | undefined
}

/** Listeners open once they know their names and who may connect; edges come after their certificates. */
export function planeMirrors(
  link: CallLink<PlaneCalls, ControlCalls>,
  { store, sealer, files, log, nodes }: PlaneMirrorsOptions,
): Followed[] {
  const ask = async <Name extends keyof PlaneCalls>(
    name: Name,
    argument: Parameters<PlaneCalls[Name]>[0],
  ): Promise<Awaited<ReturnType<PlaneCalls[Name]>> | undefined> => {
    try {
      return await link.ask(name, argument)
    } catch (error) {
      // When the plane goes meanwhile, that is no failure.
      if (error instanceof LinkFault && link.isClosed) return undefined
      throw error
    }
  }
  const replace = certificateSender((change) =>
    ask('certificates', change).catch((err: unknown) => log.warn({ err }, 'data plane did not confirm certificates')),
  )
  const certificates = mirrorCertificates({ store, sealer, files, replace, log })
  void link.closed.then(() => certificates.stop())
  const sink: EdgeSink = {
    change: (change) => ask('edges', change),
    settled: (ids) => ask('edgesSettled', ids),
    storedIds: async () => (await ask('storedEdges', null)) ?? [],
  }
  return [
    ingressNames(store, (change) => ask('ingressNames', change)),
    partRestrictions(store, (restrictions) => ask('restrict', restrictions)),
    certificates,
    nameChallenges(store, (change) => ask('challenges', change)),
    mirrorEdges({ store, sealer, sink, log }),
    runningCaptures(store, (running) => ask('captures', running)),
    ...(nodes ? [nodes.ports((change) => ask('distantPorts', change))] : []),
  ]
}

/**
 * Tells a data plane which certificate to show for which name, sending only what has changed. Returns what sends, and resolves
 * when it is in force: `changed` are the names whose certificate may have changed since the last call. A change that is not
 * acknowledged is not sent again, since the link delivers in order what it is given.
 */
export function certificateSender(send: (change: CertificateChange) => Promise<unknown>) {
  const sent = new Map<string, ServedCertificate>()
  /** How many names use each certificate at the plane. */
  const usesOf = new Map<ServedCertificate, number>()
  let isAll = true
  const use = (certificate: ServedCertificate, more: 1 | -1): number => {
    const uses = (usesOf.get(certificate) ?? 0) + more
    if (uses > 0) usesOf.set(certificate, uses)
    else usesOf.delete(certificate)
    return uses
  }
  return async (served: CertificatesByName, changed: Iterable<string>): Promise<void> => {
    const certificates = new Map<string, ServedCertificate>()
    const names: (readonly [string, string])[] = []
    const removedNames: string[] = []
    const left: ServedCertificate[] = []
    for (const name of changed) {
      const [before, now] = [sent.get(name), served.get(name)]
      if (before === now) continue
      if (before) left.push(before)
      if (now) {
        names.push([name, now.id])
        if (use(now, 1) === 1) certificates.set(now.id, now)
        sent.set(name, now)
      } else {
        removedNames.push(name)
        sent.delete(name)
      }
    }
    for (const certificate of left) use(certificate, -1)
    const change = { isAll, certificates: [...certificates.values()], names, removedNames }
    isAll = false
    await send(change)
  }
}
