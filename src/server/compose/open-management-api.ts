/** Composes the management API and the metrics: opens both, step by step, and closes them in the opposite order. */
import { buildApi } from '../../control-plane/api/app.ts'
import { readPageFiles } from '../../control-plane/api/page-files.ts'
import { PageSessions } from '../../control-plane/api/page-session.ts'
import { RateLimit } from '../../control-plane/records/api-rate-limit.ts'
import { ApiRestriction } from '../../control-plane/records/api-restriction.ts'
import { EndedPageSessions } from '../../control-plane/records/ended-page-sessions.ts'
import { authenticate } from '../../control-plane/records/find-caller.ts'
import type { Settings } from '../config/read-settings.ts'
import { openAll } from './open-all.ts'
import { listenForCallers, listenForMetrics } from './open-api-listeners.ts'
import { openCaps, openMetrics } from './open-api-metrics.ts'
import { openCaptures, openRecords, openTraffic } from './open-operations.ts'
import { beginApi, type ManagementOptions, type OpeningApi } from './opening-api.ts'

/** How long `/readyz` waits for the database, in milliseconds: health checks are frequent and give up soon. */
const READINESS_MS = 2000

/** Listens for callers; resolves once they are served. */
export function openManagementApi(options: ManagementOptions) {
  return openAll(async (opened) => {
    const opening = beginApi(options, opened)
    // What callers can do comes before what counts and shows it.
    const records = openRecords(opening)
    const captures = await openCaptures(opening, records)
    const traffic = openTraffic(opening)
    // Metrics have their listener before the API has, so that a start that is slow from here on can be watched.
    const caps = openCaps(opening)
    const { metrics, server } = await openMetrics(opening, caps)
    const metricsAddress = await listenForMetrics(opening, server)
    const serving = {
      addresses: { api: '', metrics: metricsAddress, ...options.planeAddresses },
      /** Whether the server is ready; set by the caller. */
      isServing: false,
      /** Applies other settings, as far as they can change while the server runs (`isLive` in their table). */
      use: (next: Settings) => opening.live.use(next),
      close: () => opened.disposeAsync(),
    }
    // The API comes last, since it uses all of that.
    const parts = { ...records, ...traffic, captures, caps, metrics }
    const api = await buildApi({ ...parts, ...(await accessOf(opening)), readiness: readinessOf(opening, serving) })
    api.addHook('onSend', async (_request, reply) => {
      // While stopping, an answer is the last on its connection, which would otherwise stay open idle.
      if (!serving.isServing) reply.header('connection', 'close')
    })
    await api.ready()
    serving.addresses.api = await listenForCallers(opening, api, caps)
    // Closing begins with the streams, which end only when they are told to.
    opened.defer(() => traffic.exchangeStreams.close())
    return serving
  })
}

/** Who may call, how often, and what callers see of the server itself. */
async function accessOf({ settings, live, control, ids, now, log, version }: OpeningApi) {
  const { store, sealer, refused, presence, groups, sshHostKey } = control
  const guard = new ApiRestriction(store, refused)
  const rateLimit = new RateLimit({ perMinute: settings.apiRateLimit, now: () => performance.now() })
  live.whenChanged((next) => rateLimit.use(next.apiRateLimit))
  const pageFiles = await readPageFiles()
  if (!pageFiles) log.warn('dashboard files not found; build them with `npm run page` (the API is not affected)')
  const apiUrl = () => live.now.apiUrl
  return {
    ...{ ids, log, version, presence, sshHostKey, rateLimit, pageFiles, apiUrl },
    authenticate: (token: string) => authenticate(store, token),
    admits: guard.admits.bind(guard),
    groupsOf: groups.serving.bind(groups),
    pageSessions: new PageSessions({ sealer, now, apiUrl, ended: new EndedPageSessions({ store, now }) }),
  }
}

/** For `/readyz`: a server is ready while it serves and its database works; visitors are served without it (D125). */
function readinessOf<T>(
  { control: { store } }: OpeningApi,
  serving: { readonly addresses: T; readonly isServing: boolean },
) {
  return async ({ forVisitors }: { readonly forVisitors: boolean }) => {
    const isReady = serving.isServing && (forVisitors || (await store.answers(READINESS_MS)))
    return { isReady, addresses: serving.addresses }
  }
}
