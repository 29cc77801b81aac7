/** Opens the table of edges, what visitors pass before it, and what is recorded of its traffic. */
import { AccessLog } from '../../data-plane/edge/access-log.ts'
import { BodyMemory, bodyMemoryOf } from '../../data-plane/edge/body-memory.ts'
import { DisconnectWatch } from '../../data-plane/edge/detect-disconnects.ts'
import { EdgeTable } from '../../data-plane/edge/edge-table.ts'
import { IdleVisitors } from '../../data-plane/edge/idle-visitors.ts'
import { PublicTcpPorts } from '../../data-plane/edge/public-tcp-ports.ts'
import { TlsServers } from '../../data-plane/edge/tls-servers.ts'
import { TrafficCount } from '../../data-plane/edge/traffic-count.ts'
import { UntrustedProxies } from '../../data-plane/edge/untrusted-proxies.ts'
import { waitForLoad } from '../../data-plane/edge/wait-for-load.ts'
import { requestKeyOf } from '../../data-plane/mirrored/control-queries.ts'
import { PlaneExchanges } from '../../data-plane/requests/plane-exchanges.ts'
import { outboundFetch } from '../../lib/http/outbound-fetch.ts'
import { shareOf } from '../../lib/limits/share-of.ts'
import { lineWriter } from '../../lib/log/create-log.ts'
import { type MeetVisitor, meetAdmitted, meetVisitors } from '../../lib/net/trusted-hop.ts'
import { shared } from '../../model/shared.ts'
import { EdgeWork } from '../../modules/edge-worker-tasks.ts'
import { samlDocuments } from '../../modules/saml/saml-documents.ts'
import { keptNames } from '../config/own-names.ts'
import { outboundBy } from '../config/plane-settings.ts'
import type { OpeningPlane, PlaneParts } from './opening-plane.ts'

/** How often TLS state of names that are gone is dropped, in milliseconds. */
const TIDY_MS = 30_000

/** Visitors are met, and wait until all edges are there. */
export function openGate({ live, opened }: OpeningPlane, { mirrors }: Pick<PlaneParts, 'mirrors'>) {
  const hops = live.derive(({ trustedProxies }) => meetVisitors(trustedProxies))
  const throughHops: MeetVisitor = (socket, peer, done) => hops()(socket, peer, done)
  const held = waitForLoad(throughHops)
  opened.defer(() => held.sendAway())
  return { throughHops, held, meetAdmitted: meetAdmitted(held.meet, mirrors.admitsVisitor), idle: new IdleVisitors() }
}

/** Edges dial tunnels through the registry, which also reaches those elsewhere once they are attached to it. */
export function openEdges(
  plane: OpeningPlane,
  parts: Pick<PlaneParts, 'mirrors' | 'threads' | 'limits' | 'gate' | 'registry'>,
) {
  const { mirrors, threads, limits, gate, registry } = parts
  const { settings, live, control, sealer, ticketSecret, descriptors, now, log, opened } = plane
  const kept = live.derive(keptNames)
  const mayReach = live.derive(outboundBy)
  const edgeWork = new EdgeWork(threads)
  const samlWork = threads.lane('saml', { waiting: shared.samlDocuments.most })
  const budgets = { spent: 0 }
  const { meetAdmitted: meet, idle } = gate
  const caps = limits.caps.visitors
  const { giveWay } = idle
  const ports = new PublicTcpPorts({ holders: plane.tcpPorts, meet, caps, descriptors, giveWay, log, now })
  const edges = new EdgeTable({
    reach: { dial: registry.dial, followGroup: registry.followGroup, random: Math.random },
    tools: {
      now,
      log,
      region: settings.region,
      fetch: outboundFetch({ mayReach: (target) => mayReach()(target) }),
      sealer,
      sessions: mirrors.logins,
      counters: limits.divided,
      breakers: limits.breakers,
      onBudgetSpent: () => {
        budgets.spent++
      },
      requestKey: requestKeyOf(control),
      samlDocuments: samlDocuments(({ owner, source }, work) => samlWork.run(owner, work, source)),
    },
    compilePatterns: (patterns) => edgeWork.compilePatterns(patterns),
    prepareExpressions: (texts) => edgeWork.prepareExpressions(texts),
    ports,
    isOwnName: (name) => kept().has(name),
    log,
  })
  const { certificates } = mirrors
  const tls = new TlsServers({ certificates, log, now, ...(ticketSecret && { ticketSecret }) })
  const tidying = setInterval(() => tls.dropGone((name) => edges.serves(name)), TIDY_MS).unref()
  opened.defer(() => clearInterval(tidying))
  return { edges, ports, tls, budgets }
}

/** What is counted and recorded of the traffic of edges, and what watches it. */
export function openRecords(plane: OpeningPlane, { table, registry }: Pick<PlaneParts, 'table' | 'registry'>) {
  const { settings, live, nodeId, planeId, planeCount, publicPorts, now, log, opened } = plane
  const { edges } = table
  const counts = new TrafficCount({
    isServed: (id) => edges.has(id),
    addressOf: (id) => edges.endpointAddress(id),
  })
  const accessLog = new AccessLog({ write: lineWriter(log), isOn: () => log.isLevelEnabled('info'), now })
  opened.defer(() => accessLog.flush())
  const exchanges = new PlaneExchanges({
    ...{ nodeId, planeId, now },
    bytes: shareOf(settings.exchangeMemory, planeCount),
    sessionOf: (id) => registry.sessionOf(id),
    publicPorts: () => publicPorts,
  })
  const bodyMemory = new BodyMemory({ bytes: bodyMemoryOf(settings.bodyMemory, planeCount) })
  live.whenChanged((next) => bodyMemory.use(bodyMemoryOf(next.bodyMemory, planeCount)))
  const proxies = new UntrustedProxies({ log, total: () => counts.latency.steps.reduce((a, b) => a + b, 0) })
  opened.defer(() => proxies.close())
  const departed = new DisconnectWatch()
  opened.defer(() => departed.close())
  return { counts, accessLog, exchanges, bodyMemory, departed, proxies }
}
