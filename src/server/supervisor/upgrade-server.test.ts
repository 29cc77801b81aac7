import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { freeTcpPort } from '../../../test/support/free-port.ts'
import { until } from '../../../test/support/until.ts'
import { bindSocket } from './socket-handle.ts'
import { ask, askAll, isAlive, supervised } from './testing/test-supervised.ts'

const ignore = (): void => {}

const BETWEEN_VISITS_MS = 5

/** Visitors who come one after the other until they are stopped; returns who answered them. */
function visitors(address: string) {
  const seen = new Map<string, number>()
  let isOver = false
  const done = (async () => {
    while (!isOver) {
      const answer = await ask(address)
      seen.set(answer, (seen.get(answer) ?? 0) + 1)
      await new Promise((resolve) => setTimeout(resolve, BETWEEN_VISITS_MS))
    }
  })()
  return {
    seen,
    async stop() {
      isOver = true
      await done
      return [...seen.keys()]
    },
  }
}

/** Stops the visitors, and checks that only workers have answered. */
async function onlyWorkers(crowd: ReturnType<typeof visitors>): Promise<void> {
  assert.deepEqual(
    (await crowd.stop()).filter((answer) => !/^w\d+$/.test(answer)),
    [],
  )
}

test('the new processes take over, with no visitor refused, and the version is reported', async (t) => {
  const { server, settingsWith, code, api, printed, pids } = await supervised(t)
  const crowd = visitors(server.addresses.https)
  const { node } = await api()
  code.version = '2'
  const steps: string[] = []
  const upgraded = await server.upgrade(settingsWith({ region: 'new' }), (step) => steps.push(step))
  assert.deepEqual(upgraded, { from: '1', to: '2', ids: ['c2', 'w3', 'w4'] })
  assert.deepEqual(steps, ['starting', 'control', 'workers'])
  assert.equal(server.version(), '2')
  const { pid, region, node: after } = await api()
  assert.deepEqual([pid, region], [pids.control[1], 'new'])
  assert.deepEqual(after, node, 'it is the same node')
  await until('the former ones have ended', () => /have ended/.test(printed.log))
  await askAll(server.addresses.https, ['w3', 'w4'])
  await onlyWorkers(crowd)
  // Sockets of processes that ended are not left behind.
  assert.deepEqual(
    readdirSync(server.folder).filter((name) => /^(c1|w1|w2)\./.test(name)),
    [],
  )
})

test('more or fewer workers serve afterwards, and each gets visitors', async (t) => {
  const { server, settingsWith, printed } = await supervised(t)
  const crowd = visitors(server.addresses.https)
  for (const [workers, ids] of [
    ['1', ['w3']],
    ['3', ['w4', 'w5', 'w6']],
  ] as const) {
    const ended = printed.log.split('have ended').length
    await server.upgrade(settingsWith({ workers }), ignore)
    await until('the former ones have ended', () => printed.log.split('have ended').length > ended)
    await askAll(server.addresses.https, ids)
    await askAll(server.addresses.agents, ids)
  }
  await onlyWorkers(crowd)
})

const failures: readonly [what: string, region: string, reason: RegExp, steps: readonly string[]][] = [
  ['a control process that cannot start', 'broken-control', /control is broken/, ['control', 'workers', 'back']],
  ['a worker that cannot start', 'broken-worker', /worker is broken/, ['control', 'workers', 'back']],
  ['a worker that crashes at once', 'crashing-worker', /ended at once \(code 4\)/, ['control', 'workers', 'back']],
]
for (const [what, region, message, steps] of failures) {
  test(`${what} changes nothing`, async (t) => {
    const { server, settingsWith, code, api, pids } = await supervised(t)
    const crowd = visitors(server.addresses.https)
    code.version = '2'
    const seen: string[] = []
    const failed = server.upgrade(settingsWith({ region }), (step) => seen.push(step))
    await assert.rejects(failed, { name: 'UpgradeFailure', message })
    assert.deepEqual(seen, ['starting', ...steps])
    assert.equal(server.version(), '1')
    // The control process that gave up the store has it again.
    assert.equal((await api()).pid, pids.control[0])
    await askAll(server.addresses.https, ['w1', 'w2'])
    await onlyWorkers(crowd)
    // The next upgrade can succeed.
    code.version = '3'
    const { from, to } = await server.upgrade(settingsWith({}), ignore)
    assert.deepEqual([from, to], ['1', '3'])
  })
}

test('code that cannot be loaded changes nothing, and the database is not touched', async (t) => {
  const { server, settingsWith, code, printed, api, pids } = await supervised(t)
  code.script = `${code.script}.gone.ts`
  const steps: string[] = []
  const failed = server.upgrade(settingsWith({}), (step) => steps.push(step))
  await assert.rejects(failed, { message: /Cannot find module/ })
  assert.deepEqual(steps, ['starting', 'back'])
  assert.doesNotMatch(printed.out, /control paused/)
  assert.equal((await api()).pid, pids.control[0])
})

test('one upgrade at a time', async (t) => {
  const { server, settingsWith } = await supervised(t)
  const first = server.upgrade(settingsWith({}), ignore)
  await assert.rejects(server.upgrade(settingsWith({}), ignore), { message: /under way already/ })
  await first
})

test('an upgrade to no workers needs a restart', async (t) => {
  const { server, settingsWith } = await supervised(t)
  await assert.rejects(server.upgrade(settingsWith({ workers: '0' }), ignore), { message: /needs a restart/ })
})

for (const when of ['starting', 'control', 'workers'] as const) {
  test(`a stop during an upgrade (${when}) ends all`, async (t) => {
    const { server, settingsWith, pids } = await supervised(t, {}, { keep: true })
    const stopping = Promise.withResolvers<void>()
    const upgrade = server.upgrade(settingsWith({}), (step) => {
      if (step === when) stopping.resolve(server.stop())
    })
    await assert.rejects(upgrade, { message: /the server is stopping/ })
    await stopping.promise
    await until('all have ended', () => ![...pids.control, ...pids.worker].some(isAlive))
  })
}

test('a stop at the moment when the new processes are ready leaves none behind', async (t) => {
  const stopping = Promise.withResolvers<void>()
  let isUpgrading = false
  const heard = (role: string, { type }: { readonly type: string }): void => {
    if (isUpgrading && role === 'control' && type === 'ready') stopping.resolve(server.stop())
  }
  const { server, settingsWith, pids } = await supervised(t, {}, { keep: true, heard })
  isUpgrading = true
  await assert.rejects(server.upgrade(settingsWith({}), ignore), { message: /the server is stopping/ })
  await stopping.promise
  const started = pids.control.length + pids.worker.length
  // Longer than the first pause before a process is replaced.
  await new Promise((resolve) => setTimeout(resolve, 1500))
  assert.equal(pids.control.length + pids.worker.length, started)
  assert.deepEqual([...pids.control, ...pids.worker].filter(isAlive), [])
})

test('an open connection goes on in the worker that has it', async (t) => {
  const { server, settingsWith, printed } = await supervised(t, { workers: '1' })
  const [host = '', port = ''] = server.addresses.https.split(':')
  const open = connect(Number(port), host)
  await new Promise<void>((resolve) => open.once('connect', resolve))
  // The worker has accepted the connection, but got no request yet.
  assert.equal(await ask(server.addresses.https), 'w1')
  await server.upgrade(settingsWith({ workers: '1' }), ignore)
  assert.equal(await ask(server.addresses.https), 'w2')
  open.write('who')
  assert.equal(await text(open), 'w1')
  await until('the former ones have ended', () => /have ended/.test(printed.log))
})

test('ports of TCP edges are served by the new processes, without a gap', async (t) => {
  const port = await freeTcpPort()
  const { server, settings, printed } = await supervised(t, { workers: '1', region: `port-${port}` })
  const address = `127.0.0.1:${port}`
  assert.equal(await ask(address), 'w1')
  const crowd = visitors(address)
  await server.upgrade(settings, ignore)
  await askAll(address, ['w2'])
  await until('the former ones have ended', () => /have ended/.test(printed.log))
  await onlyWorkers(crowd)
})

test('sockets from a service manager are passed on', async (t) => {
  const https = await bindSocket({ host: '127.0.0.1', port: 0 }, { isSpread: false })
  const handed = { named: new Map([['https' as const, https]]), tcp: new Map() }
  const { server, settingsWith } = await supervised(t, {}, { handed })
  const crowd = visitors(server.addresses.https)
  const before = server.addresses.https
  await server.upgrade(settingsWith({}), ignore)
  await askAll(before, ['w3', 'w4'])
  await onlyWorkers(crowd)
})
