/** A hostile member, a hostile agent and a hostile stranger at once: none of it may refuse or slow what others do. */
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { makeSshHostKey } from '../../src/lib/ssh-keys/ssh-host-key.ts'
import { CLIENT_ID, realProvider } from '../interop/oidc/provider.ts'
import { realIdp } from '../interop/saml/provider.ts'
import { ApiClient } from '../support/api-client.ts'
import { httpUpstream, type Owner, tcpUpstream } from '../support/upstream.ts'
import { residentMib } from './children.ts'
import { collectedMemory, MEMORY_FOLDER } from './collected-memory.ts'
import { type NeighbourOptions, type Role, startNeighbour } from './hostile-neighbours.ts'
import { pinned, threeParts } from './pinned.ts'
import type { KindReport, Places, VisitorsReport } from './visitors.ts'
import { startVisitors } from './visitors-process.ts'
import { portOf, startWorld, type World } from './world.ts'

export interface NeighboursOptions {
  readonly workers: number
  /** SQLite if omitted. */
  readonly databaseUrl?: string
  /** The length of the attack. */
  readonly seconds: number
  /** How many times longer bystanders may take. */
  readonly times: number
  /** Gives the server, the bystanders and the attackers cores of their own. */
  readonly isPinned: boolean
  readonly progress: (line: string) => void
}

export interface NeighboursReport {
  readonly what: string
  readonly quiet: VisitorsReport
  readonly hostile: VisitorsReport
  /** Of each process of the server, in MiB: before and after once garbage is collected, and the most meanwhile. */
  readonly memory: Readonly<Record<string, readonly [before: number, most: number, after: number]>>
  /** What the attackers did, by how it ended. */
  readonly attacks: Readonly<Record<Role, Readonly<Record<string, number>>>>
  readonly faults: readonly string[]
}

const REQUESTS_PER_SECOND = 40

/** The quiet part, and how long memory may take to come back, in seconds. */
const QUIET_SECONDS = 60
const REST_SECONDS = 60

/**
 * How long the server warms up before anything is measured, in milliseconds: under bystanders alone, under a rehearsal of the attack,
 * so that memory is compared with that of a server that has seen all of it, and until that is over.
 */
const WARM_MS = 10_000
const REHEARSAL_MS = 30_000
const OVER_MS = 10_000

/** A kind may take this long in any case, in milliseconds. */
const ALLOWED_MS = 250

/** How much more memory than before may be in use after. */
const MORE_MEMORY = 1.15

const roles: readonly Role[] = ['member', 'agent', 'stranger']

export async function neighbours(owner: Owner, options: NeighboursOptions): Promise<NeighboursReport> {
  const { workers, databaseUrl, seconds, times, isPinned, progress } = options
  const [forServer, forBystanders, forAttackers] = isPinned ? threeParts(cpus().length) : []
  const folder = mkdtempSync(join(tmpdir(), 'chaos-memory-'))
  owner.after(() => rmSync(folder, { recursive: true, force: true }))
  const world = await startWorld(owner, {
    ...{ workers, drainMs: 1000, hasOfficial: false },
    env: { [MEMORY_FOLDER]: folder },
    nodeFlags: ['--expose-gc', '--import', new URL('collected-memory.ts', import.meta.url).href],
    ...(databaseUrl !== undefined && { databaseUrl }),
    flags: { 'outbound-allow': '127.0.0.1/32' },
  })
  const { control, workers: workerPids } = await world.children()
  const processes = { control, ...Object.fromEntries(workerPids.map((pid, i) => [`worker ${i + 1}`, pid])) }
  if (forServer !== undefined) for (const pid of [world.supervisor, ...Object.values(processes)]) pinned(pid, forServer)
  const { places, victim } = await bystanders(owner, world)
  const visitors = startVisitors(owner, { places, requestsPerSecond: REQUESTS_PER_SECOND })
  if (forBystanders !== undefined) pinned(visitors.pid, forBystanders)
  const attack = () => Promise.all(roles.map((role) => startNeighbour(owner, { ...victim, role }, forAttackers)))
  const end = (attackers: Awaited<ReturnType<typeof attack>>) => Promise.all(attackers.map((each) => each.stop()))
  await pause(WARM_MS)
  progress('a rehearsal of the attack')
  const rehearsing = await attack()
  await pause(REHEARSAL_MS)
  await end(rehearsing)
  await pause(OVER_MS)
  await visitors.report()
  progress(`quiet for ${QUIET_SECONDS} s, with ${workers} workers`)
  await pause(QUIET_SECONDS * 1000)
  const quiet = await visitors.report()
  const collected = (round: string) => collectedMemory(folder, round, Object.values(processes))
  const before = await collected('0')
  const most = [...before]
  const look = (): void => {
    for (const [i, pid] of Object.values(processes).entries()) most[i] = Math.max(residentMib(pid), most[i] ?? 0)
  }
  const watching = setInterval(look, 1000)
  owner.after(() => clearInterval(watching))
  const attackers = await attack()
  progress(`hostile for ${seconds} s`)
  await pause(seconds * 1000)
  const hostile = await visitors.report()
  const attacks = await end(attackers)
  progress(`over; ${REST_SECONDS} s until memory is measured`)
  await pause(REST_SECONDS * 1000)
  const rest = await visitors.stop()
  clearInterval(watching)
  const after = await collected('1')
  const memory = Object.fromEntries(
    Object.keys(processes).map((name, i) => [name, [before[i] ?? 0, most[i] ?? 0, after[i] ?? 0] as const]),
  )
  const faults = [
    ...failures('quiet', quiet),
    ...failures('hostile', hostile),
    ...failures('afterwards', rest),
    ...slower(quiet, hostile, times),
    ...Object.entries(memory).flatMap(([name, [was, , is]]) =>
      is > was * MORE_MEMORY ? [`memory of ${name}: ${was.toFixed(0)} MiB before, ${is.toFixed(0)} after`] : [],
    ),
  ]
  const what = `${workers} workers, ${databaseUrl === undefined ? 'SQLite' : 'PostgreSQL'}, ${isPinned ? 'cores apart' : 'shared cores'} of ${cpus().length}, ${seconds} s`
  const [member = {}, agent = {}, stranger = {}] = attacks
  return { what, quiet, hostile, memory, attacks: { member, agent, stranger }, faults }
}

/** Sets up what bystanders use, and what attackers may know of. */
async function bystanders(
  owner: Owner,
  { server, api, ca, places }: World,
): Promise<{ places: Places; victim: Omit<NeighbourOptions, 'role'> }> {
  const httpsPort = portOf(server.https)
  const web = await httpUpstream(owner, (_, response) => response.end('served'))
  const echo = await tcpUpstream(owner)
  const at = (name: string): string => `https://${name}:${httpsPort}`
  const toWeb = await api.create('/backends/static', { address: web.address })
  const toEcho = await api.create('/backends/static', { address: echo.address })
  const edgeAt = async (name: string, modules: object) => {
    const { id } = await api.create('/edges/https', { hostports: [`${name}:${httpsPort}`] })
    const backend = { backend_id: toWeb.id }
    const route = { match_type: 'path_prefix', match: '/', backend, ...modules }
    return { id: String(id), routeId: String((await api.create(`/edges/https/${id}/routes`, route)).id), name }
  }
  await api.create('/edges/tls', {
    ...{ hostports: [`tls.chaos.localhost:${httpsPort}`], backend: { backend_id: toEcho.id } },
    tls_termination: { terminate_at: 'edge' },
  })
  const login = 'login.chaos.localhost'
  const provider = await realProvider(owner, [`${at(login)}/oauth2/callback`])
  await edgeAt(login, {
    oidc: { issuer: provider.issuer, client_id: CLIENT_ID, client_secret: provider.clientSecret, scopes: ['email'] },
  })
  const { idp } = await realIdp(owner)
  const saml = await edgeAt('saml.chaos.localhost', { saml: { idp_metadata: idp.metadata } })
  // The hostile member's own; others may not know that it is one.
  const own = await edgeAt('hostile.chaos.localhost', {})

  const [bystander, hostile] = [await botOf(api, server.url, 'bystander'), await botOf(api, server.url, 'hostile')]
  const sshKey = makeSshHostKey()
  await bystander.api.create('/ssh_credentials', { public_key: sshKey.publicLine })
  return {
    places: {
      ...places,
      api: { url: server.url, key: bystander.key },
      tlsEdge: `https://tls.chaos.localhost:${httpsPort}`,
      login: `${at(login)}/`,
      bind: { server: server.agents, ca, authtoken: bystander.authtoken },
      ssh: { port: portOf(server.ssh), privateKey: sshKey.privateText },
    },
    victim: {
      api: { url: server.url, key: hostile.key },
      ca,
      agents: server.agents,
      authtoken: hostile.authtoken,
      httpsPort,
      httpPort: portOf(server.http),
      sshPort: portOf(server.ssh),
      own,
      loginName: login,
      samlUrl: `${at(saml.name)}/postern/saml/${saml.routeId}/logout`,
    },
  }
}

/** A member with a key and a credential of its own. */
async function botOf(admin: ApiClient, url: string, name: string) {
  const { id } = await admin.create('/bot_users', { name })
  const { token } = await admin.create('/api_keys', { owner_id: id })
  const api = new ApiClient(url, String(token))
  const credential = await api.create('/credentials', {})
  return { api, key: String(token), authtoken: String(credential.token) }
}

function failures(phase: string, { failed, closed }: VisitorsReport): string[] {
  const reasons = Map.groupBy(failed, ({ kind, why }) => `${phase}: ${kind}: ${why}`)
  return [
    ...[...reasons].map(([text, all]) => `${text} (${all.length} times)`),
    ...closed.map(({ kind }) => `${phase}: ${kind}: closed while idle`),
  ]
}

function slower(quiet: VisitorsReport, hostile: VisitorsReport, times: number): string[] {
  return Object.entries(hostile.kinds).flatMap(([kind, { p99 }]) => {
    const was: KindReport | undefined = quiet.kinds[kind]
    const most = Math.max(ALLOWED_MS, times * (was?.p99 ?? 0))
    return p99 > most ? [`${kind}: p99 ${p99.toFixed(0)} ms, over ${most.toFixed(0)} ms`] : []
  })
}
