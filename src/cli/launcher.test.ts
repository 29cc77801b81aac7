import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { descriptorOf } from '../../test/support/service-manager.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))
const root = realpathSync(mkdtempSync(join(tmpdir(), 'postern-launcher-')))
after(() => rmSync(root, { recursive: true }))

/** A package with the launcher and the test's own `main.ts`. */
function packageWith(main: string, { bundled = true }: { bundled?: boolean } = {}): string {
  const folder = mkdtempSync(join(root, 'package-'))
  mkdirSync(join(folder, 'src'))
  cpSync(join(repository, 'bin'), join(folder, 'bin'), { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(join(folder, 'src/main.ts'), main)
  if (bundled) symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'))
  return join(folder, 'bin/postern.js')
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
const nodes: readonly [name: string, node: string | undefined][] = [
  ['this Node', process.execPath],
  ['an older Node', older],
]

async function firstLine(child: ChildProcess): Promise<string> {
  assert.ok(child.stdout)
  for await (const line of createInterface(child.stdout)) return line
  return ''
}

for (const [name, node] of nodes) {
  const options = { skip: node === undefined ? 'no older Node on this machine' : false }
  const start = (launcher: string, ...args: string[]) =>
    spawn(node ?? '', [launcher, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })

  test(`${name}: runs main.ts on Node 24 or newer with the arguments and passes the exit code on`, options, () => {
    const launcher = packageWith('console.log(process.version, ...process.argv.slice(2)); process.exitCode = 7')
    const { status, stdout } = spawnSync(node ?? '', [launcher, 'a b', '--c'], { encoding: 'utf8' })
    assert.match(stdout, /^v(2[4-9]|[3-9]\d)\.\S+ a b --c\n$/)
    assert.equal(status, 7)
  })

  test(`${name}: hides the warning of node:sqlite and no other`, options, () => {
    const launcher = packageWith(`await import('node:sqlite'); process.emitWarning('mind the gap')`)
    const { stderr } = spawnSync(node ?? '', [launcher], { encoding: 'utf8' })
    assert.ok(!stderr.includes('SQLite'), stderr)
    assert.match(stderr, /mind the gap/)
  })

  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    test(`${name}: ${signal} reaches main.ts`, options, async () => {
      const launcher = packageWith(`setInterval(() => {}, 1000)
        process.on('${signal}', () => process.exit(5))
        console.log('ready')`)
      const child = start(launcher)
      const exit = once(child, 'exit')
      assert.equal(await firstLine(child), 'ready')
      child.kill(signal)
      assert.deepEqual(await exit, [5, null])
    })
  }

  test(`${name}: passes on the sockets from the service manager`, options, async (t) => {
    const launcher =
      packageWith(`import { takeHanded } from '${join(repository, 'src/server/config/systemd-sockets.ts')}'
      import { fstatSync } from 'node:fs'
      import { hasLauncher } from '${join(repository, 'src/cli/launcher.ts')}'
      const { sockets } = takeHanded(process.env, (pid) => pid === (hasLauncher() ? process.ppid : process.pid))
      console.log(sockets.map(({ name, fd }) => [name, fd, fstatSync(fd).isSocket()]).join(' '))`)
    const servers = [createServer().listen(0), createServer().listen(0)]
    t.after(() => servers.forEach((server) => void server.close()))
    await Promise.all(servers.map((server) => once(server, 'listening')))
    const command = `LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=http:https exec "$@"`
    const child = spawn('sh', ['-c', command, 'sh', node ?? '', launcher], {
      stdio: ['ignore', 'pipe', 'inherit', ...servers.map(descriptorOf)],
    })
    assert.equal(await firstLine(child), 'http,3,true https,4,true')
  })

  test(`${name}: dies of the signal that main.ts died of`, options, async () => {
    const child = start(packageWith(`process.kill(process.pid, 'SIGKILL')`))
    assert.deepEqual(await once(child, 'exit'), [null, 'SIGKILL'])
  })
}

test('an older Node: main.ts does not outlive a killed launcher', {
  skip: older === undefined ? 'no older Node on this machine' : false,
}, async () => {
  const launcher = packageWith(`import { followLauncher } from '${join(repository, 'src/cli/launcher.ts')}'
      followLauncher()
      setInterval(() => {}, 1000)
      console.log('ready')`)
  const child = spawn(older ?? '', [launcher], { stdio: ['ignore', 'pipe', 'inherit'] })
  assert.equal(await firstLine(child), 'ready')
  // main.ts holds the same pipe, which therefore closes only once both are gone.
  const closed = once(child, 'close')
  child.kill('SIGKILL')
  await closed
})

test('an older Node without the bundled one says what is needed and where to get it', {
  skip: older === undefined ? 'no older Node on this machine' : false,
}, () => {
  const { status, stderr } = spawnSync(older ?? '', [packageWith('', { bundled: false })], { encoding: 'utf8' })
  assert.equal(status, 1)
  assert.match(stderr, /^Postern needs Node 24 or newer, and this is Node .*\n.*nodejs\.org/)
})

describe('the launcher runs', () => {
  /** A package at `path` with these files beside its launcher; returns what it prints. */
  const printed = (path: string, files: readonly string[]) => {
    const folder = join(mkdtempSync(join(root, 'built-')), path)
    cpSync(join(repository, 'bin'), join(folder, 'bin'), { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    for (const file of files) {
      mkdirSync(join(folder, file, '..'), { recursive: true })
      writeFileSync(join(folder, file), `console.log(${JSON.stringify(file)})`)
    }
    return spawnSync(process.execPath, [join(folder, 'bin/postern.js')], { encoding: 'utf8' })
  }

  test('the built code, in a package', () => {
    assert.equal(printed('node_modules/postern', ['dist/main.js']).stdout, 'dist/main.js\n')
  })

  test('the source, in a clone, whatever was built beside it', () => {
    assert.equal(printed('clone', ['dist/main.js', 'src/main.ts']).stdout, 'src/main.ts\n')
  })

  test('nothing, where Node does not run TypeScript, and the error says what to do', () => {
    const { status, stderr } = printed('node_modules/postern', ['src/main.ts'])
    assert.equal(status, 1)
    assert.match(stderr, /^Postern was installed as sources in .*\n.*`npm ci && npm pack`/)
  })
})
