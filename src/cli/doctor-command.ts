/** `postern doctor`: checks the server on this machine, and says what to fix. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command } from 'commander'
import { errorCode } from '../lib/error-code.ts'
import { countOf } from '../lib/text/plural.ts'
import { printable } from '../lib/text/printable.ts'
import { keptNames } from '../server/config/own-names.ts'
import type { Settings } from '../server/config/read-settings.ts'
import { apiCaller } from './api/api-client.ts'
import { listAll } from './api/list.ts'
import { requestOf } from './api/request.ts'
import { Failure } from './command-failure.ts'
import { expiryFinding, keyFindings, metricFindings, orderFindings } from './doctor/certificates.ts'
import { checkServerFiles } from './doctor/data-files.ts'
import { type Finding, toDo, unknown, well } from './doctor/finding.ts'
import { checkClock, checkDisk, checkFiles } from './doctor/machine.ts'
import { checkDomain, checkListeners, machineReach, type ReachedFrom } from './doctor/reach.ts'
import { checkAccess, checkDatabase } from './doctor/secrets.ts'
import { trafficFindings } from './doctor/traffic.ts'
import { reachable, webAddress } from './print-first-start.ts'
import { addSettingsFlags, settingsOf } from './settings-flags.ts'
import type { Terminal } from './terminal.ts'
import { printJson } from './text-table.ts'

const examples = `
Run it on the server's machine, with the server's settings. With the API key of an admin, in POSTERN_API_KEY or --api-key,
it also checks certificates. Exit code: 0 if all is well, 1 if there is something to fix.

Examples:
  postern doctor
  postern doctor --config /etc/postern/postern.yml --json`

/** The beginning of the URL of a database in a file. */
const SQLITE = 'sqlite:'

/** How long one response may take, in milliseconds. */
const ANSWER_MS = 5000

/** Settings that say where the server is. */
const flags = [
  ...['data-dir', 'api-listen', 'api-url', 'api-tls', 'metrics-listen', 'https-listen', 'public-https-port'],
  ...['domain', 'agent-names'],
]

/** `reach` is for tests. */
export function doctorCommand(terminal: Terminal, reach?: ReachedFrom): Command {
  const command = new Command('doctor')
  addSettingsFlags(command, { only: flags })
  command.option('--api-key <key>', 'API key of an admin; set POSTERN_API_KEY instead to keep it out of process lists')
  command.option('--json', 'print the findings as JSON')
  return command.addHelpText('after', examples).action(async () => {
    const { apiKey, json } = command.opts<{ apiKey?: string; json?: true }>()
    const findings = await examine(settingsOf(command, terminal), { terminal, apiKey, reach })
    if (json) printJson(terminal, findings)
    else for (const finding of findings) terminal.out(`${lineOf(finding)}\n`)
    const left = findings.filter(({ state }) => state === 'to do').length
    if (left > 0) throw new Failure(`${countOf(left, 'problem')} found`)
  })
}

interface Examination {
  readonly terminal: Terminal
  readonly apiKey: string | undefined
  readonly reach: ReachedFrom | undefined
}

async function examine(settings: Settings, { terminal, apiKey, ...given }: Examination): Promise<Finding[]> {
  const { dataDir, apiListen, apiTls, metricsListen, domain, httpsListen, publicHttpsPort } = settings
  const caFile = join(dataDir, 'ca.pem')
  const { keyFile, databaseUrl } = settings
  const databaseFile = databaseUrl.startsWith(SQLITE) ? databaseUrl.slice(SQLITE.length) : undefined
  const { findings: files, authority } = checkServerFiles({ caFile, keyFile, databaseFile })
  // The finding about a missing or unreadable file is enough.
  const hasDatabase =
    databaseFile === undefined || files.some(({ check, state }) => check === 'database file' && state === 'well')
  const reach = given.reach ?? machineReach(authority)
  const ca = apiTls ? authority : undefined
  const base = webAddress(textOf(apiListen), apiTls ? 'https' : 'http')
  const { findings: health, addresses } = await checkServer(base, ca)
  const https = { address: addresses.https ?? textOf(httpsListen), publicPort: publicHttpsPort }
  const groups = await Promise.all([
    checkListeners(addresses, reach),
    checkDomain(domain, https, reach),
    checkStored(base, { terminal, apiKey, ca: ca === undefined ? undefined : caFile }),
    checkMetrics(webAddress(textOf(metricsListen))),
    checkDisk(dataDir),
    checkFiles(),
    checkClock(settings.acmeDirectory, settings.acmeCa === null ? undefined : own(settings.acmeCa)),
  ])
  const inside = hasDatabase ? await checkDatabase(databaseUrl, keyFile, keptNames(settings)) : []
  return [...health, ...files, ...inside, ...checkAccess([keyFile, dataDir]), ...groups.flat()]
}

/** Whether the server responds and is ready, and where it listens. */
async function checkServer(base: string, ca: string | undefined) {
  const none: Readonly<Record<string, string>> = {}
  try {
    const { status, text } = await requestOf(`${base}/readyz`, { method: 'GET', headers: {}, ca, withinMs: ANSWER_MS })
    const { addresses = none } = JSON.parse(text) as { readonly addresses?: Readonly<Record<string, string>> }
    if (status === 200)
      return { findings: [well('server', `${base} is ready`), well('database', 'it responds')], addresses }
    const next = 'see the log of the server, and look for `database`'
    return {
      findings: [
        toDo(
          'database',
          `${base} responds but is not ready: it is starting, stopping, or cannot reach its database or write to it`,
          next,
        ),
      ],
      addresses,
    }
  } catch (error) {
    const why = errorCode(error) ?? String(error)
    const next = 'start it with `postern serve`, or give its settings file with --config'
    return { findings: [toDo('server', `${base} does not respond: ${why}`, next)], addresses: none }
  }
}

/** What only the API knows. */
async function checkStored(
  base: string,
  { terminal, apiKey, ca }: { terminal: Terminal; apiKey: string | undefined; ca: string | undefined },
): Promise<Finding[]> {
  try {
    const call = apiCaller({ apiUrl: base, apiKey, ca }, terminal)
    const certificates = await listAll(call, { path: '/tls_certificates', listKey: 'tls_certificates' })
    const domains = await listAll(call, { path: '/reserved_domains', listKey: 'reserved_domains' })
    const ingresses = await listAll(call, { path: '/agent_ingresses', listKey: 'ingresses' })
    const stored = [expiryFinding(certificates, Date.now()), ...keyFindings(certificates)]
    return [...stored, ...orderFindings([...domains, ...ingresses])]
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return [unknown('certificates', error.message)]
  }
}

async function checkMetrics(base: string): Promise<Finding[]> {
  try {
    const { text } = await requestOf(`${base}/metrics`, { method: 'GET', headers: {}, withinMs: ANSWER_MS })
    return [...metricFindings(text), ...trafficFindings(text)]
  } catch {
    return [unknown('metrics', `${base}/metrics does not respond`)]
  }
}

/** The text of a file that need not be there. */
function own(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function textOf({ host, port }: Settings['apiListen']): string {
  return reachable(`${host.includes(':') ? `[${host}]` : host}:${port}`)
}

function lineOf({ check, state, about, next }: Finding): string {
  const mark = { well: 'ok', 'to do': 'TO DO', unknown: '?' }[state]
  return printable(
    `${mark.padEnd(6)} ${check}: ${about}${next === '' ? '' : `. ${next[0]?.toUpperCase()}${next.slice(1)}`}`,
  )
}
