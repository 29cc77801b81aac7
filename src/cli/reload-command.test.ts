import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../lib/log/create-log.ts'
import { readSettings, type Settings } from '../server/config/read-settings.ts'
import { reload } from './reload-command.ts'

const at = (flags: Record<string, string> = {}): Settings =>
  readSettings({ flags: { 'log-level': 'info', ...flags }, env: {}, cwd: '/srv' })

/** A server that runs with `running`, and what it logs. */
function server(running: Settings, apply: (settings: Settings) => Promise<readonly string[]> = async () => []) {
  const lines: Record<string, unknown>[] = []
  const log = createLog({
    level: running.logLevel,
    format: 'json',
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  })
  const logged = () => lines.map(({ level, changed, needs_restart, late }) => ({ level, changed, needs_restart, late }))
  return { log, lines, logged, reload: (next: Settings) => reload({ running, read: () => next, apply, log }) }
}

test('nothing is logged before the new settings are in effect', async () => {
  const applied = Promise.withResolvers<readonly string[]>()
  const { lines, logged, reload } = server(at(), () => applied.promise)
  const over = reload(at({ 'max-connections': '7' }))
  await new Promise(setImmediate)
  assert.equal(lines.length, 0)
  applied.resolve([])
  const { settings, fault, needsRestart } = await over
  assert.deepEqual([settings.maxConnections, fault, needsRestart], [7, undefined, []])
  assert.deepEqual(logged(), [
    { level: 'info', changed: ['max-connections'], needs_restart: undefined, late: undefined },
  ])
  assert.equal(lines[0]?.msg, 'settings reloaded')
})

test('a warning names processes that do not use the settings yet, and settings that need a restart', async () => {
  const { lines, logged, reload } = server(at(), async () => ['w2'])
  await reload(at({ region: 'there', 'max-connections': '7' }))
  assert.deepEqual(logged(), [{ level: 'warn', changed: ['max-connections'], needs_restart: ['region'], late: ['w2'] }])
  assert.match(String(lines[0]?.msg), /^settings were reloaded but some processes do not use them yet/)
})

test('settings that cannot be applied are logged as an error, and not as reloaded', async () => {
  const { lines, reload } = server(at(), () => Promise.reject(new Error('w2: a fault')))
  const { fault } = await reload(at({ 'max-connections': '7' }))
  assert.match(fault ?? '', /not all could be applied/)
  assert.deepEqual(
    lines.map(({ level, msg, err }) => [level, msg, (err as Error).message]),
    [['error', fault, 'w2: a fault']],
  )
})

// Logged at the more verbose of the two levels.
const levels: readonly [from: string, to: string, region: string, said: number][] = [
  ['info', 'error', 'here', 1],
  ['error', 'info', 'here', 1],
  ['warn', 'error', 'here', 0],
  ['warn', 'error', 'there', 1],
  ['error', 'warn', 'there', 1],
  ['error', 'silent', 'there', 0],
]
for (const [from, to, region, said] of levels) {
  const what = region === 'here' ? 'a change' : 'a change that needs a restart'
  test(`from level ${from} to ${to}, ${what} is ${said ? 'logged once' : 'not logged'}`, async () => {
    const { log, lines, reload } = server(at({ 'log-level': from, region: 'here' }))
    await reload(at({ 'log-level': to, region }))
    assert.equal(lines.length, said)
    assert.equal(log.level, to)
  })
}
