/** The real program when its output has no reader, a stalled one, or a full disk: it keeps running and counts lost lines. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, mkdtempSync, openSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, describe, test } from 'node:test'
import { metric } from '../support/metrics.ts'
import { type ServeOptions, type ServerProcess, serve } from '../support/server-process.ts'
import { until } from '../support/until.ts'
import type { Owner } from '../support/upstream.ts'

const root = mkdtempSync(join(tmpdir(), 'postern-log-'))
after(() => rmSync(root, { recursive: true, force: true }))

async function start(owner: Owner, options: Partial<ServeOptions> = {}): Promise<ServerProcess> {
  const server = await serve({ dataDir: join(mkdtempSync(join(root, 'run-')), 'data'), ...options })
  owner.after(async () => {
    server.kill('SIGKILL')
    await server.ended
  })
  return server
}

/** Sends requests of a visitor, each of which is one line of the access log. */
async function visit(server: ServerProcess, { count = 1, path = '/' } = {}): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 16 })
  const [host, port] = server.http.split(':')
  const ask = () =>
    new Promise<void>((resolve, reject) => {
      const asking = request({ host, port, path, agent, headers: { host: 'nobody.localhost' } }, (response) => {
        response.resume().once('end', resolve)
      })
      asking.once('error', reject).end()
    })
  let left = count
  const worker = async (): Promise<void> => {
    while (left-- > 0) await ask()
  }
  await Promise.all(Array.from({ length: Math.min(16, count) }, worker))
  agent.destroy()
}

const lost = (server: ServerProcess): Promise<number> => metric(server.metricsUrl, 'postern_log_lines_lost_total')

async function assertServes(server: ServerProcess): Promise<void> {
  assert.deepEqual(await (await fetch(`${server.url}/healthz`)).json(), { status: 'ok' })
  assert.equal(server.child.exitCode, null)
}

describe('the log of a server', () => {
  test('its reader goes away, and that of stdout: the server keeps running, counts lost lines, and stops when gaps', async (t) => {
    const server = await start(t)
    server.child.stdout?.destroy()
    server.child.stderr?.destroy()
    await until('lines are counted as lost', async () => {
      await visit(server)
      return (await lost(server)) > 0
    })
    await assertServes(server)
    assert.equal((await server.stop()).code, 0)
  })

  test('the disk of the log is full: the server starts, keeps running, and stops when gaps', async (t) => {
    const full = openSync('/dev/full', 'w')
    t.after(() => closeSync(full))
    const server = await start(t, { files: { err: full } })
    await until('lines are counted as lost', async () => {
      await visit(server)
      return (await lost(server)) > 1
    })
    await assertServes(server)
    assert.equal((await server.stop()).code, 0)
  })

  test('its reader stalls: at most 8 MiB are buffered, nothing is delayed, the gap is logged, and the server still stops', async (t) => {
    const server = await start(t)
    server.child.stderr?.pause()
    // Each line holds 2 KiB of this path, so 8 MiB and the buffers of pipes hold fewer than 5,000 lines.
    await visit(server, { count: 5500, path: `/${'x'.repeat(10_000)}` })
    await until('lines are counted as lost', async () => (await lost(server)) > 0)
    await assertServes(server)
    server.child.stderr?.resume()
    await server.says(/"lines":\d+,"msg":"log lines were lost"/)
    await until('each line is logged or counted as lost', () => {
      const log = server.log()
      const gaps = [...log.matchAll(/"lines":(\d+),"msg":"log lines were lost"/g)].map(([, lines]) => Number(lines))
      const requests = log.split('"msg":"request"').length - 1
      const all = requests + gaps.reduce((sum, lines) => sum + lines, 0)
      assert.ok(all <= 5500, `${all} lines`)
      return all === 5500
    })

    // Once more, and now for good.
    server.child.stderr?.pause()
    await visit(server, { count: 300, path: `/${'x'.repeat(2000)}` })
    server.kill('SIGTERM')
    assert.equal((await once(server.child, 'exit'))[0], 0)
  })

  test('a named pipe gets a new reader: it reads how many lines were lost, and the lines after that', async (t) => {
    const pipe = join(mkdtempSync(join(root, 'pipe-')), 'log')
    assert.equal(spawnSync('mkfifo', [pipe]).status, 0)
    // A non-blocking reader lets the pipe be opened for writing before the real reader is there.
    const first = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK)
    const err = openSync(pipe, 'w')
    const server = await start(t, { files: { err } })
    closeSync(err)
    closeSync(first)
    await until('lines are counted as lost', async () => {
      await visit(server)
      return (await lost(server)) > 0
    })
    const reader = spawn('cat', [pipe], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.after(() => reader.kill())
    const lines: string[] = []
    createInterface({ input: reader.stdout }).on('line', (line) => lines.push(line))
    await until('the loss is logged', () => lines.some((line) => line.includes('"log lines were lost"')))
    await visit(server, { path: '/after' })
    await until('the next line', () => lines.some((line) => line.includes('"path":"/after"')))
    for (const line of lines) assert.equal(typeof JSON.parse(line), 'object')
  })

  test('a log file that is truncated (copytruncate) continues at its start', async (t) => {
    const file = join(mkdtempSync(join(root, 'file-')), 'postern.log')
    const err = openSync(file, 'a')
    const server = await start(t, { files: { err } })
    closeSync(err)
    await visit(server, { path: '/before' })
    await until('the line', () => readFileSync(file, 'utf8').includes('"/before"'))
    truncateSync(file)
    await visit(server, { path: '/after' })
    await until('the line', () => readFileSync(file, 'utf8').includes('"/after"'))
    assert.equal(readFileSync(file, 'utf8').trimEnd().split('\n').length, 1)
    assert.equal((await server.stop()).code, 0)
    assert.match(readFileSync(file, 'utf8'), /"server stopped"}\n$/)
  })

  test('no value from a visitor takes more than 2 KiB, a warning of Node is a line, and so is the error of a crash', async (t) => {
    const server = await start(t, {
      flags: { 'log-level': 'trace' },
      env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(warnAndCrashLater)}` },
    })
    await visit(server, { path: `/${'x'.repeat(30_000)}` })
    await server.says(/"msg":"request"/)
    server.kill('SIGWINCH')
    await server.says(/"msg":"warning from Node"/)
    server.kill('SIGUSR2')
    const { code, err } = await server.ended
    assert.equal(code, 1)
    const lines = err
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    for (const line of lines) assert.equal(typeof line, 'object')
    const { path } = lines.find(({ msg }) => msg === 'request')
    assert.equal(Buffer.byteLength(path), 2048)
    assert.match(path, /^\/x+…$/)
    const last = lines.at(-1)
    assert.deepEqual([last.level, last.msg, last.err.message], ['fatal', 'server crashed', 'broken on purpose'])
  })
})

const warnAndCrashLater = `
  process.on('SIGWINCH', () => process.emitWarning('something is off'))
  process.on('SIGUSR2', () => { throw new Error('broken on purpose') })
`

describe('what a server prints on stdout', () => {
  test('its disk is full at the first start: the server runs, and logs what it could not show', async (t) => {
    const full = openSync('/dev/full', 'w')
    t.after(() => closeSync(full))
    const dataDir = join(mkdtempSync(join(root, 'run-')), 'data')
    const { start: begin, serveArgs } = await import('../support/server-process.ts')
    const running = begin(serveArgs({ dataDir }), { files: { out: full } })
    t.after(() => running.child.kill('SIGKILL'))
    await running.says(/standard output cannot be written.*postern admin create-key/)
    assert.equal(running.child.exitCode, null)
    running.child.kill('SIGTERM')
    assert.equal((await running.ended).code, 0)
  })
})
