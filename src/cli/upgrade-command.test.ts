import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { createLog } from '../lib/log/create-log.ts'
import type { UpgradeStep } from '../server/supervisor/upgrade-server.ts'
import type { UpgradeOutcome } from './live-changes.ts'
import { run } from './program.ts'
import { testTerminal } from './testing/test-terminal.ts'
import { type OrdersOptions, takeOrders, upgradeSocketPath } from './upgrade-socket.ts'

const log = createLog({ level: 'silent' })
const upgraded: UpgradeOutcome = { type: 'upgraded', from: '1.0.0', to: '1.1.0' }

function folder(t: TestContext): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'postern-orders-'))
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  return dataDir
}

/** A server that takes orders in a folder of its own. */
async function serving(t: TestContext, upgrade: OrdersOptions['upgrade'], dataDir = folder(t)) {
  t.after(await takeOrders({ dataDir, upgrade, log }))
  return dataDir
}

async function upgradeAt(dataDir: string) {
  const terminal = testTerminal()
  const code = await run(['upgrade', '--data-dir', dataDir], terminal)
  return { code, ...terminal.printed }
}

const outcomes: readonly [what: string, outcome: UpgradeOutcome, code: number, says: RegExp][] = [
  ['another version', upgraded, 0, /^Upgraded from 1\.0\.0 to 1\.1\.0\. The old processes finish what is open\.\n$/],
  ['the same version', { ...upgraded, to: '1.0.0' }, 0, /^Restarted version 1\.0\.0\./],
  ['settings of one process', { type: 'reloaded', needsRestart: [] }, 0, /^Settings were reloaded\. .* its code\.\n$/],
  ['settings that wait', { type: 'reloaded', needsRestart: ['region', 'workers'] }, 0, /: region, workers\.\n$/],
  [
    'a failure',
    { type: 'failed', reason: 'no\x07 such module' },
    1,
    /^error: nothing has changed: no.* such module\n$/,
  ],
]
for (const [what, outcome, code, says] of outcomes) {
  test(`prints the outcome: ${what}`, async (t) => {
    const answer = await upgradeAt(await serving(t, async () => outcome))
    assert.equal(answer.code, code)
    assert.match(code === 0 ? answer.out : answer.err, says)
    assert.ok(!answer.err.includes('\x07'))
  })
}

test('shows each step as it begins', async (t) => {
  const step = Promise.withResolvers<(step: UpgradeStep) => void>()
  const done = Promise.withResolvers<UpgradeOutcome>()
  const dataDir = await serving(t, (onStep) => {
    step.resolve(onStep)
    return done.promise
  })
  const answer = upgradeAt(dataDir)
  for (const each of ['starting', 'control', 'workers', 'back'] as const) (await step.promise)(each)
  done.resolve(upgraded)
  const { err } = await answer
  assert.deepEqual(err.split('\n').slice(0, -1), [
    'Starting new processes beside the running ones.',
    'Handing over the database.',
    'Preparing the new workers.',
    'Going back to the old processes.',
  ])
})

test('without a server it says where it looked', async (t) => {
  const dataDir = folder(t)
  const { code, err } = await upgradeAt(dataDir)
  assert.equal(code, 1)
  assert.match(
    err,
    /^error: no server is listening at .*upgrade\.sock; give the data folder of the running server with --data-dir/,
  )
})

test('a server that ends meanwhile is a failure', async (t) => {
  const dataDir = folder(t)
  const server = createServer((socket) => socket.destroy()).listen(upgradeSocketPath(dataDir))
  t.after(() => server.close())
  const { code, err } = await upgradeAt(dataDir)
  assert.equal(code, 1)
  assert.match(err, /the server ended before the upgrade was done/)
})

test('an upgrade goes on when the command that requested it is gone', async (t) => {
  const begun = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  const steps: string[] = []
  const dataDir = await serving(t, async (onStep) => {
    begun.resolve()
    await go.promise
    onStep('workers')
    steps.push('done')
    return upgraded
  })
  const socket = connect(upgradeSocketPath(dataDir))
  socket.write('upgrade\n')
  await begun.promise
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.destroy()
  await closed
  go.resolve()
  await new Promise(setImmediate)
  assert.deepEqual(steps, ['done'])
})

test('only one user may use the socket, which is removed with the server', async (t) => {
  const dataDir = folder(t)
  const end = await takeOrders({ dataDir, upgrade: async () => upgraded, log })
  assert.equal(statSync(upgradeSocketPath(dataDir)).mode & 0o777, 0o600)
  end()
  assert.ok(!existsSync(upgradeSocketPath(dataDir)))
})

test('replaces the socket of a killed server, but not that of a running one', async (t) => {
  const dataDir = folder(t)
  // A socket that was left behind: closing it would remove the file.
  const { promise: listening, resolve } = Promise.withResolvers<void>()
  const { spawn } = await import('node:child_process')
  const code = `require('net').createServer().listen(${JSON.stringify(upgradeSocketPath(dataDir))}, () => console.log('up'))`
  const killed = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
  killed.stdout.once('data', () => resolve())
  await listening
  const ended = new Promise((done) => killed.once('exit', done))
  killed.kill('SIGKILL')
  await ended
  assert.ok(existsSync(upgradeSocketPath(dataDir)))
  await serving(t, async () => ({ ...upgraded, to: 'the first' }), dataDir)
  await serving(t, async () => ({ ...upgraded, to: 'the second' }), dataDir)
  assert.match((await upgradeAt(dataDir)).out, /the first/)
})

test('a folder whose path is too long for a socket does not prevent the start of the server', async (t) => {
  const lines: string[] = []
  const noting = createLog({ level: 'warn', destination: { write: (line) => void lines.push(line) } })
  const end = await takeOrders({
    dataDir: join(folder(t), 'd'.repeat(120)),
    upgrade: async () => upgraded,
    log: noting,
  })
  end()
  assert.match(lines.join(''), /send SIGUSR2 instead/)
})

for (const [what, order] of [
  ['an unknown order', 'dance\n'],
  ['an order without an end', 'u'.repeat(5000)],
] as const) {
  test(`${what} starts no upgrade`, async (t) => {
    let upgrades = 0
    const dataDir = await serving(t, async () => {
      upgrades++
      return upgraded
    })
    const socket = connect(upgradeSocketPath(dataDir))
    socket.on('error', () => {})
    socket.write(order)
    const answer = await text(socket).catch(() => '')
    assert.ok(answer === '' || JSON.parse(answer).type === 'failed', answer)
    assert.equal(upgrades, 0)
  })
}
