/** The checks of `postern doctor` for visitors' traffic: addresses that serve nobody, and a proxy that is not trusted. */
import { type Finding, toDo, well } from './finding.ts'
import { listNames } from './list-names.ts'

/** Fewer requests or connections say little about an address. */
const LEAST_VISITS = 20

/** From this part on, an address fails or refuses all the time. */
const ALL_THE_TIME = 0.95

/** Rows that stand for many addresses. */
const together: ReadonlySet<string> = new Set(['endpoints', 'others', ''])

interface Visits {
  requests: number
  connections: number
  failed: number
  refused: number
}

/** `metrics` as the server writes them; they count since the server started. */
export function trafficFindings(metrics: string): Finding[] {
  return [...addressFindings(metrics), ...proxyFindings(metrics)]
}

function addressFindings(metrics: string): Finding[] {
  const visits = new Map<string, Visits>()
  for (const { name, labels, value } of rowsOf(metrics)) {
    const [, what] = /^postern_(?:edge|endpoint)_(requests|connections|refused)_total$/.exec(name) ?? []
    const id = labels.edge ?? labels.endpoint ?? ''
    if (what === undefined || together.has(id)) continue
    const address = labels.address || id
    const counted = visits.get(address) ?? { requests: 0, connections: 0, failed: 0, refused: 0 }
    visits.set(address, counted)
    counted[what as 'requests' | 'connections' | 'refused'] += value
    if (labels.status === '5xx' || labels.status === 'none') counted.failed += value
  }
  const dead = [...visits].flatMap(([address, { requests, connections, failed, refused }]) => {
    // Connections that were refused at once are not counted as connections.
    const all = requests > 0 ? requests : Math.max(connections, refused)
    const isDead = (some: number) => all >= LEAST_VISITS && some >= all * ALL_THE_TIME
    if (!isDead(failed) && !isDead(refused)) return []
    return [`${address} (${isDead(failed) ? `${failed} of ${all} failed` : `${refused} of ${all} refused`})`]
  })
  if (visits.size === 0) return []
  if (dead.length === 0) return [well('visitors', `none of ${visits.size} addresses fails or refuses all the time`)]
  const about = `${dead.length} of ${visits.size} addresses have failed or refused nearly all visitors since the server started: ${listNames(dead)}`
  return [toDo('visitors', about, 'see their requests on the dashboard, or with `postern api exchanges list`')]
}

function proxyFindings(metrics: string): Finding[] {
  const proxies = rowsOf(metrics).filter(({ name }) => name === 'postern_untrusted_proxy_requests')
  if (proxies.length === 0) return []
  const addresses = listNames(proxies.map(({ labels }) => labels.address ?? ''))
  const about = `most requests come from ${addresses} with headers of a proxy, such as X-Forwarded-For, which are not believed`
  const next = 'if it is yours, let it send a PROXY header and add it to --trusted-proxies'
  return [toDo('proxy', about, next)]
}

interface Row {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

function rowsOf(metrics: string): Row[] {
  return metrics.split('\n').flatMap((line) => {
    const [, name = '', list = '', value = ''] = /^(\w+)\{(.*)\} (\S+)$/.exec(line) ?? []
    const pairs = [...list.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label = '', text = '']) => [label, text])
    return name === '' ? [] : [{ name, labels: Object.fromEntries(pairs) as Row['labels'], value: Number(value) }]
  })
}
