/** For tests: a supervisor with children that serve next to nothing. */
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createLog, lineWriter } from '../../../lib/log/create-log.ts'
import { readSettings, type Settings } from '../../config/read-settings.ts'
import { launcher } from '../launch.ts'
import type { ChildRole, FromChild } from '../process-messages.ts'
import { type SupervisorOptions, startSupervisor } from '../supervisor.ts'

export const script = fileURLToPath(new URL('test-child.ts', import.meta.url))
/** Listeners at free ports. */
export const anywhere = Object.fromEntries(
  ['api', 'metrics', 'agent', 'ssh', 'https', 'http'].map((name) => [`${name}-listen`, '127.0.0.1:0']),
)

/** How long an answer to `use` may take, in milliseconds: longer than on any busy machine. */
const ANSWER_MS = 60_000

/** A server with the children of test-child.ts; `code.script` is the script that new children run. */
export async function supervised(
  t: TestContext,
  flags: Record<string, string> = {},
  given: {
    readonly keep?: boolean
    readonly handed?: SupervisorOptions['handed']
    /** Called with each message of a child before the supervisor gets it. */
    readonly heard?: (role: ChildRole, message: FromChild) => void
    /** How long to wait for an answer to `use`. */
    readonly answerMs?: number
    /** Whether children are of a version that does not answer `use`. */
    readonly isOlder?: boolean
  } = {},
) {
  const printed = { out: '', log: '' }
  const code = { script, version: '1' }
  const settingsWith = (more: Record<string, string>): Settings =>
    readSettings({
      flags: {
        ...anywhere,
        'cluster-listen': '127.0.0.1:0',
        'tcp-listen': '127.0.0.1',
        workers: '2',
        ...flags,
        ...more,
      },
      env: { POSTERN_DATABASE_URL: 'postgres://u:hunter2@h/db' },
      cwd: '/srv',
    })
  const settings = settingsWith({})
  const log = createLog({ format: 'json', destination: { write: (line) => (printed.log += line) } })
  const pids = { control: [] as number[], worker: [] as number[] }
  const launch = launcher({
    args: (role) => [code.script, role, code.version],
    env: { ...process.env, POSTERN_SECRET: 'hunter2' },
    out: (lines) => {
      printed.out += lines
    },
    err: lineWriter(log),
  })
  const server = await startSupervisor(settings, {
    log,
    handed: given.handed ?? { named: new Map(), tcp: new Map() },
    answerMs: given.answerMs ?? ANSWER_MS,
    launch: (role, events) => {
      const child = launch(role, {
        ...events,
        message: (message) => {
          given.heard?.(role, message)
          const said = given.isOlder ? asOlder(message) : message
          if (said) events.message(said)
        },
      })
      if (child.pid !== undefined) pids[role].push(child.pid)
      return child
    },
  })
  if (!given.keep) t.after(() => server.stop())
  const api = async (path = '/') =>
    (await fetch(`http://${server.addresses.api}${path}`)).json() as Promise<Record<string, unknown>>
  return { server, settings, settingsWith, code, printed, pids, api }
}

/** The message of a child that does not know `using`. */
function asOlder(message: FromChild): FromChild | undefined {
  if (message.type === 'using') return undefined
  if (message.type !== 'loaded') return message
  const { answersUse: _, ...known } = message
  return known
}

/** The answer of the worker that gets the connection. */
export async function ask(address: string, said = 'who'): Promise<string> {
  const [host = '', port = ''] = address.split(':')
  const socket = connect(Number(port), host)
  socket.write(said)
  return text(socket).catch((error: NodeJS.ErrnoException) => error.code ?? '')
}

/** Most questions. */
const MAX_ASKED = 10_000

/** Asks until every one of `ids` has answered. */
export async function askAll(address: string, ids: readonly string[], said?: string): Promise<void> {
  const missing = new Set(ids)
  for (let asked = 0; asked < MAX_ASKED; asked++) {
    missing.delete(await ask(address, said))
    if (missing.size === 0) return
  }
  throw new Error(`${[...missing].join(' and ')} did not answer at ${address}`)
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
