import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { freeTcpPort } from '../../../test/support/free-port.ts'
import { until } from '../../../test/support/until.ts'
import type { OwnNode } from '../config/own-node.ts'
import { anywhere, ask, askAll, isAlive, script, supervised } from './testing/test-supervised.ts'

/** Freezes a process until it is continued. */
function freeze(t: TestContext, pid = 0) {
  const goOn = (): void => void (isAlive(pid) && process.kill(pid, 'SIGCONT'))
  process.kill(pid, 'SIGSTOP')
  t.after(goOn)
  return { goOn }
}

test('all processes serve, connections reach every worker, and workers know no secret', async (t) => {
  const { server, api, settings } = await supervised(t)
  await askAll(server.addresses.https, ['w1', 'w2'])
  await askAll(server.addresses.agents, ['w1', 'w2'])
  assert.deepEqual([server.sshHostKey, server.firstStart?.userId], ['SHA256:host', 'usr_1'])
  const { workers, databaseUrl } = await api()
  const { agents, ssh, https, http, cluster } = server.addresses
  assert.deepEqual(workers, { agents, ssh, https, http, cluster })
  assert.equal(databaseUrl, settings.databaseUrl)
  assert.doesNotMatch(await ask(server.addresses.http, 'settings'), /hunter2/)
})

test('reloaded settings reach the children, and their log lines arrive whole', async (t) => {
  const { server, settings, api, printed } = await supervised(t)
  assert.deepEqual(await server.use({ ...settings, region: 'eu-9' }), [])
  assert.equal((await api()).region, 'eu-9')
  await askAll(server.addresses.http, ['w1 eu-9', 'w2 eu-9'], 'region')
  for (let i = 0; i < 20; i++) await ask(server.addresses.http, 'log')
  await until('twenty lines', () => printed.log.match(/asked to/g)?.length === 20)
  for (const line of printed.log.trimEnd().split('\n')) JSON.parse(line)
})

test('settings are in use when every process has confirmed them, however late', async (t) => {
  const using: string[] = []
  const heard = (role: string, { type }: { readonly type: string }) => void (type === 'using' && using.push(role))
  const { server, settings, pids } = await supervised(t, {}, { heard })
  const frozen = freeze(t, pids.worker[1])
  let isOver = false
  const over = server.use({ ...settings, region: 'eu-9' }).finally(() => {
    isOver = true
  })
  await until('the others have answered', () => using.length === 2)
  await new Promise(setImmediate)
  assert.equal(isOver, false)
  frozen.goOn()
  assert.deepEqual(await over, [])
  for (let i = 0; i < 20; i++) assert.match(await ask(server.addresses.http, 'region'), /^w[12] eu-9$/)
})

test('a process that does not answer is named, and uses the settings when it goes on', async (t) => {
  const { server, settings, pids, printed } = await supervised(t, { workers: '1' }, { answerMs: 500 })
  const frozen = freeze(t, pids.worker[0])
  const late = await server.use({ ...settings, region: 'eu-9' })
  assert.equal(late.at(-1), 'w1')
  frozen.goOn()
  await until('it says so', () => /"process":"worker","id":"w1","msg":"process uses the reloaded/.test(printed.log))
  assert.equal(await ask(server.addresses.http, 'region'), 'w1 eu-9')
})

test('a process that ends before it answers is not waited for, and is replaced with the new settings', async (t) => {
  const { server, settings, pids } = await supervised(t, { workers: '1' })
  freeze(t, pids.worker[0])
  const over = server.use({ ...settings, region: 'eu-9' })
  process.kill(pids.worker[0] ?? 0, 'SIGKILL')
  assert.deepEqual(await over, [])
  assert.equal(await ask(server.addresses.http, 'region'), 'w2 eu-9')
})

test('a process that is starting is waited for, or begins with the new settings', async (t) => {
  const { server, settings, pids } = await supervised(t, { workers: '1' })
  process.kill(pids.worker[0] ?? 0, 'SIGKILL')
  await until('another is launched', () => pids.worker.length === 2)
  // At any moment of the start.
  for (const region of ['eu-1', 'eu-2', 'eu-3']) assert.deepEqual(await server.use({ ...settings, region }), [])
  assert.equal(await ask(server.addresses.http, 'region'), 'w2 eu-3')
})

test('a process that cannot use the settings is named, and goes on', async (t) => {
  const { server, settings, pids } = await supervised(t)
  await assert.rejects(server.use({ ...settings, region: 'refused' }), { message: /^w[12]: no such region; w[12]: no/ })
  await askAll(server.addresses.http, ['w1 local', 'w2 local'], 'region')
  assert.equal(pids.worker.length, 2)
})

test('processes of a version that does not answer get the settings, and are not waited for', async (t) => {
  const { server, settings } = await supervised(t, { workers: '1' }, { isOlder: true })
  assert.deepEqual(await server.use({ ...settings, region: 'eu-9' }), [])
  await askAll(server.addresses.http, ['w1 eu-9'], 'region')
})

test('a worker that ends is replaced in its slot; no visitor is refused, since the other serves meanwhile', async (t) => {
  const { server, api, pids, printed } = await supervised(t)
  const { https } = server.addresses
  await askAll(https, ['w1', 'w2'])
  await ask(https, 'crash')
  for (let i = 0; i < 50; i++) assert.match(await ask(https), /^w\d$/)
  await until('another is ready', () => /"id":"w3".*process is ready/.test(printed.log))
  const left = pids.worker[0] && isAlive(pids.worker[0]) ? 'w1' : 'w2'
  await askAll(https, [left, 'w3'])
  const { restarts } = await api()
  assert.deepEqual(restarts, { control: 0, worker: 1 })
  assert.match(printed.log, /"process":"worker","id":"w[12]","slot":[01],"code":3,"signal":null/)
})

test('a worker that is replaced by another version is logged', async (t) => {
  const { server, printed, code, pids } = await supervised(t, { workers: '1' })
  code.version = '2'
  process.kill(pids.worker[0] ?? 0, 'SIGKILL')
  await until('another is ready', () => /process is ready/.test(printed.log))
  assert.match(printed.log, /"process":"worker","id":"w2","version":"2","others":"1","msg":"installed version differs/)
  assert.equal(server.version(), '1')
})

test('visitors of the only worker wait for its replacement', async (t) => {
  const { server, pids } = await supervised(t, { workers: '1' })
  process.kill(pids.worker[0] ?? 0, 'SIGKILL')
  await until('it is gone', () => !isAlive(pids.worker[0] ?? 0))
  assert.deepEqual(
    await Promise.all(Array.from({ length: 20 }, () => ask(server.addresses.https))),
    Array(20).fill('w2'),
  )
})

test('the control process may end and come back at the same address; workers are told where', async (t) => {
  const { server, api, pids } = await supervised(t)
  const before = await ask(server.addresses.http, 'control')
  await api('/crash').catch(() => {})
  await until('another answers', async () => (await api()).pid === pids.control[1])
  assert.match(await ask(server.addresses.http), /^w[12]$/)
  await until('workers know', async () => (await ask(server.addresses.http, 'control')) !== before)
  assert.deepEqual((await api()).restarts, { control: 1, worker: 0 })
  assert.equal(existsSync(before), false)
})

test('all processes form one node, which stays the same when they are replaced', async (t) => {
  const { server, api, pids } = await supervised(t)
  const { cluster = '', agents } = server.addresses
  await askAll(cluster, ['w1', 'w2'])
  const { node } = (await api()) as { node: OwnNode }
  assert.match(node.nodeId, /^nd_[0-9A-Za-z]{27}$/)
  // The system chose both ports before anything listened.
  assert.deepEqual([node.clusterAddress, node.agentAddress], [cluster, agents])
  assert.equal(await ask(agents, 'node'), node.nodeId)
  await api('/crash').catch(() => {})
  await until('another answers', async () => (await api()).pid === pids.control[1])
  assert.deepEqual((await api()).node, node)
  process.kill(pids.worker[0] ?? 0, 'SIGKILL')
  await until('it is gone', () => !isAlive(pids.worker[0] ?? 0))
  await askAll(cluster, ['w2', 'w3'])
  await askAll(cluster, [node.nodeId], 'node')
})

test('a node on its own opens no socket for others', async (t) => {
  const { server, api } = await supervised(t, { 'cluster-listen': 'off' })
  assert.equal(server.addresses.cluster, undefined)
  const { node } = (await api()) as { node: OwnNode }
  assert.deepEqual([node.clusterAddress, node.agentAddress], [null, null])
})

test('ports of TCP edges open in every worker, outlive a worker, and report when they are taken', async (t) => {
  const port = await freeTcpPort()
  // Every worker opens it before it is ready, including a replacement.
  const { server, printed } = await supervised(t, { region: `port-${port}` })
  const { http } = server.addresses
  const address = `127.0.0.1:${port}`
  await askAll(address, ['w1', 'w2'])
  await ask(address, 'crash')
  for (let i = 0; i < 20; i++) assert.match(await ask(address), /^w\d$/)
  await until('another is ready', () => /process is ready/.test(printed.log))
  for (let i = 0; i < 20; i++) assert.match(await ask(address), /^w\d$/)
  const taken = createServer().listen(0, '127.0.0.1')
  t.after(() => taken.close())
  await until('it listens', () => taken.listening)
  const { port: other } = taken.address() as { port: number } // as it listens on a port
  assert.equal(await ask(http, `open ${other}`), 'error EADDRINUSE')
})

test('a stop drains the workers, then ends the control process, and leaves nothing behind', async (t) => {
  const { server, pids, printed } = await supervised(t, {}, { keep: true })
  const folder = (await ask(server.addresses.http, 'control')).replace(/\/[^/]*$/, '')
  assert.ok(readdirSync(folder).length > 0)
  await server.stop()
  assert.deepEqual(printed.out.split('\n').toSorted(), [
    '',
    'control stopped',
    'control stopping',
    'worker stopped',
    'worker stopped',
  ])
  assert.match(printed.out, /control stopped\n$/)
  assert.equal(await ask(server.addresses.https), 'ECONNREFUSED')
  assert.equal(existsSync(folder), false)
  for (const pid of [...pids.control, ...pids.worker]) assert.equal(isAlive(pid), false)
  assert.doesNotMatch(printed.log, /"level":"(warn|error)"/)
})

test('a stop goes on serving for its delay', async (t) => {
  const { server, printed } = await supervised(t, { 'stop-delay': '5s' }, { keep: true })
  const stopped = server.stop()
  await until('the control process knows', () => printed.out === 'control stopping\n')
  await askAll(server.addresses.http, ['w1', 'w2'])
  assert.equal(printed.out, 'control stopping\n')
  await stopped
  assert.equal(await ask(server.addresses.http), 'ECONNREFUSED')
})

for (const role of ['control', 'worker']) {
  test(`a ${role} whose first start fails ends all processes, with its reason`, async (t) => {
    const failed = supervised(t, { region: `broken-${role}` }, { keep: true })
    await assert.rejects(failed, { name: 'StartFailure', message: `Error: ${role} is broken` })
  })
}

test('children end when their supervisor is killed, and remove its folder', async (t) => {
  const code = `
    const { startSupervisor } = await import(${JSON.stringify(new URL('supervisor.ts', import.meta.url).href)})
    const { launcher } = await import(${JSON.stringify(new URL('launch.ts', import.meta.url).href)})
    const { readSettings } = await import(${JSON.stringify(new URL('../config/read-settings.ts', import.meta.url).href)})
    const { createLog } = await import(${JSON.stringify(new URL('../../lib/log/create-log.ts', import.meta.url).href)})
    const settings = readSettings({ flags: ${JSON.stringify({ ...anywhere, workers: '2' })}, env: {}, cwd: '/' })
    const launch = launcher({ args: (role) => [${JSON.stringify(script)}, role], env: process.env, out() {}, err() {} })
    const pids = []
    const server = await startSupervisor(settings, {
      log: createLog({ level: 'silent' }),
      handed: { named: new Map(), tcp: new Map() },
      launch: (...given) => {
        const child = launch(...given)
        pids.push(child.pid)
        return child
      },
    })
    console.log(JSON.stringify({ pids, http: server.addresses.http }))`
  const supervisor = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => supervisor.kill('SIGKILL'))
  const [reported] = await once(createInterface(supervisor.stdout), 'line')
  const { pids, http } = JSON.parse(String(reported)) as { pids: number[]; http: string }
  const folder = (await ask(http, 'control')).replace(/\/[^/]*$/, '')
  assert.ok(existsSync(folder))
  supervisor.kill('SIGKILL')
  await until('all are gone', () => !pids.some(isAlive))
  assert.equal(existsSync(folder), false)
})

test('an address that is taken fails the start with the error of the system', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1')
  t.after(() => taken.close())
  await until('it listens', () => taken.listening)
  const { port } = taken.address() as { port: number } // as it listens on a port
  for (const name of ['api', 'https']) {
    const failed = supervised(t, { [`${name}-listen`]: `127.0.0.1:${port}` }, { keep: true })
    await assert.rejects(failed, { message: /EADDRINUSE/ })
  }
})
