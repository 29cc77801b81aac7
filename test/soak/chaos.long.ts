/** `npm run soak`: a running node under faults. Traffic continues, all recovers, and no acknowledged write is lost. */
import assert from 'node:assert/strict'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { limitDescriptors } from '../support/descriptor-limit.ts'
import { metric } from '../support/metrics.ts'
import { createDatabase, dropDatabase } from '../support/postgres.ts'
import { openSilentGate } from '../support/silent-gate.ts'
import { smallDisk } from '../support/small-disk.ts'
import { until } from '../support/until.ts'
import { ChaosWorld } from './chaos-world.ts'

/** How much traffic must continue during a fault. */
const MEANWHILE = { requests: 200, echoes: 100 }

/** Long enough for 8 MiB of log lines, in milliseconds. */
const FILL_MS = 120_000

function skipped(t: TestContext, reason: string): void {
  process.stdout.write(`chaos: ${t.name}: SKIPPED, ${reason}\n`)
  t.skip(reason)
}

test('disk full', async (t) => {
  const disk = smallDisk(t, 16)
  if (typeof disk === 'string') return skipped(t, disk)
  const world = await ChaosWorld.start(t, { dataDir: join(disk.path, 'data') })
  disk.fill()
  await world.flows({ ...MEANWHILE, refused: 5 })
  assert.deepEqual([...world.traffic.refusals], [503])
  disk.free()
  await world.assertWhole()
})

test('log gone: its reader closes', async (t) => {
  const world = await ChaosWorld.start(t)
  world.server.child.stderr?.destroy()
  await world.flows({ ...MEANWHILE, writes: 20 })
  assert.ok((await world.lostLines()) > 0)
  await world.assertWhole()
})

test('log gone: its reader stalls', async (t) => {
  const world = await ChaosWorld.start(t)
  world.server.child.stderr?.pause()
  await until('the log has filled up', async () => (await world.lostLines()) > 0, { limitMs: FILL_MS })
  await world.flows({ ...MEANWHILE, writes: 20 })
  world.server.child.stderr?.resume()
  await world.server.says(/"log lines were lost"/)
  await world.assertWhole()
})

test('log gone: its disk is full', async (t) => {
  const disk = smallDisk(t, 2)
  if (typeof disk === 'string') return skipped(t, disk)
  const log = join(disk.path, 'postern.log')
  const err = openSync(log, 'a')
  const world = await ChaosWorld.start(t, { files: { err } })
  closeSync(err)
  disk.fill()
  await until('lines are lost', async () => (await world.lostLines()) > 0)
  await world.flows({ ...MEANWHILE, writes: 20 })
  disk.free()
  await until('the loss is logged', () => readFileSync(log, 'utf8').includes('"log lines were lost"'))
  const broken = readFileSync(log, 'utf8')
    .trimEnd()
    .split('\n')
    .filter((line) => !isJson(line))
  assert.ok(broken.length <= 1, 'at most the line at which the disk was full is truncated')
  await world.assertWhole()
})

test('database silent', async (t) => {
  const shared = process.env.POSTERN_TEST_POSTGRES_URL ?? ''
  assert.notEqual(shared, '', 'run by `npm run soak`, which starts PostgreSQL')
  const databaseUrl = await createDatabase(shared)
  t.after(() => dropDatabase(shared, databaseUrl))
  const gate = await openSilentGate(t, Number(new URL(databaseUrl).port))
  const through = new URL(databaseUrl)
  through.hostname = '127.0.0.1'
  through.port = String(gate.port)
  const world = await ChaosWorld.start(t, { databaseUrl: through.href })
  gate.silence()
  // D67: 5 s to connect, 10 s a statement, 5 s for a free connection.
  const ready = fetch(`${world.server.url}/readyz`, { signal: AbortSignal.timeout(30_000) })
  const read = world.api.send('GET', '/ip_policies')
  await world.flows({ ...MEANWHILE, refused: 1 })
  assert.equal((await ready).status, 503)
  const answer = await read
  assert.equal(answer.status, 503)
  assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/)
  assert.deepEqual([...world.traffic.refusals], [503])
  gate.speak()
  await world.assertWhole()
})

test('256 descriptors', async (t) => {
  const world = await ChaosWorld.start(t)
  const impossible = limitDescriptors(world.server.child.pid, 256)
  if (impossible) return skipped(t, impossible)
  const crowd: Socket[] = []
  t.after(() => {
    for (const socket of crowd) socket.destroy()
  })
  const [host, port] = world.server.http.split(':')
  const refusals = () => metric(world.server.metricsUrl, 'postern_descriptor_refusals_total')
  await until('connections are refused', async () => {
    crowd.push(connect({ host, port: Number(port) }).on('error', () => {}))
    return (await refusals()) > 0
  })
  for (let i = 0; i < 256; i++) crowd.push(connect({ host, port: Number(port) }).on('error', () => {}))
  await world.flows({ ...MEANWHILE, writes: 20 })
  for (const socket of crowd.splice(0)) socket.destroy()
  await until('visitors are let in again', () =>
    fetch(`http://${world.server.http}/`).then(
      () => true,
      () => false,
    ),
  )
  await world.assertWhole()
})

for (const [name, hours] of [
  ['an hour ahead', 1],
  ['an hour back', -1],
] as const) {
  test(`clock moved ${name}`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'postern-clock-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'offset')
    const preload = new URL('../support/moved-clock.ts', import.meta.url).href
    const env = { NODE_OPTIONS: `--import=${preload}`, POSTERNTEST_CLOCK_FILE: file }
    const world = await ChaosWorld.start(t, { env })
    const move = async (millis: number): Promise<void> => {
      const before = await serverTime(world)
      writeFileSync(file, String(millis))
      world.server.kill('SIGUSR2')
      await until('the clock has moved', async () => Math.abs((await serverTime(world)) - before) > 1_800_000)
    }
    const ids = [...world.traffic.acknowledged.keys()]
    await move(hours * 3_600_000)
    await world.flows({ ...MEANWHILE, writes: 20 })
    await move(0)
    await world.flows({ ...MEANWHILE, writes: 20 })
    const all = [...world.traffic.acknowledged.keys()]
    assert.deepEqual(all.toSorted(), all, 'ids still sort by creation')
    assert.ok(all.length > ids.length)
    await world.assertWhole()
  })
}

test('SIGSTOP for 40 s', async (t) => {
  const world = await ChaosWorld.start(t)
  // The agent hears nothing for longer than its 25 s of tolerance, and rightly reconnects: that cuts what it carries.
  world.traffic.mayBeCut = true
  world.server.kill('SIGSTOP')
  await delay(40_000)
  world.server.kill('SIGCONT')
  await world.flows({ requests: 100, echoes: 50, writes: 20 })
  world.traffic.mayBeCut = false
  await world.assertWhole()
})

/** The creation time that the server reports, in milliseconds since 1970. */
async function serverTime(world: ChaosWorld): Promise<number> {
  const { id, created_at } = await world.api.create('/api_keys')
  await world.api.delete(`/api_keys/${id}`)
  return Date.parse(created_at)
}

function isJson(line: string): boolean {
  try {
    return typeof JSON.parse(line) === 'object'
  } catch {
    return false
  }
}
