import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { Descriptors } from '../lib/files/descriptors.ts'
import type { RunningServer } from '../server/compose/open-server.ts'
import { plainListeners } from '../server/config/listeners.ts'
import { readSettings, type Settings } from '../server/config/read-settings.ts'
import { SettingsError } from '../server/config/settings-error.ts'
import { commandName } from './command-name.ts'
import { firstStartBanner, webAddress } from './print-first-start.ts'
import { type ServeParts, serve } from './serve-command.ts'
import { stopSignal } from './signals.ts'
import { startFault } from './start-fault.ts'
import { testTerminal } from './testing/test-terminal.ts'

const settings = readSettings({ flags: { 'log-level': 'silent', workers: '0' }, env: {}, cwd: '/srv' })
const preset = readSettings({
  env: { POSTERN_BOOTSTRAP_API_KEY: 'k'.repeat(32), POSTERN_BOOTSTRAP_AUTHTOKEN: 't'.repeat(32) },
  cwd: '/srv',
})
const listening = {
  api: '127.0.0.1:41234',
  metrics: '127.0.0.1:41235',
  agents: '0.0.0.0:41236',
  ssh: '0.0.0.0:41239',
  https: '0.0.0.0:41237',
  http: '0.0.0.0:41238',
}
const supervise = () => Promise.reject(new Error('one process is enough'))
/** These servers do not take orders from `postern upgrade`. */
const takeOrders = async () => () => {}
const firstStart = { apiKey: 'key_made', authtoken: 'token_made', userId: 'usr_1' }

/** Opens nothing. */
const opened =
  ({
    handed = [],
    read = () => settings,
  }: {
    handed?: readonly string[]
    read?: () => Settings
  } = {}): ServeParts['open'] =>
  async (_read, { log }) => ({
    settings,
    read,
    listeners: { ...plainListeners(settings), handed },
    descriptors: new Descriptors({ log }),
  })

interface Given extends Partial<RunningServer> {
  readonly handed?: readonly string[]
  readonly read?: () => Settings
}

/** A server whose shutdown lasts until the test says so. */
function serving(given: Given = {}) {
  const signals = new EventEmitter()
  const terminal = testTerminal()
  const exits: number[] = []
  const stopping = Promise.withResolvers<void>()
  const stopped = Promise.withResolvers<void>()
  const server: RunningServer = {
    addresses: listening,
    sshHostKey: 'SHA256:of_the_host_key',
    firstStart: null,
    use: async () => [],
    stop() {
      stopping.resolve()
      return stopped.promise
    },
    ...given,
  }
  const start = async () => server
  const exit = (code: number) => void exits.push(code)
  const done = serve(() => settings, terminal, {
    supervise,
    open: opened(given),
    start,
    signals,
    exit,
    takeOrders,
    logProcess() {},
  })
  return { signals, terminal, exits, stopping: stopping.promise, finish: stopped.resolve, done }
}

for (const signal of ['SIGTERM', 'SIGINT']) {
  test(`${signal} stops the server, then exits 0`, async () => {
    const { signals, exits, stopping, finish, done } = serving()
    signals.emit(signal)
    await stopping
    assert.deepEqual(exits, [])
    finish()
    await done
    assert.deepEqual(exits, [0])
  })
}

test('SIGHUP reloads the settings and never ends the server, whatever is in them', async () => {
  const used: number[] = []
  const files = [
    () =>
      readSettings({ flags: { 'log-level': 'silent', workers: '0', 'max-connections': '5' }, env: {}, cwd: '/srv' }),
    () => {
      throw new SettingsError(['a fault'])
    },
    () => {
      throw new Error('a fault of ours')
    },
    () =>
      readSettings({ flags: { 'log-level': 'silent', workers: '0', 'max-connections': '6' }, env: {}, cwd: '/srv' }),
  ]
  const { signals, exits, finish, done } = serving({
    read: () => files.shift()?.() ?? settings,
    use: async ({ maxConnections }) => {
      used.push(maxConnections)
      return []
    },
  })
  // The first one arrives during the start.
  signals.emit('SIGHUP')
  await new Promise(setImmediate)
  assert.deepEqual(used, [5])
  for (let i = 0; i < 3; i++) {
    signals.emit('SIGHUP')
    await new Promise(setImmediate)
  }
  assert.deepEqual(used, [5, 6])
  assert.deepEqual(exits, [])
  signals.emit('SIGTERM')
  finish()
  await done
  assert.deepEqual(exits, [0])
})

test('prints which listeners came from the service manager', async () => {
  const { signals, terminal, finish, done } = serving({ handed: ['agent', 'tcp 20001'] })
  signals.emit('SIGTERM')
  finish()
  await done
  assert.match(terminal.printed.out, /^Sockets from the service manager: agent, tcp 20001$/m)
})

test('a second signal exits 1 at once', async () => {
  const { signals, exits, stopping, finish, done } = serving()
  signals.emit('SIGTERM')
  await stopping
  signals.emit('SIGINT')
  assert.deepEqual(exits, [1])
  finish()
  await done
})

test('under a launcher a signal that arrives twice does not count as the second', async () => {
  const source = new EventEmitter()
  let time = 0
  let insisted = 0
  const stop = stopSignal({ source, echoes: true, now: () => time, insist: () => void insisted++ })
  source.emit('SIGTERM')
  await stop
  time = 100
  source.emit('SIGTERM')
  assert.equal(insisted, 0)
  time = 2000
  source.emit('SIGTERM')
  assert.equal(insisted, 1)
})

test('prints the credentials only on the first start, and the ports always', async () => {
  for (const [given, shown] of [[firstStart, true] as const, [null, false] as const]) {
    const { signals, terminal, finish, done } = serving({ firstStart: given })
    signals.emit('SIGTERM')
    finish()
    await done
    assert.equal(terminal.printed.out.includes('key_made'), shown)
    assert.match(terminal.printed.out, /^SSH: 0\.0\.0\.0:41239, host key SHA256:of_the_host_key$/m)
    assert.match(
      terminal.printed.out,
      /Listening: API http:\/\/127\.0\.0\.1:41234, metrics http:\/\/127\.0\.0\.1:41235, agents 0\.0\.0\.0:41236, HTTPS 0\.0\.0\.0:41237, HTTP 0\.0\.0\.0:41238\n$/,
    )
  }
})

test('the banner has what an operator needs and three commands with the real port', () => {
  const text = firstStartBanner(firstStart, listening, settings, 'npx postern')
  for (const part of ['key_made', 'token_made', 'usr_1', '/srv/data/ca.pem']) assert.ok(text.includes(part), part)
  const commands = text.split('\n').filter((line) => /^ {2}(curl|npx postern) /.test(line))
  assert.equal(commands.length, 3)
  const [agent, ...curls] = commands
  assert.match(
    agent ?? '',
    /^ {2}npx postern http 3000 --server 127\.0\.0\.1:41236 --ca \/srv\/data\/ca\.pem --authtoken token_made$/,
  )
  for (const command of curls) assert.match(command, /http:\/\/127\.0\.0\.1:41234\//)
})

test('the banner quotes a folder that a shell would split into several words', () => {
  const text = firstStartBanner(firstStart, listening, { ...settings, dataDir: "/srv/Ada's data" }, 'postern')
  assert.ok(text.includes(`--ca '/srv/Ada'\\''s data/ca.pem' --authtoken`), text)
})

test('printed commands can be typed as they are: with npx in a clone, without it once installed', () => {
  assert.equal(commandName({ env: {} }), 'npx postern')
  const installed = {
    self: 'file:///usr/lib/node_modules/postern/dist/cli/command-name.js',
    program: '/usr/bin/postern',
  }
  assert.equal(commandName({ env: {}, ...installed }), 'postern')
  assert.equal(commandName({ env: { npm_command: 'exec' }, ...installed }), 'npx postern')
  assert.equal(commandName({ env: { npm_command: 'start' }, ...installed }), 'postern')
  const inProject = { ...installed, program: '/home/ada/shop/node_modules/.bin/postern' }
  assert.equal(commandName({ env: {}, ...inProject }), 'npx postern')
})

test('the banner does not repeat preset secrets', () => {
  const made = { ...firstStart, apiKey: 'k'.repeat(32), authtoken: 't'.repeat(32) }
  const text = firstStartBanner(made, listening, preset, 'postern')
  assert.doesNotMatch(text, /k{32}|t{32}/)
  assert.match(text, /POSTERN_BOOTSTRAP_API_KEY/)
})

const addresses: readonly [address: string, url: string][] = [
  ['127.0.0.1:7400', 'http://127.0.0.1:7400'],
  ['0.0.0.0:7400', 'http://127.0.0.1:7400'],
  ['[::]:7400', 'http://[::1]:7400'],
  [':::7400', 'http://[::1]:7400'],
  ['[::1]:7400', 'http://[::1]:7400'],
  ['http://127.0.0.1:7400', 'http://127.0.0.1:7400'],
  ['https://api.example.com', 'https://api.example.com'],
]
for (const [address, url] of addresses) {
  test(`${address} is reached at ${url}`, () => assert.equal(webAddress(address), url))
}

const fault = (fields: object, message = 'low level') => Object.assign(new Error(message), fields)
const faults: readonly [name: string, error: unknown, says: RegExp][] = [
  [
    'a taken port',
    new Error('start API', { cause: fault({ code: 'EADDRINUSE', syscall: 'listen', port: 7401 }) }),
    /^127\.0\.0\.1:7401 is in use .* --metrics-listen$/,
  ],
  ['a port of edges', fault({ code: 'EADDRINUSE', syscall: 'listen', port: 20005 }), /^port 20005 .* --tcp-ports$/],
  [
    'a low port',
    fault({ code: 'EACCES', syscall: 'listen', port: 8443 }),
    /may not listen on 0\.0\.0\.0:8443.*--https-listen/,
  ],
  [
    'no PostgreSQL, at two addresses',
    new Error('open store', { cause: new AggregateError([fault({ code: 'ECONNREFUSED', syscall: 'connect' })]) }),
    /nothing is listening at the address of the database.*--database-url/,
  ],
  ['a wrong password', fault({ code: '28P01' }), /refuses the password/],
  ['a missing database', fault({ code: '3D000' }), /does not exist; create it/],
  ['a SQLite file that cannot be opened', fault({ code: 'ERR_SQLITE_ERROR', errcode: 14 }), /cannot be opened/],
  ['an extended SQLite code', fault({ code: 'ERR_SQLITE_ERROR', errcode: 8 | (1 << 8) }), /read-only/],
  [
    'a folder of somebody else',
    fault({ code: 'EACCES', syscall: 'mkdir', path: '/srv/data' }),
    /not allowed to use \/srv\/data/,
  ],
  [
    'a key file with its own words',
    new Error('read key file', { cause: new Error('it must hold 32 bytes') }),
    /^read key file: it must hold 32 bytes$/,
  ],
  [
    'a URL with a password',
    new Error('connect postgres://u:hunter2@h/db'),
    /^connect postgres:\/\/u:\[secret\]@h\/db$/,
  ],
]
for (const [name, error, says] of faults) {
  test(`explains in one line: ${name}`, () => {
    const text = startFault(error, settings)
    assert.match(text, says)
    assert.ok(!text.includes('\n'))
  })
}

test('a start that fails is a failure with exit code 1', async () => {
  const start = () => Promise.reject(fault({ code: 'EADDRINUSE', syscall: 'listen', port: 7400 }))
  const parts = {
    supervise,
    open: opened(),
    start,
    signals: new EventEmitter(),
    exit: () => undefined,
    takeOrders,
    logProcess() {},
  }
  const served = serve(() => settings, testTerminal(), parts)
  await assert.rejects(served, { exitCode: 1, message: /^Postern cannot start: 127\.0\.0\.1:7400 is in use/ })
})

test('with workers the output is the same, and this process opens no listeners', async () => {
  const signals = new EventEmitter()
  const terminal = testTerminal()
  const nothing = () => Promise.reject(new Error('one process too many'))
  const several = { ...settings, workers: 2 }
  const stopped: string[] = []
  const server: RunningServer = {
    ...{ addresses: listening, sshHostKey: 'SHA256:of_the_host_key', firstStart, use: async () => [] },
    stop: async () => void stopped.push('stopped'),
  }
  const done = serve(() => several, terminal, {
    supervise: async (read) => ({ settings: several, read, handed: ['agent'], server }),
    ...{ open: nothing, start: nothing, signals, exit: (code) => void stopped.push(String(code)) },
    ...{ takeOrders, logProcess() {} },
  })
  signals.emit('SIGTERM')
  await done
  assert.deepEqual(stopped, ['stopped', '0'])
  assert.match(terminal.printed.out, /key_made/)
  assert.match(terminal.printed.out, /^Sockets from the service manager: agent\nSSH: .*\nListening: API /m)
})
