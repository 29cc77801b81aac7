/** Data planes for tests of the control plane: each records what it is sent, and serves nobody. */

import { IngressNames } from '../../../data-plane/mirrored/ingress-names.ts'
import { UploadedCertificates } from '../../../data-plane/mirrored/uploaded-certificates.ts'
import { createLog } from '../../../lib/log/create-log.ts'
import { CallLink } from '../../../link/calls/call-link.ts'
import { channelPair } from '../../../link/calls/plane-channel.ts'
import type {
  ControlCalls,
  OnlineSession,
  OnlineTunnel,
  PartRestriction,
  PlaneCalls,
  ServedCertificate,
} from '../../../link/planes/plane-calls.ts'
import { sumOf } from '../../../model/plane-metrics.ts'
import type { StartedNode } from '../../records/only-node.ts'
import type { AttachedPlanes } from '../attached-planes.ts'

const log = createLog({ level: 'silent', format: 'json', destination: { write() {} } })

/** The node of the test planes. */
export const testNode: StartedNode = {
  id: 'nd_5',
  name: 'node-5',
  address: '',
  region: 'local',
  version: '1',
  since: '2026-01-01T00:00:00Z',
}

export class TestPlane {
  readonly id: string
  readonly link: CallLink<ControlCalls, PlaneCalls>
  /** Names of the calls, in order. */
  readonly heard: string[] = []
  readonly edges = new Set<string>()
  readonly ingressNames = new IngressNames()
  restrictions: readonly PartRestriction[] = []
  certificates: ReadonlyMap<string, ServedCertificate> = new Map()
  /** Tunnels at other planes, as `tunnel@plane`, and lost ones. */
  readonly elsewhere = new Map<string, string>()
  readonly lost: string[] = []
  planes: readonly string[] = []
  nodes: readonly string[] = []
  /** Those of them that are unsure. */
  unsure: readonly string[] = []
  /** Names whose challenges it answers. */
  readonly challenges: string[] = []
  readonly ended: string[] = []
  readonly endedCredentials: string[] = []
  readonly endedLegs: string[] = []
  readonly stopped: string[] = []
  /** The number of failures that this plane reports. */
  failures = 0
  readonly #waiting: (() => void)[] = []

  constructor(planes: AttachedPlanes, id: string, calls: Partial<PlaneCalls> = {}) {
    this.id = id
    const [ours, theirs] = channelPair()
    planes.take(theirs)
    const all = { ...this.#calls(), ...calls }
    const noted = Object.entries(all).map(([name, call]) => [
      name,
      async (argument: never) => {
        this.heard.push(name)
        // Recorded before the answer is sent.
        const answer: unknown = await call(argument)
        for (const wake of this.#waiting.splice(0)) wake()
        return answer
      },
    ])
    this.link = new CallLink(ours, Object.fromEntries(noted) as PlaneCalls, { log })
  }

  async attach({
    sessions = [],
    tunnels = [],
    legs = [],
  }: {
    sessions?: OnlineSession[]
    tunnels?: OnlineTunnel[]
    legs?: string[]
  } = {}) {
    await this.link.ask('attach', { planeId: this.id, version: '1', sessions, tunnels, legs })
    return this
  }

  /** Resolves when the condition holds; it is checked after every message to the plane. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#waiting.push(resolve)
      await promise
    }
  }

  ready(): Promise<void> {
    return this.until(() => this.heard.includes('letVisitorsIn'))
  }

  #calls(): PlaneCalls {
    const uploaded = new UploadedCertificates((served) => {
      this.certificates = served
    })
    return {
      ingressNames: (change) => this.ingressNames.take(change),
      restrict: (given) => {
        this.restrictions = given
      },
      certificates: (change) => uploaded.take(change),
      challenges: ({ set }) => void this.challenges.push(...set.map(({ name }) => name)),
      storedEdges: () => [...this.edges],
      edges: async ({ applied, removed }) => {
        for (const id of removed) this.edges.delete(id)
        for (const { id } of applied) this.edges.add(id)
        return []
      },
      edgesSettled: async () => {},
      elsewhere: async (change) => {
        if (change.isAll) this.elsewhere.clear()
        for (const id of [...change.removed, ...change.lost]) this.elsewhere.delete(id)
        this.lost.push(...change.lost)
        for (const { tunnelId, planeId } of change.added) this.elsewhere.set(tunnelId, planeId)
      },
      planes: (given) => {
        this.planes = given.map(({ planeId }) => planeId)
      },
      nodes: (given) => {
        this.nodes = given.map(({ nodeId }) => nodeId)
        this.unsure = given.flatMap(({ nodeId, isUnsure }) => (isUnsure ? [nodeId] : []))
      },
      distantPorts: async () => {},
      letVisitorsIn() {},
      command: async () => {},
      endSession: ({ sessionId }) => {
        this.ended.push(sessionId)
        this.link.tell('sessionEnded', { sessionId })
      },
      endSessionsOf: ({ credentialId }) => void this.endedCredentials.push(credentialId),
      endLegs: ({ sessionId }) => void this.endedLegs.push(sessionId),
      proveAlive: async () => {},
      stopTunnel: ({ tunnelId }) => void this.stopped.push(tunnelId),
      tunnelStopped: ({ tunnelId }) => void this.stopped.push(`told ${tunnelId}`),
      loginsEnded() {},
      numbers: () => {
        const none = sumOf([])
        return { ...none, totals: { ...none.totals, failures: this.failures } }
      },
      counted: async () => [],
      brokenEdges: () => [],
      exchanges: async () => [],
      exchange: async () => undefined,
      captures() {},
      newExchanges: () => ({ next: 0, exchanges: [], missed: 0 }),
      replay: async () => undefined,
    }
  }
}
