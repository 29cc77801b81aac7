/** Opens what serves visitors: over HTTP, and as streams of TLS and TCP edges. */
import { Replays } from '../../data-plane/dry-run/replay-exchange.ts'
import { EdgeRouter } from '../../data-plane/edge/edge-router.ts'
import { HttpFront } from '../../data-plane/edge/http-front.ts'
import { judgingAgain } from '../../data-plane/edge/judge-again.ts'
import { errorPages } from '../../data-plane/edge/pages/error-page.ts'
import { retireEdge } from '../../data-plane/edge/retire-edge.ts'
import { requestLimits } from '../config/plane-settings.ts'
import type { OpeningPlane, PlaneParts } from './opening-plane.ts'

export function openVisitors(
  plane: OpeningPlane,
  parts: Pick<PlaneParts, 'mirrors' | 'limits' | 'table' | 'records' | 'tunnels' | 'remote'>,
) {
  const { settings, live, publicPorts, now, log, opened } = plane
  const { mirrors, records, tunnels, remote } = parts
  const { edges, ports, tls } = parts.table
  const { counts, accessLog, exchanges, bodyMemory, departed } = records
  const { captures } = exchanges
  const { challenges } = mirrors
  const { lookUp } = remote
  const caps = parts.limits.caps.visitors
  const front = new HttpFront({
    ...{ edges, counts, bodyMemory, departed, log, now, publicPorts, lookUp, captures },
    pages: () => errorPages(live.now),
    admits: mirrors.admitsVisitor,
    onRequest: (record) => {
      accessLog.request(record)
      exchanges.note(record)
      tunnels.online.requests.saw(record)
    },
    onProxied: (ip) => records.proxies.saw(ip),
    answerFirst: challenges.answerHttp,
    requestsOf: (ip) => caps.requestsOf(ip),
    mayKeep: (tunnelId) => remote.mayKeep(tunnelId),
    limits: requestLimits(settings),
  })
  live.whenChanged((next) => front.use(requestLimits(next)))
  const router = new EdgeRouter({
    ...{ edges, tls, lookUp, counts, departed, challenges, log },
    serveHttp: (visit) => front.serve(visit),
    mayShake: (ip) => caps.shake(ip),
    idleMs: settings.idleTimeoutMs,
    onRecord: (record) => accessLog.connection(record),
    defaultCertificate: (name) => mirrors.certificates.findDefault(name, settings),
  })
  opened.defer(() => router.close())
  live.whenChanged((next) => router.useIdleMs(next.idleTimeoutMs))

  // What was opened before, and concerns visitors from here on.
  ports.whenConnected(router.onPort)
  remote.whenMoved((tunnelId) => front.tunnelMoved(tunnelId))

  edges.whenChanged(
    judgingAgain(
      (ids) => front.judgeAgain(ids),
      (ids) => router.judgeAgain(ids),
    ),
  )
  mirrors.restrictions.whenChanged(() => {
    front.dropUnadmitted()
    router.dropUnadmitted(mirrors.admitsVisitor)
  })
  edges.whenRemoved((id) => {
    counts.forget(id)
    // An endpoint may come back: another node's is forgotten when nobody visits it for a while.
    if (!id.startsWith('ep_')) parts.limits.counters.forget(id)
    const isServed = (edgeId: string) => edges.has(edgeId)
    retireEdge(id, { streams: router, http: front, isServed, drainMs: live.now.drainTimeoutMs })
  })
  const replays = new Replays({
    ...{ edges, captures, now },
    serve: (...given) => front.answer(...given),
    publicPorts: () => publicPorts,
  })
  return { front, router, replays }
}
