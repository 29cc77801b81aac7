import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { generateKeyPairSync, sign } from 'node:crypto'
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { start } from '../../../test/support/server-process.ts'
import { type TlsIdentity, tlsIdentity } from '../../../test/support/tls-identity.ts'
import { until } from '../../../test/support/until.ts'
import { TestServer } from '../../agent/testing/test-server.ts'
import { signedText } from '../../agent/update/releases.ts'
import { packageVersion } from '../../lib/files/package-file.ts'
import { streamTypes } from '../../link/wire/stream-types.ts'

const launcher = join(import.meta.dirname, '../../../bin/postern.js')
const root = mkdtempSync(join(tmpdir(), 'postern-agent-process-'))
let identity: TlsIdentity
let server: TestServer
before(async () => {
  identity = await tlsIdentity()
  writeFileSync(join(root, 'ca.pem'), identity.ca)
  server = await TestServer.start(identity)
})
const children: ChildProcess[] = []
after(async () => {
  await server.close()
  // Agents that have ended, as they should, are left alone.
  for (const child of children) child.kill('SIGKILL')
  rmSync(root, { recursive: true })
})

/** An agent in its own process, and its session. */
async function agent({ node, config = '', out }: { node?: string | undefined; config?: string; out?: number } = {}) {
  const home = mkdtempSync(join(root, 'home-'))
  writeFileSync(join(home, 'agent.yml'), config)
  const count = server.sessions.length
  const running = start(
    [
      'http',
      '3000',
      '--server',
      `127.0.0.1:${server.port}`,
      '--ca',
      join(root, 'ca.pem'),
      '--config',
      join(home, 'agent.yml'),
    ],
    {
      ...(node && { node }),
      ...(out !== undefined && { files: { out } }),
      env: { POSTERN_AUTHTOKEN: 'token', HOME: home },
    },
  )
  children.push(running.child)
  if (out === undefined) await running.says(/tunnel online/)
  return { ...running, session: await server.session(count + 1), next: () => server.session(count + 2) }
}

/** An older Node on this machine, if there is one: npm and the test runner put theirs first on PATH. */
function olderNode(): string | undefined {
  const candidates = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'node'))
  return candidates.find((node) => {
    if (!existsSync(node)) return false
    const major = Number(/^v(\d+)/.exec(spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout)?.[1])
    return major >= 14 && major < 24
  })
}

const older = olderNode()
const nodes: readonly [name: string, node: string | undefined, skip: string | false][] = [
  ['', process.execPath, false],
  [', under a launcher on an older Node', older, older === undefined ? 'no older Node on this machine' : false],
]

for (const [name, node, skip] of nodes) {
  describe(`a real agent${name}`, { skip }, () => {
    test('ends with exit code 0 on the first SIGINT, after a GOAWAY', async () => {
      const { child, ended, session } = await agent({ node })
      child.kill('SIGINT')
      const { code, err } = await ended
      assert.deepEqual([code, err], [0, ''])
      assert.equal(session.unbound.length, 1)
      assert.equal(await session.closed, undefined)
    })

    test('ends with exit code 0 on a stop command, after it has answered', async () => {
      const { ended } = await agent({ node })
      assert.equal(await server.command(streamTypes.stop), '')
      const { code, err } = await ended
      assert.deepEqual([code, err], [0, ''])
    })

    test('ends silently, as after SIGPIPE, when the reader of its output is gone', async () => {
      const { child, ended } = await agent({ node })
      child.stdout?.destroy()
      // This logs a line to the closed pipe.
      server.cut()
      const { code, err } = await ended
      assert.deepEqual([code, err], [141, ''])
    })

    test('keeps running when the disk of its log is full, and still stops on command', async () => {
      const out = openSync('/dev/full', 'w')
      const { child, ended, next } = await agent({ node, out })
      closeSync(out)
      server.cut()
      const again = await next()
      await until('its address is asked for again', () => again.binds.length > 0)
      child.kill('SIGINT')
      const { code, err } = await ended
      assert.deepEqual([code, err], [0, ''])
      assert.equal(await again.closed, undefined)
    })

    test('restarts in the same process on each restart command', async () => {
      const { child, ended, session, next, out } = await agent({ node })
      assert.equal(await server.command(streamTypes.restart), '')
      const second = await next()
      // No cookie: a restarted agent has a new session, D46.
      assert.equal(second.auth.clientId, '')
      assert.equal(await session.closed, undefined)
      while ((out().match(/tunnel online/g) ?? []).length < 2) await new Promise((resolve) => setImmediate(resolve))
      const before = server.sessions.length
      assert.equal(await server.command(streamTypes.restart), '')
      await server.session(before + 1)
      while ((out().match(/tunnel online/g) ?? []).length < 3) await new Promise((resolve) => setImmediate(resolve))
      // The process id known to its parent is still the agent's.
      child.kill('SIGINT')
      const { code, err } = await ended
      assert.deepEqual([code, err], [0, ''])
    })

    test('updates itself to a signed release, and a restart runs it with the same arguments', async () => {
      const [major, minor, patch] = packageVersion().split('.').map(Number)
      const version = `${major}.${minor}.${(patch ?? 0) + 1}`
      const { source, publicKey } = release(version, 'console.log("NEW", ...process.argv.slice(2, 4)); process.exit(7)')
      const config = `update: {source: ${source}, public_key: ${publicKey}}\n`
      const { ended, says } = await agent({ node, config })
      const update = () => server.command(streamTypes.update, { Version: '', PermitMajorVersion: false })
      assert.equal(await update(), '')
      await says(new RegExp(`updated; restart to use it version=${version}`))
      assert.equal(await update(), `the agent is already updated to ${version} and has not been restarted`)
      assert.equal(await server.command(streamTypes.restart), '')
      const { code, out } = await ended
      assert.match(out, /\nNEW http 3000\n$/)
      assert.equal(code, 7)
    })
  })
}

test('later starts run the release that an update installed', async () => {
  const [major, minor] = packageVersion().split('.').map(Number)
  const version = `${major}.${(minor ?? 0) + 1}.0`
  const home = mkdtempSync(join(root, 'home-'))
  const folder = join(home, '.local/share/postern/versions')
  mkdirSync(join(folder, version, 'bin'), { recursive: true, mode: 0o700 })
  writeFileSync(join(folder, version, 'package.json'), JSON.stringify({ name: 'postern', version }))
  writeFileSync(join(folder, version, 'bin/postern.js'), 'console.log("NEW", ...process.argv.slice(2, 4))')
  writeFileSync(join(folder, 'current'), version)
  const { publicKey } = release(version, '')
  writeFileSync(join(home, 'agent.yml'), `authtoken: x\nupdate: {source: /none, public_key: ${publicKey}}\n`)
  const args = ['http', '3000', '--config', join(home, 'agent.yml')]
  const { code, out } = await start(args, { env: { HOME: home } }).ended
  assert.deepEqual([code, out], [0, 'NEW http 3000\n'])
})

test('an agent loads nothing of the server', async () => {
  const hook = join(root, 'loaded.mjs')
  writeFileSync(
    hook,
    `import { registerHooks } from 'node:module'
     registerHooks({ load: (url, context, next) => (console.error('loaded', url), next(url, context)) })`,
  )
  const args = ['http', '3000', '--server', '127.0.0.1:1', '--authtoken', 'x', '--log-format', 'lines']
  const env = { NODE_OPTIONS: `--import=${hook}`, HOME: root }
  const running = start(args, { env })
  await running.says(/not connected/)
  running.child.kill('SIGINT')
  const { err } = await running.ended
  const loaded = err.split('\n').filter((line) => line.startsWith('loaded file:'))
  assert.ok(loaded.some((line) => line.endsWith('/src/agent/agent.ts')))
  const heavy =
    /\/(fastify|kysely|pg|typebox|@bufbuild|re2js|@prometheus-io)\/|\/src\/(api|store|control|resources|modules|policy|edge|tunnel|server\.ts)/
  assert.deepEqual(
    loaded.filter((line) => heavy.test(line)),
    [],
  )
})

/** A folder with one signed release, whose launcher is `script`. */
function release(version: string, script: string): { source: string; publicKey: string } {
  const source = mkdtempSync(join(root, 'source-'))
  mkdirSync(join(source, 'package/bin'), { recursive: true })
  writeFileSync(join(source, 'package/package.json'), JSON.stringify({ name: 'postern', version, type: 'module' }))
  writeFileSync(join(source, 'package/bin/postern.js'), script)
  const archive = spawnSync('tar', ['-czf', '-', 'package'], { cwd: source }).stdout
  writeFileSync(join(source, 'postern.tgz'), archive)
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const signature = sign(null, signedText(version, archive), privateKey).toString('base64')
  writeFileSync(
    join(source, 'releases.json'),
    JSON.stringify({ releases: [{ version, archive: 'postern.tgz', signature }] }),
  )
  return { source, publicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64') }
}

const hasScript = spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux') ?? false

describe('a real agent on a terminal', { skip: hasScript ? false : 'needs script of util-linux' }, () => {
  /** The agent on its own terminal: `type` types there, and `out` is its screen. */
  function onTerminal() {
    const home = mkdtempSync(join(root, 'home-'))
    const args = ['http', '3000', '--server', `127.0.0.1:${server.port}`, '--ca', join(root, 'ca.pem')]
    // In place of the shell, not below it: Ctrl+C is for the whole group, and some shells end with 130 whatever the agent does.
    const command = `exec ${[process.execPath, launcher, ...args].map((each) => `'${each}'`).join(' ')}`
    const child = spawn('script', ['--quiet', '--flush', '--return', '--command', command, '/dev/null'], {
      env: {
        ...process.env,
        SHELL: '/bin/sh',
        HOME: home,
        XDG_CONFIG_HOME: home,
        POSTERN_AUTHTOKEN: 'token',
        NODE_TEST_CONTEXT: '',
      },
    })
    children.push(child)
    let out = ''
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString()
    })
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
    return { out: () => out, type: (keys: string) => child.stdin.write(keys), ended }
  }

  test('does not echo what is typed, and ends with exit code 0 on Ctrl+C', async () => {
    const { out, type, ended } = onTerminal()
    await until('the view is there', () => out().includes('Session') && out().includes('online'))
    type('typed-by-accident\r')
    // Drawn after the keys arrived, so any echo would be on the screen by now.
    server.cut()
    await until('the view shows that the session is lost', () => out().includes('offline'))
    type('\x03')
    assert.equal(await ended, 0)
    assert.doesNotMatch(out(), /typed-by-accident|\^C/)
    assert.ok(out().trimEnd().endsWith('\x1b[?1049l'), 'the terminal is as it was')
  })
})
