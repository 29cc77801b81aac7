import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, describe, type TestContext, test } from 'node:test'
import type { Command } from 'commander'
import { tlsIdentity } from '../../../test/support/tls-identity.ts'
import { until } from '../../../test/support/until.ts'
import { TestServer } from '../../agent/testing/test-server.ts'
import type { Terminal } from '../terminal.ts'
import { testTerminal } from '../testing/test-terminal.ts'
import type { RunParts } from './run.ts'
import { startCommand } from './start.ts'
import { tunnelCommand } from './tunnel-command.ts'

const root = mkdtempSync(join(tmpdir(), 'postern-agent-reload-'))
let testServer: TestServer
before(async () => {
  const identity = await tlsIdentity()
  writeFileSync(join(root, 'ca.pem'), identity.ca)
  testServer = await TestServer.start(identity)
})
after(async () => {
  await testServer.close()
  rmSync(root, { recursive: true })
})

type Make = (terminal: Terminal, parts: Partial<RunParts>) => Command

/** An agent that runs until the test is over. */
async function running(t: TestContext, make: Make, args: string[], { file = '', isAttended = false } = {}) {
  const cwd = mkdtempSync(join(root, 'cwd-'))
  const env = {
    HOME: cwd,
    POSTERN_CA: join(root, 'ca.pem'),
    POSTERN_SERVER: `127.0.0.1:${testServer.port}`,
    POSTERN_AUTHTOKEN: 'token',
  }
  const terminal = testTerminal({ cwd, env })
  const write = (words: string) => writeFileSync(join(cwd, 'postern-agent.yml'), words)
  write(file)
  const signals = new EventEmitter()
  const exits: number[] = []
  const parts = { signals, exit: (code: number) => void exits.push(code), isAttended }
  const sessions = testServer.sessions.length
  const done = make(terminal, parts)
    .exitOverride()
    .parseAsync([...args, '--log-format', 'json'], { from: 'user' })
  t.after(async () => {
    signals.emit('SIGTERM')
    await done
    assert.deepEqual(exits, [0])
  })
  const lines = () =>
    terminal.printed.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line || '{}'))
  const says = (msg: RegExp) => until(`it says ${msg}`, () => lines().find((line) => msg.test(line.msg)))
  await says(/tunnel online/)
  /** Makes it reload its file; returns the line that it then prints. */
  const reload = async (words?: string) => {
    if (words !== undefined) write(words)
    const seen = lines().length
    signals.emit('SIGHUP')
    return until('it says what became of it', () =>
      lines()
        .slice(seen)
        .find(({ msg }) => /reload/.test(msg)),
    )
  }
  return { session: await testServer.session(sessions + 1), reload, says, signals, done, exits }
}

/** A service that says its name. */
async function service(t: TestContext, name: string): Promise<number> {
  const server = createServer((_, response) => response.end(name)).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  return (server.address() as AddressInfo).port // it listens on a port
}

describe('SIGHUP', () => {
  test('opens, closes and changes tunnels to match the file', async (t) => {
    const file = 'tunnels:\n  kept: {addr: 3000, subdomain: kept}\n  gone: {addr: 3001, subdomain: gone}\n'
    const { session, reload } = await running(t, startCommand, [], { file })
    const { binds, unbound } = session
    await until('both are there', () => binds.length === 2)
    const { opened, closed, changed, level } = await reload(
      'tunnels:\n  kept: {addr: 3000, subdomain: kept}\n  come: {addr: 3002, subdomain: come}\n',
    )
    assert.deepEqual(
      { opened, closed, changed, level },
      { opened: ['come'], closed: ['gone'], changed: [], level: 'info' },
    )
    await until('the new one is asked for', () => binds.some(({ name }) => name === 'come'))
    await until('the old one is given back', () => unbound.length === 1)
    const again = await reload('tunnels:\n  kept: {addr: 3000, subdomain: other}\n')
    assert.deepEqual([again.opened, again.closed, again.changed], [[], ['come'], ['kept']])
    await until('its address is given back too', () => unbound.length === 3)
    await until('and another is asked for', () => binds.length === 4)
    assert.deepEqual(binds.at(-1)?.opts, { Subdomain: 'other' })
  })

  test('connects a tunnel to another service without releasing its address', async (t) => {
    const [first, second] = [await service(t, 'first'), await service(t, 'second')]
    const { session, reload } = await running(t, startCommand, [], { file: `tunnels: {web: {addr: ${first}}}\n` })
    const ask = () => {
      const visitor = testServer.visit(testServer.lastId, { proto: 'https' })
      visitor.end('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
      return text(visitor)
    }
    assert.match(await ask(), /first$/)
    const { changed } = await reload(`tunnels: {web: {addr: ${second}}}\n`)
    assert.deepEqual(changed, ['web'])
    assert.match(await ask(), /second$/)
    assert.deepEqual([session.binds.length, session.unbound], [1, []])
  })

  test('a file with faults changes nothing, and says what is wrong', async (t) => {
    const { session, reload } = await running(t, startCommand, ['web'], { file: 'tunnels: {web: {addr: 3000}}\n' })
    for (const [words, fault] of [
      ['tunnels: {web: {addr: 3000, colour: red}}\n', /colour/],
      ['tunnels: [\n', /not valid YAML/],
      ['tunnels: {}\n', /there are no tunnels/],
      ['tunnels: {other: {addr: 3000}}\n', /there is no tunnel 'web'/],
    ] as const) {
      const { msg, problems } = await reload(words)
      assert.match(msg, /cannot be reloaded; nothing has changed$/)
      assert.match(problems.join(), fault)
    }
    assert.deepEqual([session.binds.length, session.unbound], [1, []])
  })

  test('settings of the session need a restart, and their values are not printed', async (t) => {
    const { reload } = await running(t, startCommand, [], { file: 'tunnels: {web: {addr: 3000}}\n' })
    const line = await reload('metadata: hush-hush\nheartbeat_interval: 20s\ntunnels: {web: {addr: 3000}}\n')
    assert.deepEqual([line.level, line.needs_restart], ['warn', ['metadata', 'heartbeat_interval']])
    assert.doesNotMatch(JSON.stringify(line), /hush-hush/)
  })

  test('a tunnel that the server refuses is reported, and the others stay', async (t) => {
    const { session, reload, says } = await running(t, startCommand, [], { file: 'tunnels: {web: {addr: 3000}}\n' })
    testServer.rules.bind = () => 'The name is taken.\n\nERR_NGROK_334\n'
    t.after(() => delete testServer.rules.bind)
    await reload('tunnels: {web: {addr: 3000}, more: {addr: 3001}}\n')
    assert.deepEqual((await says(/^tunnel refused$/)).tunnel, 'more')
    assert.deepEqual(session.unbound, [])
  })

  test('does not end a tunnel that is described by flags', async (t) => {
    const { reload, exits } = await running(t, (...given) => tunnelCommand('http', ...given), ['3000'])
    assert.match((await reload()).msg, /described by flags; restart/)
    assert.deepEqual(exits, [])
  })

  test('ends an agent at a terminal, as it always did', async (t) => {
    const http: Make = (...given) => tunnelCommand('http', ...given)
    const { signals, done, exits } = await running(t, http, ['3000'], { isAttended: true })
    signals.emit('SIGHUP')
    await done
    assert.deepEqual(exits, [0])
  })
})
