/** Opens the metrics, and the limits of the listener of the management API, which they show too. */
import { Registry } from '@prometheus-io/client'
import { ApiMetrics } from '../../control-plane/api/metrics.ts'
import {
  registerCaps,
  registerCertificateFiles,
  registerCertificates,
  registerCluster,
  registerProcess,
} from '../../control-plane/api/server-metrics.ts'
import { registerTraffic } from '../../control-plane/api/traffic-metrics.ts'
import { lostLines } from '../../lib/log/create-log.ts'
import { ConnectionCaps } from '../../lib/net/connection-caps.ts'
import { compileIpRules } from '../../lib/net/ip-rules.ts'
import type { Settings } from '../config/read-settings.ts'
import type { OpeningApi } from './opening-api.ts'

/** The limits of the API's listener, which are counted apart from those of the data planes. */
export function openCaps({ settings, live, log, opened }: OpeningApi): ConnectionCaps {
  // The API reads no PROXY header, so all callers behind a trusted proxy share its address.
  const isTrusted = live.derive(isTrustedBy)
  const caps = new ConnectionCaps({ limits: settings, door: 'api', log, isShared: (ip) => isTrusted()(ip) })
  opened.defer(() => caps.close())
  live.whenChanged((next) => caps.use(next))
  return caps
}

function isTrustedBy({ trustedProxies }: Settings): (ip: string) => boolean {
  return compileIpRules(trustedProxies.map((network) => ({ action: 'allow', network })))
}

/** Registers all metrics, in the order in which they are shown. */
export async function openMetrics({ control, supervisor, descriptors, log }: OpeningApi, caps: ConnectionCaps) {
  const { planes, clusterMetrics, certificateMetrics, certificateFileMetrics } = control
  const registry = new Registry()
  const metrics = new ApiMetrics(registry)
  let planeMetrics = await planes.metrics()
  registerTraffic(registry, () => planeMetrics)
  const firstCertificates = await certificateMetrics?.()
  let certificates = firstCertificates
  if (firstCertificates) registerCertificates(registry, () => certificates ?? firstCertificates)
  if (certificateFileMetrics) registerCertificateFiles(registry, certificateFileMetrics)
  if (clusterMetrics) registerCluster(registry, clusterMetrics, () => planeMetrics)
  registerCaps(
    registry,
    () => [...planeMetrics.doors, caps],
    () => planeMetrics,
  )
  registerProcess(registry, {
    lostLines: () => supervisor?.lostLines() ?? lostLines(log),
    ...(supervisor && { restarts: () => supervisor.restarts() }),
    refusedConnections: () => planeMetrics.totals.refusedConnections + (supervisor ? descriptors.refused : 0),
  })
  return {
    metrics,
    /** Serves the metrics, each time with the numbers of this moment. */
    server: metrics.server(async () => {
      planeMetrics = await planes.metrics()
      // While the database is down, the last numbers are used.
      certificates = await certificateMetrics?.().catch(() => certificates)
    }),
  }
}
